/* JSON: every value is visited; every member is found by its name; texts and names without zero
 * bytes come back when they are written and read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "fuzz";

static void demand(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "not so: %s (%s)\n", what, wb_error_message());
    abort();
}
#define DEMAND(condition) demand(condition, #condition)

/* What is quoted comes back. */
static void check_text(const char *text, int64_t bytes) {
    DEMAND(text[bytes] == 0);
    if (strlen(text) != (size_t)bytes) return;
    wb_text out = {.data = NULL};
    wb_json_quote(&out, text);
    const wb_file file = {.path = path};
    wb_arena arena = {.blocks = NULL};
    const wb_json *again = wb_json_parse(&file, &arena, out.data, out.size, 0);
    DEMAND(wb_json_is(again, text));
    wb_arena_release(&arena);
    wb_text_release(&out);
}

/* Nesting is bounded by the parser. */
static void walk(const wb_json *value, int64_t size) {
    DEMAND(value->offset >= 0 && value->offset < size);
    if (value->kind == WB_JSON_TEXT) check_text(value->text, value->count);
    if (value->kind < WB_JSON_LIST) return;
    for (int64_t i = 0; i < value->count; i++) {
        const wb_json *item = &value->items[i];
        DEMAND((item->name != NULL) == (value->kind == WB_JSON_OBJECT));
        if (item->name) {
            check_text(item->name, item->name_bytes);
            DEMAND(wb_json_find(value, item->name, item->name_bytes) == item);
        }
        walk(item, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const wb_file file = {.path = path};
    wb_arena arena = {.limit_bytes = (int64_t)size * 32 + (1 << 10)};
    wb_clear_error();
    const wb_json *root = wb_json_parse(&file, &arena, (const char *)data, size, 0);
    DEMAND((root == NULL) == wb_failed());
    if (root)
        walk(root, (int64_t)size);
    else
        DEMAND(strstr(wb_error_message(), "fuzz, offset ") && wb_error_status() == WB_ERROR_FORMAT);
    wb_arena_release(&arena);
    wb_clear_error();
    return 0;
}
