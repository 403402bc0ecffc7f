/* Files of other programs, which Weber does not read, and what they are called. */
#ifndef WB_FORMATS_STRANGERS_H
#define WB_FORMATS_STRANGERS_H

#include "formats/record.h"

/* What the file is and how to have its arrays, "a GGUF file; ..."; NULL: unknown. */
const char *wb_stranger(const wb_mapping *map);

#endif
