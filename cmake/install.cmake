# Library, headers, CMake package and pkg-config file.  The installed tree can be moved as a whole.

include(CMakePackageConfigHelpers)

install(TARGETS weber weber_static EXPORT weber-targets)
# The installed static library is one object that has the public names alone: what is hidden in the shared library cannot
# meet names of the program's own. (Tests link the one of the build, and see everything.)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_OBJCOPY AND NOT WEBER_SANITIZE)
  install(CODE "
    set(library \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libweber.a)
    foreach(command IN ITEMS
        \"${CMAKE_LINKER};-r;--whole-archive;\${library};-o;\${library}.o\"
        \"${CMAKE_OBJCOPY};--localize-hidden;\${library}.o\"
        \"${CMAKE_COMMAND};-E;rm;\${library}\"
        \"${CMAKE_AR};qcs;\${library};\${library}.o\"
        \"${CMAKE_COMMAND};-E;rm;\${library}.o\")
      execute_process(COMMAND \${command} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
endif()
if(TARGET weber_tool)
  install(TARGETS weber_tool)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/weber/completion.bash RENAME weber
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

# what the headers declare, for bindings and manuals (docs/api-json.md); nothing of the build needs it
find_package(Python3 3.7 QUIET COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/weber/*)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/api.json
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/api --output ${PROJECT_BINARY_DIR}/api.json
    DEPENDS ${headers} scripts/api scripts/c_headers.py CMakeLists.txt VERBATIM)
  add_custom_target(weber_api ALL DEPENDS ${PROJECT_BINARY_DIR}/api.json)
  install(FILES ${PROJECT_BINARY_DIR}/api.json DESTINATION ${CMAKE_INSTALL_DATADIR}/weber OPTIONAL)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weber)
install(EXPORT weber-targets NAMESPACE weber:: DESTINATION ${package_dir})
configure_package_config_file(cmake/weber-config.cmake.in weber-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(weber-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weber-config.cmake ${PROJECT_BINARY_DIR}/weber-config-version.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH weber_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" weber_pc_prefix ${weber_pc_prefix})
list(TRANSFORM weber_system_libraries PREPEND "-l" OUTPUT_VARIABLE weber_pc_libraries)
list(JOIN weber_pc_libraries " " weber_pc_libraries)
configure_file(weber.pc.in weber.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weber.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
