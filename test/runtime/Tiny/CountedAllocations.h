// Counts what a test program asks the heap for. It replaces operator new, so one
// file of a program includes it.
#pragma once

#include <cstdlib>
#include <new>

namespace {
thread_local size_t allocations = 0; // of this thread: drivers have their own
} // namespace

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
