# The warnings of the library, of everything else, and -Werror where it was asked for.

set(weber_warnings
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wundef -Wvla -Wwrite-strings -Wformat=2)
set(weber_program_warnings -Wall -Wextra -Wpedantic)

if(WEBER_WERROR)
  list(APPEND weber_warnings -Werror)
  list(APPEND weber_program_warnings -Werror)
endif()
