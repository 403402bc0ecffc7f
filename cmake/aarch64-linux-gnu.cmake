# Linux on 64-bit ARM, from any other Debian: its cross compiler, the libraries that scripts/foreign_root unpacks, and
# qemu-user, by which ctest runs what was built. docs/how-to/build-for-arm.md.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../build/arm-root ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(libraries ${root}/usr/lib/aarch64-linux-gnu)
set(found "-L${libraries} -Wl,-rpath,${root}/lib/aarch64-linux-gnu:${libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${found}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${found}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${found}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root})
