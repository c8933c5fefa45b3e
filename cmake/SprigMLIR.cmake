# Helpers for the parts that use MLIR. All of them share one precompiled header: the heavy dialect
# headers cost 14 s a file without it and 2 s with it.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})
link_directories(${LLVM_LIBRARY_DIRS})

file(WRITE ${PROJECT_BINARY_DIR}/cmake/SprigPch.cpp "")
# Programs take -fPIC as well: a precompiled header is only reusable under the flags that made it.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
add_library(SprigPch OBJECT ${PROJECT_BINARY_DIR}/cmake/SprigPch.cpp)
target_precompile_headers(SprigPch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/SprigPch.h)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Makes the precompiled header a function of its inputs, so that ccache can keep it.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  target_compile_options(SprigPch PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# sprig_mlir_library(NAME SOURCES a.cpp ... [LINK lib ...] [DEPENDS target ...])
# A static library that uses MLIR through the shared libMLIR.
function(sprig_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_precompile_headers(${name} REUSE_FROM SprigPch)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# sprig_mlir_tool(NAME SOURCES a.cpp ... [LINK lib ...])
function(sprig_mlir_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_precompile_headers(${name} REUSE_FROM SprigPch)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
endfunction()

