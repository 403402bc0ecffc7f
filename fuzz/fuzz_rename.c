/* Rename tables: the input is a table's text, a zero byte, and names with a zero byte after each.
 * Every name by itself against a matcher that does nothing but try; then all of them as a tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/rename.h"
#include "models/rename_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST_NAMES = 16, MOST_TRIED = 24 };

static void demand(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "not so: %s (%s)\n", what, wb_error_message());
    abort();
}
#define DEMAND(condition) demand(condition, #condition)

/* Everything that stars could take, one after another. */
static bool matches(const char *pattern, const char *name) {
    if (*pattern != '*') return *pattern == *name && (!*name || matches(pattern + 1, name + 1));
    const bool has_dots = pattern[1] == '*';
    for (const char *end = name; *end && (has_dots || *end != '.');)
        if (matches(pattern + 1 + has_dots, ++end)) return true;
    return false;
}

static bool has_sum(const wb_rename_row *row) {
    return row->to && (strchr(row->to, '+') || strchr(row->to, '-'));
}

static bool is_taken(const wb_rename_row *row, const char *name) {
    return row->is_pattern ? matches(row->from, name) : strcmp(row->from, name) == 0;
}

static void check_name(wb_rename_table *table, const char *name) {
    char to[WB_RENAME_BYTES];
    const wb_rename_row *row = wb_rename_find(table, NULL, name, to);
    if (row) DEMAND(!row->to || strlen(to) < sizeof to);
    if (wb_failed() || strlen(name) > MOST_TRIED) return;
    for (int64_t i = 0; i < table->count && &table->rows[i] != row; i++)
        DEMAND(has_sum(&table->rows[i]) || !is_taken(&table->rows[i], name));
    if (row) DEMAND(is_taken(row, name));
}

static void check_tree(const char *text, char **names, int64_t count) {
    static char path[] = "fuzz";
    static const unsigned char data[6];
    wb_file file = {.path = path, .arena = {.limit_bytes = 1 << 20}};
    wb_record *root = wb_record_new(&file.arena, WB_RECORD_MAP);
    if (!root || !wb_record_room(&file.arena, root, count, true)) abort();
    for (int64_t i = 0; i < count; i++) {
        wb_record *r = root->children[i] = wb_record_new(&file.arena, WB_RECORD_ARRAY);
        if (!r) abort();
        *r = (wb_record){.kind = WB_RECORD_ARRAY, .dtype = WB_U8, .ndim = 2, .sizes = {2, 3}};
        r->data = data, r->data_bytes = sizeof data;
        root->names[i] = names[i];
    }
    wb_record *renamed = wb_rename(&file, root, text);
    DEMAND((renamed == NULL) == wb_failed());
    for (int64_t i = 0; renamed && i < renamed->count; i++) DEMAND(renamed->names[i]);
    wb_arena_release(&file.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 2), *names[MOST_NAMES];
    if (!text) return 0;
    memcpy(text, bytes, size);
    text[size] = text[size + 1] = 0;
    int64_t count = 0;
    for (char *at = text + strlen(text) + 1; at < text + size && count < MOST_NAMES;) {
        names[count++] = at;
        at += strlen(at) + 1;
    }
    wb_rename_table table;
    wb_clear_error();
    if (wb_rename_parse(&table, text) == WB_OK) {
        for (int64_t i = 0; i < count; i++) check_name(&table, names[i]), wb_clear_error();
        check_tree(text, names, count);
    } else {
        DEMAND(strstr(wb_error_message(), "rename table, line "));
    }
    wb_rename_release(&table);
    wb_clear_error();
    free(text);
    return 0;
}
