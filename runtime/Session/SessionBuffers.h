//===- SessionBuffers.h - the memory of one session
//----------------------------===//
#pragma once

#include "runtime/Format/Guesses.h"
#include "runtime/Model/Model.h"
#include "runtime/Session/SessionFile.h"
#include "runtime/Vulkan/CommandPool.h"

#include <optional>

namespace sprig {

/// KV cache, activations, control block, history and logits: every buffer of
/// the target that is not weights.
class SessionBuffers {
public:
  static Result<SessionBuffers> create(Model &model);

  /// One VkBuffer a buffer of the target, weights included.
  const std::vector<VkBuffer> &all() const { return table; }
  VkBuffer control() const { return table[controlIndex]; }
  VkBuffer history() const { return table[historyIndex]; }
  /// What the device left in a slot of the history.
  uint32_t token(uint32_t slot) { return read(mappedHistory + slot); }
  /// What it left in the control block.
  uint32_t word(format::ControlWord word) { return read(mappedControl + word); }
  /// Whether drafts leave what they say behind the block, and word `word` of
  /// row `row` of that.
  bool hasGuesses() const { return controlBytes >= kWithGuesses; }
  uint32_t guess(uint32_t row, uint32_t word) {
    return read(mappedControl + (format::kGuessOffset / 4 +
                                 row * format::kGuessWords + word));
  }
  /// Bytes that the host has read from what steps left.
  uint64_t bytesRead() const { return readBytes; }
  uint64_t allocated() const;
  bool hasLogits() const { return logitsIndex != UINT32_MAX; }

  /// Copies `rows` rows of `vocabulary` logits out; the step that wrote them
  /// has finished.
  Status readLogits(vulkan::CommandPool &pool, uint32_t rows,
                    uint32_t vocabulary, float *out);
  /// Reads regions, one after another, into `sink` piece by piece; no step is
  /// under way.
  Status copyOut(vulkan::CommandPool &pool,
                 const std::vector<session_file::Region> &regions,
                 const std::function<Status(const void *, uint64_t)> &sink);
  /// Fills regions with the bytes at `from`.
  Status copyIn(vulkan::CommandPool &pool,
                const std::vector<session_file::Region> &regions,
                const uint8_t *from);
  uint32_t historyBuffer() const { return historyIndex; }
  /// Fills KV cache and scratch with copies of a word, if there is one, and what
  /// drafts keep from step to step with zeros.
  Status fill(vulkan::CommandPool &pool, const format::Target &target,
              std::optional<uint32_t> word);

private:
  static constexpr uint64_t kWithGuesses =
      format::kGuessOffset + format::kGuessBytes;
  Status runOnce(vulkan::CommandPool &pool,
                 const std::function<void(VkCommandBuffer)> &record);

  uint32_t read(const volatile uint32_t *from) {
    readBytes += sizeof(*from);
    return *from;
  }

  std::shared_ptr<vulkan::Device> device;
  vulkan::Buffers owned, readback;
  std::vector<VkBuffer> table;
  uint32_t controlIndex = 0, historyIndex = 0, logitsIndex = UINT32_MAX;
  const volatile uint32_t *mappedHistory = nullptr;
  const volatile uint32_t *mappedControl = nullptr;
  uint64_t readBytes = 0, controlBytes = 0;
  const float *mappedLogits = nullptr; ///< null: the host cannot reach them
};

} // namespace sprig
