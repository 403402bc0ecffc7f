# Linux on 64-bit ARM, from any other Debian: its cross compiler, the libraries that scripts/foreign_root unpacks, and
# qemu-user, by which ctest runs what was built. docs/how-to/build-for-arm.md.

set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(foreign arm)
include(${CMAKE_CURRENT_LIST_DIR}/foreign.cmake)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root})
