/* Reading "model": the vocabulary, and what is done with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer.h"

typedef struct reader {
    wb_token_model *model;
    wb_file *file;
    wb_arena *arena;
    const wb_json *json;
} reader;

static wb_status read_text(const reader *r, const char *name, const char **text) {
    const wb_json *value = wb_json_get(r->json, name);
    if (!value || value->kind == WB_JSON_NULL) return WB_OK;
    const char *given = wb_json_text(value);
    if (!given)
        return wb_json_fault(r->file, value, "%s must be a text, but is %s", name,
                             wb_json_noun(value));
    *text = wb_arena_text(r->arena, given, strlen(given));
    return *text ? WB_OK : WB_ERROR_MEMORY;
}

static wb_status read_bool(const reader *r, const char *name, bool *value) {
    const wb_json *given = wb_json_get(r->json, name);
    if (!given || given->kind == WB_JSON_NULL || wb_json_bool(given, value)) return WB_OK;
    return wb_json_fault(r->file, given, "%s must be true or false, but is %s", name,
                         wb_json_noun(given));
}

/* ---- vocabularies ---- */

static wb_status put_entry(const reader *r, const wb_json *place, wb_entry *entry, const char *text,
                           size_t bytes, int64_t id) {
    if (bytes > WB_TOKEN_BYTES)
        return wb_json_fault(r->file, place, "a token may have at most %d bytes", WB_TOKEN_BYTES);
    const char *copy = wb_arena_text(r->arena, text, bytes);
    if (!copy) return WB_ERROR_MEMORY;
    *entry = (wb_entry){.text = copy, .bytes = (uint32_t)bytes, .id = (int32_t)id};
    return WB_OK;
}

/* {"token": id, ...} */
static wb_status read_map(const reader *r, const wb_json *vocabulary) {
    wb_vocabulary *v = &r->model->vocabulary;
    for (int64_t i = 0; i < vocabulary->count; i++) {
        const wb_json *item = &vocabulary->items[i];
        int64_t id;
        if (!wb_json_integer(item, &id) || id < 0 || id > INT32_MAX)
            return wb_json_fault(r->file, item, "an id must be an integer from 0 to 2^31 - 1");
        const wb_status status =
            put_entry(r, item, &v->entries[i], item->name, item->name_bytes, id);
        if (status != WB_OK) return status;
        v->count = i + 1;
    }
    return WB_OK;
}

/* [["token", score], ...], whose ids are their places */
static wb_status read_scores(const reader *r, const wb_json *vocabulary) {
    wb_vocabulary *v = &r->model->vocabulary;
    double least = 0;
    for (int64_t i = 0; i < vocabulary->count; i++) {
        const wb_json *item = &vocabulary->items[i];
        double score;
        if (item->kind != WB_JSON_LIST || item->count != 2 || item->items[0].kind != WB_JSON_TEXT ||
            !wb_json_number(&item->items[1], &score))
            return wb_json_fault(r->file, item, "a token and its score are expected");
        const wb_json *text = &item->items[0];
        const wb_status status =
            put_entry(r, item, &v->entries[i], text->text, (size_t)text->count, i);
        if (status != WB_OK) return status;
        v->entries[i].score = score;
        v->count = i + 1;
        if (i == 0 || score < least) least = score;
    }
    r->model->unknown_score = least - 10; /* the penalty of sentencepiece */
    return WB_OK;
}

static wb_status read_vocabulary(const reader *r, wb_json_kind kind) {
    const wb_json *vocabulary = wb_json_get(r->json, "vocab");
    if (!vocabulary || vocabulary->kind != kind)
        return wb_json_fault(
            r->file, vocabulary ? vocabulary : r->json, "vocab must be %s, but is %s",
            kind == WB_JSON_LIST ? "a list" : "an object", wb_json_noun(vocabulary));
    wb_vocabulary *v = &r->model->vocabulary;
    v->entries = wb_alloc_list(vocabulary->count + 1, sizeof *v->entries);
    if (!v->entries) return WB_ERROR_MEMORY;
    const wb_status status =
        kind == WB_JSON_LIST ? read_scores(r, vocabulary) : read_map(r, vocabulary);
    if (status != WB_OK) return status;
    if (!wb_vocabulary_sort(v)) return WB_ERROR_MEMORY;
    for (int i = 0; i < 256; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "<0x%02X>", i);
        r->model->byte_ids[i] = wb_vocabulary_id(v, name, 6);
    }
    return WB_OK;
}

