# Settings shared by the whole build: language, warnings, compiler cache, linker, output folders.
# `cmake -S runtime` includes this file too, so it knows nothing of LLVM.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
option(SPRIG_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" ON)

get_filename_component(SPRIG_SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

add_compile_options(-Wall -Wextra -Wno-unused-parameter -ffp-contract=off)
if(SPRIG_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-fno-semantic-interposition)
endif()

find_program(SPRIG_CCACHE ccache)
if(SPRIG_CCACHE)
  set(SPRIG_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${SPRIG_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${SPRIG_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SPRIG_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${SPRIG_LAUNCHER})
endif()

# mold links every architecture, but compilers that cross-build look for their own name of it.
find_program(SPRIG_MOLD mold)
if(SPRIG_MOLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=mold)
endif()
