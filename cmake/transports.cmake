# Transports are transport_NAME.so, beside the plugins of devices. backends/mpi/mpi.c is "MPI", once for each implementation whose
# header is there; backends/nccl/nccl.c is "NCCL" and "RCCL", whose libraries are opened at run time.

include_guard()

function(weber_add_transport_module name) # sources
  set(target transport_${name})
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/weber)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE ${weber_warnings})
  target_link_libraries(${target} PRIVATE weber_platform)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weber)
  add_dependencies(weber ${target})
  add_dependencies(weber_static ${target})
endfunction()

function(weber_add_mpi name header_hint library_names library_hint)
  find_path(weber_${name}_include mpi.h PATHS ${header_hint} NO_DEFAULT_PATH)
  find_library(weber_${name}_library NAMES ${library_names} PATHS ${library_hint} NO_DEFAULT_PATH)
  if(NOT weber_${name}_include OR NOT weber_${name}_library)
    return()
  endif()
  weber_add_transport_module(${name} ${PROJECT_SOURCE_DIR}/backends/mpi/mpi.c ${PROJECT_SOURCE_DIR}/backends/mpi/watch.c)
  target_include_directories(transport_${name} SYSTEM PRIVATE ${weber_${name}_include})
  target_link_libraries(transport_${name} PRIVATE ${weber_${name}_library})
endfunction()

set(weber_triplet ${CMAKE_C_LIBRARY_ARCHITECTURE})
weber_add_mpi(openmpi /usr/lib/${weber_triplet}/openmpi/include mpi /usr/lib/${weber_triplet}/openmpi/lib)
weber_add_mpi(mpich /usr/include/${weber_triplet}/mpich mpich /usr/lib/${weber_triplet})

foreach(name nccl rccl)
  weber_add_transport_module(${name} ${PROJECT_SOURCE_DIR}/backends/nccl/nccl.c
                             ${PROJECT_SOURCE_DIR}/backends/common/library.c)
  target_link_libraries(transport_${name} PRIVATE ${CMAKE_DL_LIBS})
endforeach()
target_compile_definitions(transport_rccl PRIVATE WB_HIP)
