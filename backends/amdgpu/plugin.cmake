# CUDA's sources and prelude; this folder's are what is AMD's own
file(GLOB more CONFIGURE_DEPENDS ${folder}/../cuda/*.c)
set(prelude cuda)
