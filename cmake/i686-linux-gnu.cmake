# Linux on 32-bit x86, from a 64-bit one, which runs such programs itself: Debian's cross compiler and its C library, and the
# libraries that scripts/foreign_root unpacks.

set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_C_COMPILER i686-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE i386-linux-gnu)
set(foreign i386)
include(${CMAKE_CURRENT_LIST_DIR}/foreign.cmake)
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
  " -Wl,-rpath,/usr/i686-linux-gnu/lib -Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2")
