/* Recognises files of other programs that Weber does not read. */
#ifndef WB_FORMATS_STRANGERS_H
#define WB_FORMATS_STRANGERS_H

#include "formats/record.h"

/* What the file is and how to get its arrays: "a GGUF file; ..."; NULL: unknown. */
const char *wb_stranger(const wb_mapping *map);

#endif
