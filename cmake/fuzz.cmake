# Every fuzz/fuzz_*.c is a libFuzzer target, <build>/fuzz/fuzz_NAME, with the library's core built for coverage and with the
# address and undefined-behaviour sanitizers.  Needs clang (Debian: clang, libclang-rt-14-dev).  See fuzz/README.md.

if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "WEBER_FUZZ needs clang: CC=clang cmake ...")
endif()

set(weber_fuzz_flags -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all -g -O1)

# the library is a fuzzer's library in this build; its kernels, which no target runs, are there quickly
foreach(target weber_core weber_cpu weber_checked)
  if(TARGET ${target})
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link ${weber_fuzz_flags})
  endif()
endforeach()

foreach(isa IN LISTS weber_isas)
  target_compile_options(weber_cpu_${isa} PRIVATE -O0)
endforeach()

add_custom_target(fuzz_targets)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/fuzz_*.c)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_compile_options(${name} PRIVATE ${weber_program_warnings} -fsanitize=fuzzer-no-link ${weber_fuzz_flags})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${name} PRIVATE weber_static m pthread)
  add_dependencies(fuzz_targets ${name})
endforeach()

# the random caller of what the headers declare
include(${PROJECT_SOURCE_DIR}/tests/calls/calls.cmake)
target_compile_options(weber_calls PRIVATE -fsanitize=fuzzer-no-link ${weber_fuzz_flags})
target_include_directories(fuzz_calls PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(fuzz_calls PRIVATE weber_calls weber_static m pthread) # after the calls, too

# the same without libFuzzer, which takes most of the time: for long runs
add_executable(random_calls ${PROJECT_SOURCE_DIR}/fuzz/random_inputs.c $<TARGET_OBJECTS:fuzz_calls>)
set_target_properties(random_calls PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
target_include_directories(random_calls PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(random_calls PRIVATE ${weber_program_warnings} ${weber_fuzz_flags})
target_link_options(random_calls PRIVATE -fsanitize=address,undefined)
target_link_libraries(random_calls PRIVATE weber_calls weber_static m pthread)
add_dependencies(fuzz_targets random_calls)
