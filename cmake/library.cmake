# The library, shared (target weber) and static (target weber_static), from the same objects.
#
#   src/**.c                    the core; sees src/ and the public headers
#   src/platform/*/*.c          the same, for the system that is built for; linked to plugins and to the tool as well
#   backends/<name>/*.c         the backends that are built in; see their own folder and the public headers
#   backends/<name>/kernels/*.c compiled once per instruction set, with WB_ISA naming it

include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)

set(weber_builtin_backends cpu checked)
set(weber_objects)

# Adds an object library from the sources and appends its objects to weber_objects; nothing without sources.
function(weber_add_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;INCLUDES;OPTIONS;DEFINITIONS")
  if(NOT arg_SOURCES)
    return()
  endif()
  add_library(${name} OBJECT ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${arg_INCLUDES} ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE ${arg_DEFINITIONS})
  target_compile_options(${name} PRIVATE ${weber_warnings} ${arg_OPTIONS})
  set(weber_objects ${weber_objects} $<TARGET_OBJECTS:${name}> PARENT_SCOPE)
endfunction()

# what differs between systems: the target weber_platform is for what sees no other function of the library
set(weber_platforms_Linux posix linux)
set(weber_platforms_Darwin posix macos)
if(NOT weber_platforms_${CMAKE_SYSTEM_NAME})
  message(FATAL_ERROR "src/platform has nothing for ${CMAKE_SYSTEM_NAME} yet")
endif()
list(TRANSFORM weber_platforms_${CMAKE_SYSTEM_NAME} PREPEND ${PROJECT_SOURCE_DIR}/src/platform/ OUTPUT_VARIABLE folders)
list(TRANSFORM folders APPEND /*.c)
file(GLOB sources CONFIGURE_DEPENDS ${folders})
weber_add_objects(weber_platform_objects SOURCES ${sources} INCLUDES ${PROJECT_SOURCE_DIR}/src)
add_library(weber_platform STATIC $<TARGET_OBJECTS:weber_platform_objects>)
set_target_properties(weber_platform PROPERTIES LINKER_LANGUAGE C)
target_include_directories(weber_platform INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(weber_platform INTERFACE ${CMAKE_DL_LIBS})

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER sources EXCLUDE REGEX "/src/platform/")
weber_add_objects(weber_core SOURCES ${sources} INCLUDES ${PROJECT_SOURCE_DIR}/src)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/device/plugin.c PROPERTIES
  COMPILE_DEFINITIONS WEBER_PLUGIN_DIR="${CMAKE_INSTALL_FULL_LIBDIR}/weber")

# src/program/NAME.txt is the array NAME_text of <src/program/NAME.txt.h>
file(GLOB texts CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/program/*.txt)
foreach(text IN LISTS texts)
  cmake_path(GET text STEM name)
  weber_embed(weber_core ${text} ${name}_text)
endforeach()

set(weber_isas baseline)
set(weber_isa_flags_baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND weber_isas avx2 avx512)
  set(weber_isa_flags_avx2 -march=x86-64-v3)
  set(weber_isa_flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  list(APPEND weber_isas neon neon_bf16)
  # gcc's first scheduler moves loads ahead of what uses them until sums no longer fit into registers
  set(weber_isa_flags_neon -DWB_NEON=1 $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>)
  set(weber_isa_flags_neon_bf16 ${weber_isa_flags_neon} -march=armv8.2-a+bf16)
endif()

foreach(backend IN LISTS weber_builtin_backends)
  set(folder ${PROJECT_SOURCE_DIR}/backends/${backend})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  weber_add_objects(weber_${backend} SOURCES ${sources} INCLUDES ${folder} ${PROJECT_SOURCE_DIR}/src)

  # Three checks at every access are half of the time that compiling and running kernels takes; the address sanitizer
  # sees what they would.
  set(checks)
  if("undefined" IN_LIST WEBER_SANITIZE)
    set(checks -fno-sanitize=null,object-size,pointer-overflow)
  endif()
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/kernels/*.c)
  # what stands for several steps of a program rounds each of them
  set_source_files_properties(${folder}/kernels/pairs.c ${folder}/kernels/adam.c PROPERTIES
    COMPILE_OPTIONS -ffp-contract=off)
  foreach(isa IN LISTS weber_isas)
    weber_add_objects(weber_${backend}_${isa}
      SOURCES ${kernels}
      INCLUDES ${folder}
      DEFINITIONS WB_ISA=${isa}
      OPTIONS -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math -fwrapv ${checks} ${weber_isa_flags_${isa}})
  endforeach()
endforeach()

set(weber_system_libraries z m ${CMAKE_DL_LIBS} pthread)

if(WEBER_TESTS)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/evaluate/check.c PROPERTIES COMPILE_DEFINITIONS WB_WATCHES_PLANS)
endif()
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/ranks/greeting.c PROPERTIES
  COMPILE_DEFINITIONS WEBER_VERSION="${PROJECT_VERSION}") # which ranks compare

function(weber_add_library target kind)
  add_library(${target} ${kind} ${weber_objects})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME weber LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_link_libraries(${target} PRIVATE ${weber_system_libraries})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

weber_add_library(weber SHARED)
weber_add_library(weber_static STATIC)
set_target_properties(weber_static PROPERTIES EXPORT_NAME static)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT WEBER_SANITIZE)
  target_link_options(weber PRIVATE -Wl,-z,defs) # a function that is missing is noticed here, not by the user
endif()
add_library(weber::weber ALIAS weber)
add_library(weber::static ALIAS weber_static)

# tools/weber/*.c is the command line tool; installed, it finds the library wherever both were moved
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/weber/*.c)
if(sources)
  file(RELATIVE_PATH weber_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set(weber_origin $ORIGIN) # the folder of the file itself
  if(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
    set(weber_origin @loader_path)
  endif()
  add_executable(weber_tool ${sources})
  set_target_properties(weber_tool PROPERTIES
    OUTPUT_NAME weber RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin INSTALL_RPATH ${weber_origin}/${weber_bin_to_lib})
  target_compile_definitions(weber_tool PRIVATE _GNU_SOURCE WEBER_VERSION="${PROJECT_VERSION}")
  target_compile_options(weber_tool PRIVATE ${weber_warnings})
  target_link_libraries(weber_tool PRIVATE weber weber_platform)
endif()
