# Linux on 32-bit x86, from a 64-bit one, which runs such programs itself: Debian's cross compiler and its C library, and the
# libraries that scripts/foreign_root unpacks.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_C_COMPILER i686-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE i386-linux-gnu)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../build/i386-root ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(libraries ${root}/usr/lib/i386-linux-gnu)
set(found "-L${libraries} -Wl,-rpath,/usr/i686-linux-gnu/lib:${root}/lib/i386-linux-gnu:${libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${found}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${found}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${found} -Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2")
