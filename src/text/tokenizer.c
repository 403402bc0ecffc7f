/* The tokenizer: reading tokenizer.json, and questions. */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array/use.h"
#include "base/memory.h"

static void tokenizer_free(void *object) {
    wb_tokenizer *t = object;
    wb_token_model_release(&t->model);
    wb_steps_release(&t->normalisers);
    wb_steps_release(&t->splitters);
    wb_release(t->template.ids);
    wb_release(t->decoders);
    wb_release(t->added);
    wb_vocabulary_release(&t->added_texts);
    wb_vocabulary_release(&t->plain);
    wb_vocabulary_release(&t->normal);
    wb_regex_library_close(&t->regexes);
    wb_arena_release(&t->arena);
    wb_object_delete(t, sizeof *t, "tokenizer");
}

static const wb_class tokenizer_class = {
    .name = "tokenizer", .maker = "wb_tokenizer_load", .free = tokenizer_free};

bool wb_tokenizer_check(const char *function, const wb_tokenizer *tokenizer) {
    return wb_may_use(function, tokenizer, &tokenizer_class, "the tokenizer");
}

/* ---- added tokens ---- */

static wb_status normalise_added(wb_tokenizer *t, wb_added *added) {
    wb_pieces pieces = {.count = 0};
    const bool is_fine = wb_pieces_add(&pieces, added->entry.text, added->entry.bytes, false) &&
                         wb_steps_run(&t->normalisers, &pieces);
    if (is_fine) {
        added->normalised_bytes = pieces.text.size;
        added->normalised =
            wb_arena_text(&t->arena, pieces.text.size ? pieces.text.data : "", pieces.text.size);
    }
    wb_pieces_release(&pieces);
    return added->normalised ? WB_OK : wb_error_status();
}

static wb_status read_added(wb_tokenizer *t, const wb_json *json, wb_added *added) {
    size_t bytes;
    int64_t id;
    const wb_json *given = wb_json_get(json, "id");
    wb_status status = wb_member_text(t, json, "content", &added->entry.text, &bytes);
    if (status != WB_OK) return status;
    if (bytes > WB_TOKEN_BYTES)
        return wb_json_fault(t->file, json, "a token may have at most %d bytes", WB_TOKEN_BYTES);
    added->entry.bytes = (uint32_t)bytes;
    added->entry.id = wb_vocabulary_id(&t->model.vocabulary, added->entry.text, bytes);
    if (!wb_json_integer(given, &id) || id < 0 || id > INT32_MAX)
        return wb_json_fault(t->file, given ? given : json,
                             "the id of an added token must be an "
                             "integer from 0 to 2^31 - 1");
    if (added->entry.id < 0) added->entry.id = (int32_t)id;
    status = wb_member_bool(t, json, "special", false, &added->is_special);
    if (status == WB_OK)
        status = wb_member_bool(t, json, "single_word", false, &added->is_single_word);
    if (status == WB_OK) status = wb_member_bool(t, json, "lstrip", false, &added->strips_left);
    if (status == WB_OK) status = wb_member_bool(t, json, "rstrip", false, &added->strips_right);
    if (status == WB_OK)
        status = wb_member_bool(t, json, "normalized", true, &added->is_normalised);
    const uint64_t since = wb_error_count();
    if (status == WB_OK && added->is_single_word && wb_unicode_open(&t->unicode) != WB_OK)
        status = wb_error_at(t, json, since);
    if (status == WB_OK && added->is_normalised) status = normalise_added(t, added);
    if (status != WB_OK) return status;
    const char *begin = added->is_normalised ? added->normalised : added->entry.text;
    if (*begin) t->begins[(unsigned char)*begin] = true;
    return WB_OK;
}

static int by_id(const void *a, const void *b) {
    const wb_added *left = a, *right = b;
    return (left->entry.id > right->entry.id) - (left->entry.id < right->entry.id);
}

static bool room_for(wb_vocabulary *v, int64_t count) {
    v->entries = wb_alloc_list(count + 1, sizeof *v->entries);
    return v->entries;
}

static void put(wb_vocabulary *v, const char *text, size_t bytes, int64_t place) {
    v->entries[v->count++] =
        (wb_entry){.text = text, .bytes = (uint32_t)bytes, .id = INT32_MAX - (int32_t)place};
}

static wb_status sort_added(wb_tokenizer *t) {
    const int64_t count = t->added_count;
    if (count) qsort(t->added, (size_t)count, sizeof *t->added, by_id);
    if (!room_for(&t->added_texts, count) || !room_for(&t->plain, count) ||
        !room_for(&t->normal, count))
        return WB_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const wb_added *one = &t->added[i];
        put(&t->added_texts, one->entry.text, one->entry.bytes, i);
        if (!one->is_normalised)
            put(&t->plain, one->entry.text, one->entry.bytes, i);
        else if (one->normalised_bytes)
            put(&t->normal, one->normalised, one->normalised_bytes, i);
    }
    const bool is_fine = wb_vocabulary_sort(&t->added_texts) && wb_vocabulary_sort(&t->plain) &&
                         wb_vocabulary_sort(&t->normal);
    return is_fine ? WB_OK : WB_ERROR_MEMORY;
}

