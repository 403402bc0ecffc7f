# bench/bench_*.c: one program each, with access to private headers; every other bench/*.c is linked to all of them.
# bench/floor_*.c hold the hand-written loops that Weber is compared with; they are built for this machine.

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/bench_*.c)
file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
if(sources)
  list(REMOVE_ITEM helpers ${sources})
endif()
include(CheckCCompilerFlag)
check_c_compiler_flag(-march=native weber_has_native) # a cross compiler knows no machine of its own
set(weber_native $<$<BOOL:${weber_has_native}>:-march=native>)
foreach(helper IN LISTS helpers)
  if(helper MATCHES "/floor_[^/]*$")
    set_source_files_properties(${helper} PROPERTIES
      COMPILE_OPTIONS "-O3;${weber_native};-ffp-contract=fast;-fno-math-errno;-fno-trapping-math")
  endif()
endforeach()

function(weber_bench_settings target)
  set_target_properties(${target} PROPERTIES
    C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/backends/cpu ${PROJECT_SOURCE_DIR}/bench)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE ${weber_program_warnings})
  target_link_libraries(${target} PRIVATE weber_static)
endfunction()

if(helpers)
  add_library(weber_bench_support STATIC ${helpers})
  weber_bench_settings(weber_bench_support)
endif()

add_custom_target(benches)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  weber_bench_settings(${name})
  if(helpers)
    target_link_libraries(${name} PRIVATE weber_bench_support)
  endif()
  target_link_libraries(${name} PRIVATE m pthread)
  add_dependencies(benches ${name})
endforeach()
