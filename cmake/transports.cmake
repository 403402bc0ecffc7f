# backends/mpi/mpi.c is the transport "MPI", once for each implementation whose header is there:
# transport_openmpi.so and transport_mpich.so, beside the plugins of devices.

include_guard()

function(weber_add_transport name header_hint library_names library_hint)
  find_path(weber_${name}_include mpi.h PATHS ${header_hint} NO_DEFAULT_PATH)
  find_library(weber_${name}_library NAMES ${library_names} PATHS ${library_hint} NO_DEFAULT_PATH)
  if(NOT weber_${name}_include OR NOT weber_${name}_library)
    return()
  endif()
  add_library(transport_${name} MODULE ${PROJECT_SOURCE_DIR}/backends/mpi/mpi.c)
  set_target_properties(transport_${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/weber)
  target_include_directories(transport_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(transport_${name} SYSTEM PRIVATE ${weber_${name}_include})
  target_compile_definitions(transport_${name} PRIVATE _GNU_SOURCE)
  target_compile_options(transport_${name} PRIVATE ${weber_warnings})
  target_link_libraries(transport_${name} PRIVATE ${weber_${name}_library})
  install(TARGETS transport_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weber)
  add_dependencies(weber transport_${name})
  add_dependencies(weber_static transport_${name})
endfunction()

set(weber_triplet ${CMAKE_C_LIBRARY_ARCHITECTURE})
weber_add_transport(openmpi /usr/lib/${weber_triplet}/openmpi/include mpi /usr/lib/${weber_triplet}/openmpi/lib)
weber_add_transport(mpich /usr/include/${weber_triplet}/mpich mpich /usr/lib/${weber_triplet})