static wb_status read_unknown(const reader *r) {
    const char *text = NULL;
    const wb_status status = read_text(r, "unk_token", &text);
    r->model->unknown = text ? wb_vocabulary_id(&r->model->vocabulary, text, strlen(text)) : -1;
    if (status != WB_OK || !text || r->model->unknown >= 0) return status;
    return wb_json_fault(r->file, wb_json_get(r->json, "unk_token"),
                         "unk_token \"%.80s\" is not in the vocabulary", text);
}

/* ---- merges ---- */

static int by_pair(const void *a, const void *b) {
    const wb_merge *left = a, *right = b;
    if (left->left != right->left) return left->left < right->left ? -1 : 1;
    if (left->right != right->right) return left->right < right->right ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

/* "a b" or ["a", "b"] */
static bool halves_of(const wb_json *item, const char **left, size_t *left_bytes,
                      const char **right, size_t *right_bytes) {
    if (item->kind == WB_JSON_TEXT) {
        const char *space = memchr(item->text, ' ', (size_t)item->count);
        if (!space) return false;
        *left = item->text, *left_bytes = (size_t)(space - item->text);
        *right = space + 1, *right_bytes = (size_t)item->count - *left_bytes - 1;
        return !memchr(*right, ' ', *right_bytes);
    }
    if (item->kind != WB_JSON_LIST || item->count != 2 || item->items[0].kind != WB_JSON_TEXT ||
        item->items[1].kind != WB_JSON_TEXT)
        return false;
    *left = item->items[0].text, *left_bytes = (size_t)item->items[0].count;
    *right = item->items[1].text, *right_bytes = (size_t)item->items[1].count;
    return true;
}

static wb_status read_merge(const reader *r, const wb_json *item, wb_text *joined,
                            wb_merge *merge) {
    const wb_vocabulary *v = &r->model->vocabulary;
    const char *left, *right;
    size_t left_bytes, right_bytes;
    if (!halves_of(item, &left, &left_bytes, &right, &right_bytes))
        return wb_json_fault(r->file, item, "a merge must be two tokens");
    const size_t prefix = r->model->prefix ? strlen(r->model->prefix) : 0;
    joined->size = 0;
    wb_text_bytes(joined, left, left_bytes);
    if (right_bytes >= prefix) wb_text_bytes(joined, right + prefix, right_bytes - prefix);
    if (wb_text_status(joined) != WB_OK) return wb_text_status(joined);
    merge->left = wb_vocabulary_id(v, left, left_bytes);
    merge->right = wb_vocabulary_id(v, right, right_bytes);
    merge->id = joined->size ? wb_vocabulary_id(v, joined->data, joined->size) : -1;
    if (merge->left >= 0 && merge->right >= 0 && merge->id >= 0) return WB_OK;
    return wb_json_fault(r->file, item,
                         "a merge of \"%.*s\" and \"%.80s\", of which one, or the result, is not "
                         "in the vocabulary",
                         left_bytes < 80 ? (int)left_bytes : 80, left, right);
}

/* Of equal pairs the last one counts. */
static void drop_equal(wb_token_model *model) {
    int64_t count = 0;
    for (int64_t i = 0; i < model->merge_count; i++) {
        const wb_merge *next = i + 1 < model->merge_count ? &model->merges[i + 1] : NULL;
        const wb_merge one = model->merges[i];
        if (next && next->left == one.left && next->right == one.right) continue;
        model->merges[count++] = one;
    }
    model->merge_count = count;
}

static wb_status read_merges(const reader *r) {
    const wb_json *merges = wb_json_get(r->json, "merges");
    wb_token_model *model = r->model;
    if (!merges || merges->kind != WB_JSON_LIST)
        return wb_json_fault(r->file, merges ? merges : r->json, "merges must be a list, but is %s",
                             wb_json_noun(merges));
    model->merges = wb_alloc_list(merges->count + 1, sizeof *model->merges);
    if (!model->merges) return WB_ERROR_MEMORY;
    wb_text joined = {.data = NULL};
    wb_status status = WB_OK;
    for (int64_t i = 0; i < merges->count && status == WB_OK; i++) {
        model->merges[i].rank = (int32_t)i;
        status = read_merge(r, &merges->items[i], &joined, &model->merges[i]);
        model->merge_count = i + 1;
    }
    wb_text_release(&joined);
    if (status != WB_OK) return status;
    if (model->merge_count)
        qsort(model->merges, (size_t)model->merge_count, sizeof *model->merges, by_pair);
    drop_equal(model);
    return WB_OK;
}

/* ---- kinds of models ---- */

static wb_status read_bpe(const reader *r) {
    wb_token_model *model = r->model;
    const wb_json *dropout = wb_json_get(r->json, "dropout");
    double chance = 0;
    if (wb_json_number(dropout, &chance) && chance != 0)
        return wb_json_fault(r->file, dropout, "dropout is not supported");
    model->encode = wb_bpe_encode;
    wb_status status = read_text(r, "continuing_subword_prefix", &model->prefix);
    if (status == WB_OK) status = read_text(r, "end_of_word_suffix", &model->suffix);
    if (status == WB_OK) status = read_bool(r, "fuse_unk", &model->fuses_unknown);
    if (status == WB_OK) status = read_bool(r, "byte_fallback", &model->has_byte_fallback);
    if (status == WB_OK) status = read_bool(r, "ignore_merges", &model->ignores_merges);
    if (status == WB_OK) status = read_vocabulary(r, WB_JSON_OBJECT);
    if (status == WB_OK) status = read_unknown(r);
    return status == WB_OK ? read_merges(r) : status;
}

static wb_status read_wordpiece(const reader *r) {
    wb_token_model *model = r->model;
    const wb_json *most = wb_json_get(r->json, "max_input_chars_per_word");
    model->encode = wb_wordpiece_encode;
    model->most_characters = 100;
    model->prefix = "##";
    if (most && !wb_json_integer(most, &model->most_characters))
        return wb_json_fault(r->file, most, "max_input_chars_per_word must be an integer");
    wb_status status = read_text(r, "continuing_subword_prefix", &model->prefix);
    if (status == WB_OK) status = read_vocabulary(r, WB_JSON_OBJECT);
    return status == WB_OK ? read_unknown(r) : status;
}

static wb_status read_unigram(const reader *r) {
    wb_token_model *model = r->model;
    const wb_json *unknown = wb_json_get(r->json, "unk_id");
    int64_t id = -1;
    model->encode = wb_unigram_encode;
    wb_status status = read_bool(r, "byte_fallback", &model->has_byte_fallback);
    if (status == WB_OK) status = read_vocabulary(r, WB_JSON_LIST);
    if (status != WB_OK) return status;
    if (unknown && unknown->kind != WB_JSON_NULL &&
        (!wb_json_integer(unknown, &id) || id < 0 || id >= model->vocabulary.count))
        return wb_json_fault(r->file, unknown, "unk_id must be the place of a token");
    model->unknown = (int32_t)id;
    return WB_OK;
}

/* Old files do not say the type. */
static const char *type_of(const wb_json *json) {
    const char *type = wb_json_text(wb_json_get(json, "type"));
    if (type) return type;
    if (wb_json_get(json, "merges")) return "BPE";
    return wb_json_get(json, "unk_id") ? "Unigram" : "WordPiece";
}

wb_status wb_token_model_read(wb_token_model *model, wb_file *file, wb_arena *arena,
                              const wb_json *json) {
    static const struct {
        const char *name;
        wb_status (*read)(const reader *r);
    } kinds[] = {{"BPE", read_bpe}, {"WordPiece", read_wordpiece}, {"Unigram", read_unigram}};
    const reader r = {model, file, arena, json};
    model->unknown = -1;
    if (json->kind != WB_JSON_OBJECT)
        return wb_json_fault(file, json, "model must be an object, but is %s", wb_json_noun(json));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type_of(json), kinds[i].name) == 0) return kinds[i].read(&r);
    return wb_json_fault(file, json, "the model is \"%.80s\", which is not supported",
                         type_of(json));
}

void wb_token_model_release(wb_token_model *model) {
    wb_vocabulary_release(&model->vocabulary);
    wb_release(model->merges);
    model->merges = NULL;
}
