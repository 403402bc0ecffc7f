# examples/NN_name.c: one program each, against the public headers and the shared library only.
# examples/demo.c is the program of `make demo`.

function(weber_add_example name source)
  add_executable(${name} ${source})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_compile_definitions(${name} PRIVATE $<$<PLATFORM_ID:Darwin>:_DARWIN_C_SOURCE>) # mkdtemp is not POSIX's there
  target_link_libraries(${name} PRIVATE weber m pthread)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/[0-9][0-9]_*.c)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  weber_add_example(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()

file(GLOB source CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/demo.c)
if(source)
  weber_add_example(demo ${source})
  set_target_properties(demo PROPERTIES C_EXTENSIONS ON)
endif()