const wb_added *wb_added_of(const wb_tokenizer *t, int32_t id) {
    int64_t begin = 0, end = t->added_count;
    while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        if (t->added[middle].entry.id < id)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < t->added_count && t->added[begin].entry.id == id ? &t->added[begin] : NULL;
}

const wb_added *wb_added_named(const wb_tokenizer *t, const char *text, size_t bytes) {
    const int32_t id = wb_vocabulary_id(&t->added_texts, text, bytes);
    return id < 0 ? NULL : &t->added[INT32_MAX - id];
}

static wb_status read_all_added(wb_tokenizer *t, const wb_json *json) {
    const wb_json *list = wb_json_get(json, "added_tokens");
    if (!list || list->kind == WB_JSON_NULL) return WB_OK;
    if (list->kind != WB_JSON_LIST)
        return wb_json_fault(t->file, list, "added_tokens must be a list, but is %s",
                             wb_json_noun(list));
    t->added = wb_alloc_list(list->count + 1, sizeof *t->added);
    if (!t->added) return WB_ERROR_MEMORY;
    wb_status status = WB_OK;
    for (int64_t i = 0; i < list->count && status == WB_OK; i++) {
        wb_added added = {.is_special = false};
        status = read_added(t, &list->items[i], &added);
        if (status == WB_OK && added.entry.bytes) t->added[t->added_count++] = added;
    }
    return status == WB_OK ? sort_added(t) : status;
}

/* ---- the file ---- */

static wb_status read_root(wb_tokenizer *t, const wb_json *root) {
    const wb_json *model = wb_json_get(root, "model");
    if (!model)
        return wb_json_fault(t->file, root, "there is no \"model\": this is not a tokenizer.json");
    wb_status status = wb_token_model_read(&t->model, t->file, &t->arena, model);
    if (status == WB_OK) status = wb_normalisers_read(t, wb_json_get(root, "normalizer"));
    if (status == WB_OK) status = wb_splitters_read(t, wb_json_get(root, "pre_tokenizer"));
    if (status == WB_OK) status = wb_template_read(t, wb_json_get(root, "post_processor"));
    if (status == WB_OK) status = wb_decoders_read(t, wb_json_get(root, "decoder"));
    return status == WB_OK ? read_all_added(t, root) : status;
}

/* The file itself, or tokenizer.json in a folder. */
static char *file_of(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return wb_copy_text(path);
    const size_t room = strlen(path) + sizeof "/tokenizer.json";
    char *file = wb_alloc(room);
    if (file) (void)snprintf(file, room, "%s/tokenizer.json", path);
    return file;
}

static wb_tokenizer *read_file(wb_file *file, const wb_json *root) {
    wb_tokenizer *t = wb_object_new(&tokenizer_class, sizeof *t);
    if (!t) return NULL;
    t->file = file;
    const wb_status status = read_root(t, root);
    t->file = NULL;
    if (status == WB_OK) return t;
    tokenizer_free(t);
    return NULL;
}

wb_tokenizer *wb_tokenizer_load(const char *path) {
    if (!path) return wb_failed() ? NULL : wb_fail_argument_null("wb_tokenizer_load", "the path");
    char *name = file_of(path);
    const wb_json *root;
    wb_file *file = name ? wb_json_open(name, &root) : NULL;
    wb_tokenizer *t = file ? read_file(file, root) : NULL;
    wb_free(file);
    wb_release(name);
    return t;
}

/* ---- questions ---- */

int64_t wb_tokenizer_size(const wb_tokenizer *tokenizer) {
    if (!tokenizer || !wb_tokenizer_check("wb_tokenizer_size", tokenizer)) return 0;
    const wb_vocabulary *v = &tokenizer->model.vocabulary;
    int64_t size = v->count ? v->entries[v->by_id[v->count - 1]].id + (int64_t)1 : 0;
    const int64_t last = tokenizer->added_count - 1;
    if (last >= 0 && tokenizer->added[last].entry.id >= size)
        size = tokenizer->added[last].entry.id + (int64_t)1;
    return size;
}

int32_t wb_tokenizer_id(const wb_tokenizer *tokenizer, const char *token) {
    if (!wb_tokenizer_check("wb_tokenizer_id", tokenizer)) return -1;
    if (!token) {
        if (!wb_failed()) (void)wb_fail_argument_null("wb_tokenizer_id", "the token");
        return -1;
    }
    const wb_added *added = wb_added_named(tokenizer, token, strlen(token));
    return added ? added->entry.id
                 : wb_vocabulary_id(&tokenizer->model.vocabulary, token, strlen(token));
}

const char *wb_tokenizer_token(const wb_tokenizer *tokenizer, int32_t id) {
    if (!wb_tokenizer_check("wb_tokenizer_token", tokenizer)) return NULL;
    const wb_added *added = wb_added_of(tokenizer, id);
    if (added) return added->entry.text;
    const wb_entry *entry = wb_vocabulary_entry(&tokenizer->model.vocabulary, id);
    return entry ? entry->text : NULL;
}
