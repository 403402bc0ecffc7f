# What stands for Apple's runtime: <build>/tests/backends/metal/fake_metal.so.

file(GLOB sources CONFIGURE_DEPENDS ${tests_dir}/backends/metal/fake_*.c)
add_library(fake_apple MODULE ${sources} ${tests_dir}/support/metal_cpp.c ${tests_dir}/support/fibers.c
            ${tests_dir}/support/host_cpp.c)
set_target_properties(fake_apple PROPERTIES
  PREFIX "" OUTPUT_NAME fake_metal LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/backends/metal)
target_include_directories(fake_apple PRIVATE ${PROJECT_SOURCE_DIR} ${tests_dir})
target_compile_definitions(fake_apple PRIVATE _GNU_SOURCE WB_TESTS_DIR="${tests_dir}" FAKE_CACHE="${fake_cache}")
target_compile_options(fake_apple PRIVATE ${weber_program_warnings})
if(NOT WEBER_SANITIZE)
  target_link_options(fake_apple PRIVATE -Wl,-z,defs)
endif()
target_link_libraries(fake_apple PRIVATE m ${CMAKE_DL_LIBS} pthread)

add_dependencies(weber_test_support fake_apple) # any test may run on it
