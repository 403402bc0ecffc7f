/* JSON, as the header of safetensors has it. Reading needs cJSON; if Weber was built without it,
 * reading is an error that names the package.
 *
 * In a file that Weber wrote, one text of the metadata says which arrays are in several places:
 *
 *     weber.shared   {"decoder.weight": "encoder.weight"} */
#ifndef WB_FORMATS_JSON_H
#define WB_FORMATS_JSON_H

#include "formats/flat.h"

struct cJSON;

/* Parses the text, which begins at the offset in the file; release the result with cJSON_Delete.
 * NULL with WB_ERROR_FORMAT: it is not UTF-8, or not JSON. */
struct cJSON *wb_json_parse(const wb_file *file, const char *text, size_t size_bytes,
                            int64_t offset);

/* Reads an integer whose absolute value is below 2^53; false for anything else. */
bool wb_json_integer(const struct cJSON *item, int64_t *value);

/* The text in quotes, escaped; it is UTF-8. */
void wb_json_quote(wb_text *out, const char *text);

/* {"a": "b", ...} as a map of texts in the file's arena; NULL on failure. The text with the name
 * `skipped` is left out and given to *text instead; the item owns it. */
wb_record *wb_json_texts(wb_file *file, const struct cJSON *item, int64_t offset,
                         const char *skipped, const char **text);

/* Whether the list has entries with same_as; the next function writes them as a JSON object. */
bool wb_json_has_shared(const wb_flat *flat);
void wb_json_write_shared(wb_text *out, const wb_flat *flat);
/* Adds such entries to the list. */
wb_status wb_json_read_shared(wb_file *file, wb_flat *flat, const struct cJSON *item,
                              int64_t offset);

#endif
