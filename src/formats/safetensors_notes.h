/* What named arrays cannot say, as JSON beside them, so that any tree of records comes back whole:
 *
 *     weber.values   {"epoch": 3, "name": "run", "layers": {"kind": "list"}, ...}      everything
 *                    that is not an array or a plain map
 *     weber.shared   {"decoder.weight": "encoder.weight"}                              the same
 *                    record in two places: ties
 *
 * A value is null, true, false, a text, or a number (an integer below 2^53); other integers are
 * {"integer": "9223372036854775807"}, reals {"real": 0.1} (or "inf", "-inf", "nan:7ff8000000000001"
 * with its bits), containers {"kind": "struct", "type": "Flux.Dense", "names": ["weight", "bias"]}.
 * A map whose names are in the order of wb_path_compare needs no note.
 *
 * Reading needs cJSON; where that was not there when Weber was built, it is an error that names the
 * package. */
#ifndef WB_FORMATS_SAFETENSORS_NOTES_H
#define WB_FORMATS_SAFETENSORS_NOTES_H

#include "formats/safetensors_flat.h"

struct cJSON;

/* Checked before cJSON sees it (UTF-8, no zero characters, depth, how many values), then parsed.
 * NULL with WB_ERROR_FORMAT; offset is that of the text in the file, depth counts braces and
 * brackets. To be released by cJSON_Delete. */
struct cJSON *wb_json_parse(const wb_file *file, const char *text, size_t size_bytes,
                            int64_t offset, int depth);

/* A number that is an integer and below 2^53 in size; false for all else. */
bool wb_json_integer(const struct cJSON *item, int64_t *value);

/* The text in quotes, escaped; it is UTF-8. */
void wb_json_quote(FILE *stream, const char *text);

/* {"a": "b", ...} as a map of texts in the file's arena; NULL on failure. The rows of skipped
 * receive the texts that have these names instead; those belong to the item. */
typedef struct wb_json_skipped {
    const char *name, *text;
} wb_json_skipped;
wb_record *wb_json_texts(wb_file *file, const struct cJSON *item, int64_t offset, int skip_count,
                         wb_json_skipped *skipped);

/* The notes about the list as one JSON object each, where there are any. A text that is no UTF-8 is
 * WB_ERROR_ARGUMENT; file is for messages. */
bool wb_notes_have_values(const wb_flat *flat);
bool wb_notes_have_shared(const wb_flat *flat);
wb_status wb_notes_write_values(FILE *stream, const wb_flat *flat, const char *file);
void wb_notes_write_shared(FILE *stream, const wb_flat *flat);

/* Adds to the list what the notes say. */
wb_status wb_notes_read_values(wb_file *file, wb_flat *flat, const struct cJSON *item,
                               int64_t offset);
wb_status wb_notes_read_shared(wb_file *file, wb_flat *flat, const struct cJSON *item,
                               int64_t offset);

#endif
