/* Shared by reading and writing safetensors. */
#ifndef WB_FORMATS_SAFETENSORS_H
#define WB_FORMATS_SAFETENSORS_H

#include "formats/record.h"

enum {
    WB_SAFETENSORS_LENGTH_BYTES = 8,       /* the header's length, little-endian */
    WB_SAFETENSORS_MOST_HEADER = 100000000 /* the limit of the format's own library */
};

#define WB_SAFETENSORS_METADATA "__metadata__"
#define WB_SAFETENSORS_SHARED   "weber.shared"

/* An element type of the format. Arrays of a type that Weber lacks become opaque records with the
 * name as their type. */
typedef struct wb_safetensors_dtype {
    const char *name;
    int bits;
    int dtype; /* wb_dtype; -1: none */
} wb_safetensors_dtype;
const wb_safetensors_dtype *wb_safetensors_by_name(const char *name);

wb_status wb_safetensors_read(wb_file *file);

#endif
