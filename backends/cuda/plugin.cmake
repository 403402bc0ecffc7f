file(GLOB more CONFIGURE_DEPENDS ${folder}/nvidia/*.c)
