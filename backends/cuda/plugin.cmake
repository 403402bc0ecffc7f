file(GLOB more CONFIGURE_DEPENDS ${folder}/nvidia/*.c ${folder}/lt/*.c ${folder}/conv/*.c)
