# macOS, from any other system, by zig: builds and links for a Mac, which has not seen it yet. WEBER_MACOS_PROCESSOR is arm64 or
# x86_64, the environment's WEBER_ZIG the folder of zig (scripts/check_macos puts one into build/).

set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_VERSION 22.0) # of macOS 13
set(CMAKE_SYSTEM_PROCESSOR ${WEBER_MACOS_PROCESSOR})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WEBER_MACOS_PROCESSOR)
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/cc)
string(REPLACE arm64 aarch64 processor ${WEBER_MACOS_PROCESSOR})
set(CMAKE_C_FLAGS_INIT "-target ${processor}-macos.13.0")
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${CMAKE_CURRENT_LIST_DIR}/ranlib CACHE FILEPATH "")
set(CMAKE_INSTALL_NAME_TOOL /bin/true CACHE FILEPATH "")
# CMake on other systems knows of no rpath: where the library lies beside the demo, the tool, and the tool when it is installed
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath,@loader_path -Wl,-rpath,@loader_path/.. -Wl,-rpath,@loader_path/../lib")
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}) # nothing of the system that builds
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ZLIB_LIBRARY z CACHE STRING "")
set(ZLIB_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE PATH "") # its headers are among macOS's
