# What the tests of the GPU plugin's libraries see of it: everything but its vendor, whose place tests/backends/cuda/no_vendor.h takes.

function(weber_add_plugin_for_tests plugin own) # definitions
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/cuda/*.c
       ${PROJECT_SOURCE_DIR}/backends/cuda/lt/*.c ${PROJECT_SOURCE_DIR}/backends/cuda/conv/*.c
       ${PROJECT_SOURCE_DIR}/backends/common/*.c ${own})
  list(FILTER sources EXCLUDE REGEX "/(plugin|vendor|parts)\\.c$")
  set(target weber_test_${plugin})
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE PUBLIC ${ARGN})
  target_link_libraries(${target} PRIVATE weber_platform)
  weber_embed(${target} backends/cuda/prelude.txt prelude_text)
endfunction()
weber_add_plugin_for_tests(cuda ${PROJECT_SOURCE_DIR}/backends/cuda/nvidia/*.c)
weber_add_plugin_for_tests(amdgpu ${PROJECT_SOURCE_DIR}/backends/amdgpu/*.c WB_HIP)

foreach(test cuda/test_cublaslt cuda/test_cudnn cuda/test_epilogue amdgpu/test_hipblaslt)
  cmake_path(GET test PARENT_PATH plugin)
  string(REPLACE "/" "-" target tests-backends-${test})
  target_link_libraries(${target} PRIVATE weber_test_${plugin} ${CMAKE_DL_LIBS})
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
target_compile_definitions(tests-backends-cuda-test_cudnn PRIVATE CUDA_STUB="${WEBER_CUDA_STUB}")
target_link_libraries(tests-backends-cuda-test_toolkit PRIVATE ${CMAKE_DL_LIBS})

# Libraries that stand for cuBLASLt, hipBLASLt, cuDNN and MIOpen. What cuDNN's opens on its own has to lie beside it.
set(stand_in_folder ${PROJECT_BINARY_DIR}/tests/backends/cuda)
function(weber_add_stand_in name source) # definitions
  set(target fake_${name})
  add_library(${target} MODULE ${tests_dir}/backends/${source})
  set_target_properties(${target} PROPERTIES
    PREFIX "" C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${stand_in_folder})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/backends/cuda ${PROJECT_SOURCE_DIR}/backends ${tests_dir})
  target_compile_definitions(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE ${weber_program_warnings})
  target_link_libraries(${target} PRIVATE m ${CMAKE_DL_LIBS})
  add_dependencies(tests ${target})
endfunction()
weber_add_stand_in(cublaslt cuda/lt.c)
weber_add_stand_in(hipblaslt cuda/lt.c WB_HIP)
weber_add_stand_in(cudnn cuda/cudnn.c)
weber_add_stand_in(miopen amdgpu/miopen.c WB_HIP)
weber_add_stand_in(other_miopen amdgpu/miopen.c WB_HIP OWN_RUNTIME)
file(MAKE_DIRECTORY ${stand_in_folder})
foreach(part graph ops cnn heuristic engines_precompiled engines_runtime_compiled)
  file(TOUCH ${stand_in_folder}/libcudnn_${part}.so.9)
endforeach()
foreach(test cuda-test_cublaslt amdgpu-test_hipblaslt)
  string(REGEX REPLACE ".*_" "" name ${test})
  add_dependencies(tests-backends-${test} fake_${name})
  target_compile_definitions(tests-backends-${test} PRIVATE FAKE_LT="$<TARGET_FILE:fake_${name}>")
endforeach()

# Suites of operations on a plugin, over its fake driver and these libraries; they have to be asked.
set(libraries_of_cuda
    WEBER_CUDA_LIBRARY=${fake_folder}/fake_cuda.so WEBER_NVRTC_LIBRARY=${fake_folder}/fake_cuda.so
    WEBER_CUBLASLT_LIBRARY=${stand_in_folder}/fake_cublaslt.so WEBER_CUDNN_LIBRARY=${stand_in_folder}/fake_cudnn.so)
set(libraries_of_amdgpu
    WEBER_HIP_LIBRARY=${fake_folder}/fake_amdgpu.so WEBER_HIPRTC_LIBRARY=${fake_folder}/fake_amdgpu.so
    WEBER_HIPBLASLT_LIBRARY=${stand_in_folder}/fake_hipblaslt.so WEBER_MIOPEN_LIBRARY=${stand_in_folder}/fake_miopen.so
    LD_LIBRARY_PATH=${fake_folder}) # of libamd_comgr.so.3
function(weber_add_library_test name plugin suite asked)
  string(TOUPPER ${plugin} device)
  add_test(NAME backends/${plugin}/${name} COMMAND tests-${suite})
  add_custom_target(tests-backends-${plugin}-${name}
    DEPENDS tests-${suite} weber_${plugin} fake_driver_${plugin} fake_cublaslt fake_hipblaslt fake_cudnn
            fake_miopen) # what scripts/run_tests builds
  set_tests_properties(backends/${plugin}/${name} PROPERTIES TIMEOUT 900
    PASS_REGULAR_EXPRESSION "stand-in: ${asked}" FAIL_REGULAR_EXPRESSION "FAILED"
    ENVIRONMENT "${test_environment};WEBER_DEVICE=${device};WEBER_TUNE=0;${libraries_of_${plugin}}")
endfunction()
foreach(plugin cuda amdgpu)
  weber_add_library_test(products ${plugin} ops-test_matmul "[1-9][0-9]* products")
  weber_add_library_test(dense ${plugin} layers-test_dense "[1-9][0-9]* products") # plans with scratch memory after their arrays
  add_dependencies(tests-backends-${plugin}-test_products fake_cublaslt fake_hipblaslt)
  add_dependencies(tests-backends-${plugin}-test_attention_products fake_cublaslt fake_hipblaslt)
  weber_add_library_test(convolutions ${plugin} ops-test_conv "[1-9][0-9]* convolutions")
endforeach()
add_dependencies(tests-backends-amdgpu-test_convolutions fake_miopen fake_other_miopen)
add_dependencies(tests-backends-cuda-test_attention fake_cudnn)
add_dependencies(tests-backends-cuda-test_choose fake_cudnn fake_cublaslt)

# hipBLASLt by its own name, which goes with the runtime's: beside it lies another ROCm's, here one without the functions.
foreach(rocm 6 7)
  set(folder ${fake_folder}/rocm${rocm})
  math(EXPR own "${rocm} - 6")
  math(EXPR other "7 - ${rocm}")
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${fake_folder}/fake_amdgpu.so ${folder}/libamdhip64.so.${rocm} SYMBOLIC)
  file(CREATE_LINK ${stand_in_folder}/fake_hipblaslt.so ${folder}/libhipblaslt.so.${own} SYMBOLIC)
  file(CREATE_LINK ${stand_in_folder}/fake_cublaslt.so ${folder}/libhipblaslt.so.${other} SYMBOLIC)
  set(libraries_of_amdgpu
      WEBER_HIP_LIBRARY=${folder}/libamdhip64.so.${rocm} WEBER_HIPRTC_LIBRARY=${folder}/libamdhip64.so.${rocm}
      LD_LIBRARY_PATH=${folder}:${fake_folder})
  weber_add_library_test(rocm${rocm} amdgpu layers-test_dense "[1-9][0-9]* products")
endforeach()

# What stands for NCCL and RCCL: over the fake drivers, and memory that processes share.
weber_add_stand_in(nccl cuda/nccl.c)
weber_add_stand_in(rccl cuda/nccl.c WB_HIP)
foreach(vendor nccl rccl)
  target_link_libraries(fake_${vendor} PRIVATE pthread)
  target_compile_definitions(fake_${vendor} PRIVATE _GNU_SOURCE)
endforeach()
add_dependencies(tests-ranks-test_nccl fake_nccl fake_rccl weber_tool)
