# A C function that calls each public function, written from the headers: tests/calls/generate.py.  weber_calls is what the test
# of misused objects and the random caller have in common.
include_guard(GLOBAL)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(weber_calls ${PROJECT_BINARY_DIR}/calls)
file(MAKE_DIRECTORY ${weber_calls})
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/weber.h ${PROJECT_SOURCE_DIR}/include/weber/*)
set(calls_dir ${PROJECT_SOURCE_DIR}/tests/calls)
add_custom_command(OUTPUT ${weber_calls}/calls.c
  COMMAND ${CMAKE_C_COMPILER} -E -P -I${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/weber.h -o ${weber_calls}/declarations
  COMMAND Python3::Interpreter ${calls_dir}/generate.py ${weber_calls}/declarations ${PROJECT_SOURCE_DIR}/docs/symbols.txt ${weber_calls}/calls.c
  DEPENDS ${calls_dir}/generate.py ${PROJECT_SOURCE_DIR}/docs/symbols.txt ${headers})
add_library(weber_calls STATIC ${weber_calls}/calls.c ${calls_dir}/stubs.c)
target_include_directories(weber_calls PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(weber_calls PRIVATE _GNU_SOURCE)
