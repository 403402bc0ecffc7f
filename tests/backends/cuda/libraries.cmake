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
find_file(WEBER_CUDA_STUB libcuda.so PATHS /usr/local/cuda/lib64/stubs NO_DEFAULT_PATH)
target_compile_definitions(tests-backends-cuda-test_toolkit PRIVATE CUDA_STUB="${WEBER_CUDA_STUB}")
target_link_libraries(tests-backends-cuda-test_toolkit PRIVATE ${CMAKE_DL_LIBS})

# Libraries that stand for cuBLASLt and cuDNN. What cuDNN's opens on its own has to lie beside it.
set(stand_in_folder ${PROJECT_BINARY_DIR}/tests/backends/cuda)
foreach(name cublaslt cudnn)
  add_library(fake_${name} MODULE ${tests_dir}/backends/cuda/${name}.c)
  set_target_properties(fake_${name} PROPERTIES
    PREFIX "" C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${stand_in_folder})
  target_include_directories(fake_${name} PRIVATE ${PROJECT_SOURCE_DIR}/backends/cuda ${tests_dir})
  target_compile_options(fake_${name} PRIVATE ${weber_program_warnings})
  target_link_libraries(fake_${name} PRIVATE m ${CMAKE_DL_LIBS})
  add_dependencies(tests fake_${name})
endforeach()
file(MAKE_DIRECTORY ${stand_in_folder})
foreach(part graph ops cnn heuristic engines_precompiled engines_runtime_compiled)
  file(TOUCH ${stand_in_folder}/libcudnn_${part}.so.9)
endforeach()
add_dependencies(tests-backends-cuda-test_cublaslt fake_cublaslt)
target_compile_definitions(tests-backends-cuda-test_cublaslt PRIVATE
  FAKE_CUBLASLT="$<TARGET_FILE:fake_cublaslt>")

# Suites of operations on the plugin, over the fake driver and these libraries; they have to be asked.
function(weber_add_library_test name suite asked)
  add_test(NAME backends/cuda/${name} COMMAND tests-${suite})
  add_custom_target(tests-backends-cuda-${name} DEPENDS tests-${suite} weber_cuda fake_cuda fake_cublaslt fake_cudnn) # what scripts/run_tests builds
  set_tests_properties(backends/cuda/${name} PROPERTIES TIMEOUT 900
    PASS_REGULAR_EXPRESSION "stand-in: [1-9][0-9]* ${asked}" FAIL_REGULAR_EXPRESSION "FAILED"
    ENVIRONMENT "${test_environment};WEBER_DEVICE=CUDA;WEBER_CUDA_LIBRARY=${fake_folder}/fake_cuda.so;WEBER_NVRTC_LIBRARY=${fake_folder}/fake_cuda.so;WEBER_CUBLASLT_LIBRARY=${stand_in_folder}/fake_cublaslt.so;WEBER_CUDNN_LIBRARY=${stand_in_folder}/fake_cudnn.so")
endfunction()
weber_add_library_test(products ops-test_matmul products)
weber_add_library_test(convolutions ops-test_conv convolutions)
weber_add_library_test(dense layers-test_dense products) # plans with scratch memory behind their arrays
