/* Any bytes as Julia's BSON: an error or a sound tree; what can be written again is read as the
 * same. */
#ifndef WB_FUZZ_BSON_CHECK_H
#define WB_FUZZ_BSON_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "formats/record.h"
#include "models/build.h"

static void demand(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "not so: %s (%s)\n", what, wb_error_message());
    abort();
}
#define DEMAND(condition) demand(condition, #condition)

/* As src/formats/file.c opens a file. */
static wb_status open_bytes(wb_file *file, const void *bytes, size_t size) {
    static char path[] = "fuzz";
    *file = (wb_file){.path = path,
                      .map = {bytes, (int64_t)size},
                      .arena = {.limit_bytes = (int64_t)size * 64 + (1 << 20)}};
    return wb_format_bson.read(file);
}

static void check_array(const wb_mapping *map, const wb_record *r) {
    const unsigned char *data = r->data;
    const int64_t count = wb_count_sizes(r->ndim, r->sizes);
    DEMAND(r->ndim <= WB_MAX_DIMS && r->dtype < WB_DTYPE_COUNT);
    DEMAND(count * (int64_t)wb_dtype_size((wb_dtype)r->dtype) == r->data_bytes);
    DEMAND(data >= map->bytes && data + r->data_bytes <= map->bytes + map->size_bytes);
}

/* True if there is nothing in it that only Julia can write. */
static bool check(const wb_mapping *map, const wb_record *r, int depth) {
    bool is_plain = r->kind != WB_RECORD_STRUCT && r->kind != WB_RECORD_OPAQUE;
    DEMAND(depth + r->depth <= WB_RECORD_DEPTH);
    DEMAND(r->number == 0);
    DEMAND(is_plain || r->type);
    DEMAND(r->kind != WB_RECORD_TEXT || r->text);
    if (r->kind == WB_RECORD_ARRAY) check_array(map, r);
    for (int64_t i = 0; i < r->count; i++) {
        DEMAND((r->kind == WB_RECORD_MAP) == (r->names != NULL));
        DEMAND(!r->names || r->names[i]);
        is_plain &= check(map, r->children[i], depth + 1);
    }
    return is_plain;
}

static void check_same(const wb_record *a, const wb_record *b) {
    DEMAND(a->kind == b->kind && a->count == b->count && a->data_bytes == b->data_bytes);
    DEMAND(a->integer == b->integer && memcmp(&a->real, &b->real, sizeof a->real) == 0);
    DEMAND(a->boolean == b->boolean && strcmp(a->text ? a->text : "", b->text ? b->text : "") == 0);
    DEMAND(!a->data_bytes || memcmp(a->data, b->data, (size_t)a->data_bytes) == 0);
    for (int64_t i = 0; i < a->count; i++) {
        if (a->names) DEMAND(strcmp(a->names[i], b->names[i]) == 0);
        check_same(a->children[i], b->children[i]);
    }
}

static void write_again(const wb_record *root) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&bytes, &size);
    DEMAND(stream != NULL);
    wb_text out = {.file = stream, .path = "fuzz"};
    const wb_status status = wb_format_bson.write(root, NULL, &out);
    DEMAND(fclose(stream) == 0);
    if (status == WB_OK) {
        wb_file file;
        DEMAND(open_bytes(&file, bytes, size) == WB_OK);
        check_same(root, file.root);
        wb_arena_release(&file.arena);
    }
    free(bytes);
}

static void drop_reference(void *file) { ((wb_file *)file)->refs--; }

/* Whatever the tree says of layers: a model or an error. Arrays that lie in the bytes hold the
 * file; nobody else does. */
static void build_model(wb_file *file) {
    static const wb_class counted = {.name = "file", .free = drop_reference};
    file->object.klass = &counted;
    file->refs = 1;
    wb_clear_error();
    wb_layer *model = wb_build(file, "model", file->root, NULL);
    DEMAND((model == NULL) == wb_failed());
    wb_free(model);
    DEMAND(file->refs == 1);
    wb_clear_error();
}

static void check_bson(const void *bytes, size_t size) {
    wb_file file;
    wb_clear_error();
    (void)wb_format_bson.recognises(&(wb_mapping){bytes, (int64_t)size});
    const wb_status status = open_bytes(&file, bytes, size);
    DEMAND(status == WB_OK || strstr(wb_error_message(), "fuzz, offset "));
    DEMAND(file.arena.used_bytes <= file.arena.limit_bytes);
    if (status == WB_OK && check(&file.map, file.root, 0)) write_again(file.root);
    if (status == WB_OK) build_model(&file);
    wb_arena_release(&file.arena);
}

#endif
