# backends/NAME/*.c is the plugin libweber_NAME.so, unless the backend is built in. A plugin sees its own folder and the public
# headers, opens its vendor's libraries at run time, and lies in weber/ beside the library. A file prelude.txt in its folder is the
# array prelude_text of <backends/NAME/prelude.txt.h>; with it come backends/common/*.c, which all of them share.
#
# A file plugin.cmake in the folder may set `more`, further sources, `definitions` of the compiler's, and `prelude`, the folder whose prelude.txt it is.

include_guard()
include(cmake/embed.cmake)

function(weber_add_plugin name)
  set(folder ${PROJECT_SOURCE_DIR}/backends/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  if(NOT sources AND NOT EXISTS ${folder}/plugin.cmake)
    return()
  endif()
  set(more)
  set(definitions)
  set(prelude ${name})
  include(${folder}/plugin.cmake OPTIONAL)
  set(prelude_text backends/${prelude}/prelude.txt)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${prelude_text})
    file(GLOB common CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/common/*.c)
    list(APPEND more ${common})
  endif()
  set(target weber_${name})
  add_library(${target} MODULE ${sources} ${more})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/weber)
  target_include_directories(${target} PRIVATE ${folder} ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE ${definitions})
  target_compile_options(${target} PRIVATE ${weber_warnings})
  target_link_libraries(${target} PRIVATE weber_platform ${CMAKE_DL_LIBS} m pthread)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT WEBER_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs) # nothing of the library: all comes through the host's table
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/${prelude_text})
    weber_embed(${target} ${prelude_text} prelude_text)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weber)
  add_dependencies(weber ${target}) # whoever builds the library finds its plugins beside it
  add_dependencies(weber_static ${target})
endfunction()

file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${PROJECT_SOURCE_DIR}/backends
     ${PROJECT_SOURCE_DIR}/backends/*)
list(REMOVE_ITEM folders ${weber_builtin_backends} common mpi nccl)
foreach(name IN LISTS folders)
  weber_add_plugin(${name})
endforeach()
