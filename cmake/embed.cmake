# weber_embed(target input symbol): a text file as a header of the target, path and all:
#
#   weber_embed(weber_opencl backends/opencl/prelude.txt prelude)
#   #include <backends/opencl/prelude.txt.h>       static const char prelude[] = {...}; ended by a zero byte
#
# Numbers, not a string: compilers may limit the length of those.

if(CMAKE_SCRIPT_MODE_FILE) # cmake -Dinput= -Doutput= -Dsymbol= -P embed.cmake
  file(READ "${input}" bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${output}" "static const char ${symbol}[] = {\n${bytes}0};\n")
  return()
endif()

function(weber_embed target input symbol)
  set(folder ${PROJECT_BINARY_DIR}/embedded/${target})
  set(output ${folder}/${input}.h)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -Dinput=${PROJECT_SOURCE_DIR}/${input} -Doutput=${output} -Dsymbol=${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/${input} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
