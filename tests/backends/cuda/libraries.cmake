# What the tests of the GPU plugin's libraries see of it: everything but its vendor, whose place tests/backends/cuda/no_vendor.h takes.

file(GLOB plugin_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/cuda/*.c
     ${PROJECT_SOURCE_DIR}/backends/cuda/nvidia/*.c ${PROJECT_SOURCE_DIR}/backends/common/*.c)
list(FILTER plugin_sources EXCLUDE REGEX "/(plugin|vendor|parts)\\.c$")
add_library(weber_test_cuda STATIC ${plugin_sources})
target_include_directories(weber_test_cuda PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(weber_test_cuda PRIVATE _GNU_SOURCE)
weber_embed(weber_test_cuda backends/cuda/prelude.txt prelude_text)

foreach(name cublaslt cudnn epilogue)
  set(target tests-backends-cuda-test_${name})
  target_link_libraries(${target} PRIVATE weber_test_cuda ${CMAKE_DL_LIBS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/backends/cuda)
endforeach()

# The toolkit's headers, where they are: our declarations are compared with them.
find_path(WEBER_CUDA_HEADERS cublasLt.h PATHS /usr/local/cuda/include)
if(WEBER_CUDA_HEADERS)
  target_include_directories(tests-backends-cuda-test_toolkit SYSTEM PRIVATE ${WEBER_CUDA_HEADERS})
endif()
target_include_directories(tests-backends-cuda-test_toolkit PRIVATE ${PROJECT_SOURCE_DIR}/backends/cuda)

# A library that stands for cuBLASLt, over memory of the process.
add_library(fake_cublaslt MODULE ${tests_dir}/backends/cuda/cublaslt.c)
set_target_properties(fake_cublaslt PROPERTIES
  PREFIX "" C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/backends/cuda)
target_include_directories(fake_cublaslt PRIVATE ${PROJECT_SOURCE_DIR}/backends/cuda)
target_compile_options(fake_cublaslt PRIVATE ${weber_program_warnings})
target_link_libraries(fake_cublaslt PRIVATE m)
add_dependencies(tests-backends-cuda-test_cublaslt fake_cublaslt)
target_compile_definitions(tests-backends-cuda-test_cublaslt PRIVATE
  FAKE_CUBLASLT="$<TARGET_FILE:fake_cublaslt>")
