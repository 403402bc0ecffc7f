/* JSON, as the header of safetensors has it. Reading needs cJSON; where that was not there when
 * Weber was built, it is an error that names the package.
 *
 * A file of Weber's has one text among its metadata that says which arrays stand in several places:
 *
 *     weber.shared   {"decoder.weight": "encoder.weight"} */
#ifndef WB_FORMATS_JSON_H
#define WB_FORMATS_JSON_H

#include "formats/flat.h"

struct cJSON;

/* NULL with WB_ERROR_FORMAT: not UTF-8, or not JSON; offset: where the text begins in the file. To
 * be released by cJSON_Delete. */
struct cJSON *wb_json_parse(const wb_file *file, const char *text, size_t size_bytes,
                            int64_t offset);

/* A number that is an integer and below 2^53 in size; false for all else. */
bool wb_json_integer(const struct cJSON *item, int64_t *value);

/* The text in quotes, escaped; it is UTF-8. */
void wb_json_quote(wb_text *out, const char *text);

/* {"a": "b", ...} as a map of texts in the file's arena; NULL on failure. *text receives the one
 * that is called `skipped` instead; it belongs to the item. */
wb_record *wb_json_texts(wb_file *file, const struct cJSON *item, int64_t offset,
                         const char *skipped, const char **text);

/* Which entries of the list stand elsewhere already. */
bool wb_json_has_shared(const wb_flat *flat);
void wb_json_write_shared(wb_text *out, const wb_flat *flat);
/* Adds them to the list. */
wb_status wb_json_read_shared(wb_file *file, wb_flat *flat, const struct cJSON *item,
                              int64_t offset);

#endif
