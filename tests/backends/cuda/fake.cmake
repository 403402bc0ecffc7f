# The fake drivers: <build>/tests/backends/cuda/fake_{cuda,amdgpu}.so, and beside them the library that hipRTC is asked about.

set(fake_folder ${PROJECT_BINARY_DIR}/tests/backends/cuda)
file(GLOB fake_sources CONFIGURE_DEPENDS ${tests_dir}/backends/cuda/fake_*.c)

set(fake_cache ${PROJECT_SOURCE_DIR}/build/kernels) # what texts became, for all builds
file(MAKE_DIRECTORY ${fake_cache})

function(weber_add_fake_driver plugin)
  set(target fake_driver_${plugin})
  add_library(${target} MODULE ${fake_sources} ${tests_dir}/support/cuda_cpp.c ${tests_dir}/support/fibers.c
              ${tests_dir}/support/host_cpp.c)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME fake_${plugin} LIBRARY_OUTPUT_DIRECTORY ${fake_folder})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${tests_dir})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE WB_TESTS_DIR="${tests_dir}"
    FAKE_CACHE="${fake_cache}" ${ARGN})
  target_compile_options(${target} PRIVATE ${weber_program_warnings})
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS} pthread)
endfunction()

weber_add_fake_driver(cuda)
weber_add_fake_driver(amdgpu FAKE_HIP)

add_library(fake_comgr MODULE ${tests_dir}/backends/amdgpu/comgr.c)
set_target_properties(fake_comgr PROPERTIES
  PREFIX "" SUFFIX "" OUTPUT_NAME libamd_comgr.so.3 LIBRARY_OUTPUT_DIRECTORY ${fake_folder})
target_link_options(fake_comgr PRIVATE -Wl,-soname,libamd_comgr.so.3)

add_dependencies(weber_test_support fake_driver_cuda fake_driver_amdgpu fake_comgr) # any test may run on them
