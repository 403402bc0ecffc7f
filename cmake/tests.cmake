# Every tests/**/test_*.c is one program and one test of ctest, named by its path: tests/ops/test_softmax.c is
# <build>/tests/ops/test_softmax and the test ops/test_softmax.  Tests see private headers and link the static
# library; tests/support/*.c is linked to all of them.

add_custom_target(tests) # there without cmocka, too
find_path(CMOCKA_INCLUDE_DIR cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
if(NOT CMOCKA_INCLUDE_DIR OR NOT CMOCKA_LIBRARY)
  message(WARNING "cmocka not found (Debian: libcmocka-dev): the tests are not built")
  return()
endif()

set(tests_dir ${PROJECT_SOURCE_DIR}/tests)

if(CMAKE_CROSSCOMPILING) # kernels that tests run are of the processor that they run on
  string(REGEX REPLACE "gcc$" "g++" weber_host_cpp ${CMAKE_C_COMPILER})
  add_compile_definitions(HOST_CPP_COMPILER="${weber_host_cpp}")
endif()

function(weber_test_settings target)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/backends/cpu ${tests_dir})
  target_include_directories(${target} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE WB_TESTS_DIR="${tests_dir}")
  # cmocka.h wants these before it, wherever the formatter sorts it to
  target_compile_options(${target} PRIVATE ${weber_program_warnings}
    "SHELL:-include stdarg.h" "SHELL:-include stddef.h" "SHELL:-include stdint.h" "SHELL:-include setjmp.h")
  target_link_libraries(${target} PRIVATE weber_static ${CMOCKA_LIBRARY})
endfunction()

file(GLOB_RECURSE support CONFIGURE_DEPENDS ${tests_dir}/support/*.c)
list(FILTER support EXCLUDE REGEX "/test_[^/]*$")
if(support)
  add_library(weber_test_support STATIC ${support})
  weber_test_settings(weber_test_support)
  if(WEBER_SANITIZE) # definitions that others are compared with
    file(GLOB naive ${tests_dir}/support/naive*.c)
    set_source_files_properties(${naive} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=all;-O2")
  endif()
  foreach(backend opencl cuda metal)
    weber_embed(weber_test_support backends/${backend}/prelude.txt ${backend}_prelude_text)
  endforeach()
endif()

# Under the sanitizers malloc fails as it does elsewhere, instead of ending the program. What the user prefers is no
# matter of the tests.
set(test_environment
    ASAN_OPTIONS=allocator_may_return_null=1
    TSAN_OPTIONS=allocator_may_return_null=1
    UBSAN_OPTIONS=print_stacktrace=1
    WEBER_PREFERENCES=${PROJECT_BINARY_DIR}/no-preferences.toml
    WEBER_PLUGIN_PATH=${PROJECT_BINARY_DIR}/weber) # a static library has no folder of its own

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${tests_dir}/test_*.c)
if(NOT WEBER_BENCH)
  list(REMOVE_ITEM sources ${tests_dir}/ranks/test_lost.c) # runs bench_ranks
endif()
foreach(source IN LISTS sources)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${tests_dir} OUTPUT_VARIABLE path)
  cmake_path(REMOVE_EXTENSION path OUTPUT_VARIABLE name)
  cmake_path(GET path STEM stem)
  cmake_path(GET path PARENT_PATH folder)
  string(REPLACE "/" "-" target tests-${name})

  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${folder})
  weber_test_settings(${target})
  # What tests do themselves is little, and compiling them takes longer than running them; those of the CPU backend
  # compare with definitions of their own. Undefined behaviour is looked for in the library, not in its tests.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT folder STREQUAL "backends/cpu")
    target_compile_options(${target} PRIVATE -O1)
  endif()
  if("undefined" IN_LIST WEBER_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  if(support)
    target_link_libraries(${target} PRIVATE weber_test_support)
  endif()
  if(folder STREQUAL "bench" AND TARGET weber_bench_support) # what the benchmarks compute
    target_link_libraries(${target} PRIVATE weber_bench_support)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  elseif(folder STREQUAL "bench")
    file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
    list(FILTER helpers EXCLUDE REGEX "/(bench|floor)_[^/]*$|/(floors|launch).c$")
    target_sources(${target} PRIVATE ${helpers})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  endif()
  target_link_libraries(${target} PRIVATE m pthread)
  add_dependencies(tests ${target})
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
endforeach()

# these call the tool, and open the library
add_dependencies(tests-models-test_tool weber_tool)
add_dependencies(tests-ranks-test_run weber_tool)
if(WEBER_BENCH)
  add_dependencies(tests-ranks-test_lost weber_tool bench_ranks)
endif()
add_dependencies(tests-evaluate-test_events weber_tool)
add_dependencies(tests-base-test_scratch weber)

include(${tests_dir}/calls/calls.cmake)
target_link_libraries(tests-calls-test_misuse PRIVATE weber_calls)

include(${tests_dir}/device/plugins/plugins.cmake)
include(${tests_dir}/backends/cuda/fake.cmake)
include(${tests_dir}/backends/cuda/libraries.cmake)
include(${tests_dir}/backends/metal/fake.cmake)

# What the headers say changes for the fuzz targets, too: they are compiled here, and linked where WEBER_FUZZ is on.
if(NOT WEBER_SANITIZE)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/fuzz_*.c)
  add_library(weber_fuzz_sources OBJECT ${sources})
  weber_test_settings(weber_fuzz_sources)
  add_dependencies(tests weber_fuzz_sources)
endif()
