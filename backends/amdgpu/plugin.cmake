# CUDA's sources and prelude; this folder's are what is AMD's own
file(GLOB more CONFIGURE_DEPENDS ${folder}/../cuda/*.c ${folder}/../cuda/lt/*.c
     ${folder}/../cuda/conv/*.c)
set(prelude cuda)
set(definitions WB_HIP)
