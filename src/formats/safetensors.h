/* Shared by reading and writing safetensors.
 *
 * In a file that Weber wrote, one text of the metadata says which arrays are in several places:
 *
 *     weber.shared   {"decoder.weight": "encoder.weight"} */
#ifndef WB_FORMATS_SAFETENSORS_H
#define WB_FORMATS_SAFETENSORS_H

#include "formats/flat.h"
#include "formats/json.h"

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

/* ---- texts about the file ---- */

/* {"a": "b", ...} as a map of texts in the file's arena; NULL on failure. The text with the name
 * `skipped` is left out and given to *text instead. */
wb_record *wb_safetensors_texts(wb_file *file, const wb_json *item, int64_t offset,
                                const char *skipped, const wb_json **text);

/* Whether the list has entries with same_as; the next function writes them as a JSON object. */
bool wb_safetensors_has_shared(const wb_flat *flat);
void wb_safetensors_write_shared(wb_text *out, const wb_flat *flat);
/* Adds such entries to the list. */
wb_status wb_safetensors_read_shared(wb_file *file, wb_flat *flat, const wb_json *item,
                                     int64_t offset);

#endif
