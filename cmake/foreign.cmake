# Linux on another processor, whose libraries scripts/foreign_root unpacks into build/${foreign}-root. A toolchain file sets
# `foreign`, the processor, its compiler and CMAKE_LIBRARY_ARCHITECTURE, and includes this.

set(CMAKE_SYSTEM_NAME Linux)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../build/${foreign}-root ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(libraries ${root}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(found "-L${libraries} -Wl,-rpath,${root}/lib/${CMAKE_LIBRARY_ARCHITECTURE}:${libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${found}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${found}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${found}")
