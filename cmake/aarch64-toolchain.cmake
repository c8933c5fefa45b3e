# Cross-builds for 64-bit Arm with Debian's compiler and multiarch libraries:
#
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install g++-aarch64-linux-gnu libpcre2-dev:arm64 libutf8proc-dev:arm64 libzstd-dev:arm64
#   cmake -S runtime -B build-arm -DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64-toolchain.cmake
#
# Headers without an architecture (Vulkan, FlatBuffers, xxHash) and flatc are those of the host.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
