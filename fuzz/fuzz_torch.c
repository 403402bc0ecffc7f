/* PyTorch's files without a table: the input says which layers a model has, and what becomes of
 * names, roles, sizes and the order in a file of their arrays. A file that is refused changes
 * nothing; of one that is accepted each array of the model is set, by one row of the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/flat.h"
#include "models/rename.h"
#include "models/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void demand(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "not so: %s (%s)\n", what, wb_error_message());
    abort();
}
#define DEMAND(condition) demand(condition, #condition)

/* ---- the input ---- */

static const uint8_t *next, *end;

/* From 0 to most - 1; 0 after the input's end. */
static unsigned take(unsigned most) { return next < end ? *next++ % most : 0; }

static const char *word(void) {
    static const char *const words[] = {
        "a",   "b", "fc", "conv1", "conv2", "layer", "q",    "key", "value",  "qkv", "emb",
        "wte", "0", "1",  "10",    "enc",   "dec",   "norm", "out", "c attn", "*",   "layers"};
    return words[take(sizeof words / sizeof *words)];
}

/* ---- a model ---- */

enum { MOST_LAYERS = 9, DEPTH = 3 };

static void put_list(wb_text *text, const char *head, int depth, int *left);

static void put_layer(wb_text *text, int depth, int *left) {
    static const char *const layers[] = {
        "Dense(4 => 4)",
        "Dense(4 => 4; bias=false)",
        "Dense(4 => 3; bias=false)",
        "BatchNorm(4)",
        "LayerNorm(4)",
        "RMSNorm(4)",
        "Embedding(4 => 4)",
        "PositionEmbedding(4 => 4)",
        "Conv((3,), 4 => 4)",
        "LSTM(4 => 4; bias_h=true)",
        "GRU(4 => 4; bias_h=true)",
        "relu",
        "Bidirectional(RNN(4 => 4; bias=false), RNN(4 => 4; bias=false))",
        "MultiHeadAttention(4; nheads=2)",
        "MultiHeadAttention(4; nheads=2, bias=true)",
        "ConvTranspose((2,), 4 => 2)",
        "EmbeddingBag(4 => 4, mean)",
        "Bilinear((4, 4) => 4)"};
    const unsigned kind = take(6);
    (*left)--;
    if (kind == 0 && depth > 0)
        put_list(text, "Chain(", depth - 1, left);
    else if (kind == 1 && depth > 0)
        put_list(text, "Parallel(+, ", depth - 1, left);
    else if (kind == 2 && depth > 0)
        put_list(text, "PairwiseFusion(+, ", depth - 1, left);
    else
        wb_text_put(text, layers[take(sizeof layers / sizeof *layers)]);
}

static void put_list(wb_text *text, const char *head, int depth, int *left) {
    const unsigned count = 1 + take(4);
    const bool has_names = take(4) == 3;
    wb_text_put(text, head);
    for (unsigned i = 0; i<count && * left> 0; i++) {
        wb_text_put(text, i ? ", " : "");
        if (has_names) wb_text_add(text, "%c%u = ", "abf"[take(3)], i);
        put_layer(text, depth, left);
    }
    wb_text_put(text, ")");
}

static wb_layer *make_model(void) {
    wb_text text = {.data = NULL};
    int left = MOST_LAYERS;
    put_list(&text, "Chain(", DEPTH, &left);
    wb_layer *model = text.data ? wb_parse(.text = text.data) : NULL;
    wb_text_release(&text);
    return model;
}

/* ---- a file of its arrays ---- */

enum { MOST_NUMBERS = 256, LEAST = 2 };

typedef struct maker {
    wb_file *file;
    wb_flat flat;
    float count; /* of arrays */
    int64_t number;
} maker;

/* Numbers of its own. */
static void add_array(maker *m, const char *path, const wb_torch_form *form) {
    wb_record *r = wb_record_new(&m->file->arena, WB_RECORD_ARRAY);
    if (!r) abort();
    r->dtype = WB_F32, r->ndim = (uint8_t)form->ndim;
    memcpy(r->sizes, form->sizes, sizeof r->sizes);
    if (take(32) == 31 && r->ndim > 0) r->sizes[take(r->ndim)] = take(5);
    if (take(64) == 63) r->ndim = (uint8_t)take(4);
    const int64_t count = wb_count_sizes(r->ndim, r->sizes);
    if (count > MOST_NUMBERS) return;
    float *numbers = wb_arena_take(&m->file->arena, sizeof *numbers * MOST_NUMBERS);
    if (!numbers) abort();
    for (int i = 0; i < MOST_NUMBERS; i++) numbers[i] = LEAST + m->count;
    m->count++;
    r->data = numbers, r->data_bytes = count * (int64_t)sizeof *numbers;
    if (!wb_flat_add(&m->flat, (wb_flat_entry){.path = path, .record = r})) abort();
}

static const char *path_of(maker *m, const char *module, const char *role) {
    wb_text text = {.data = NULL};
    const char *hash = strchr(role, '#');
    const int length = hash ? (int)(hash - role) : (int)strlen(role);
    wb_text_add(&text, "%s%s%.*s", module, *module ? "." : "", length, role);
    if (hash) wb_text_add(&text, "%u%s", take(3), hash + 1);
    const char *path = wb_arena_text(&m->file->arena, text.data, text.size);
    wb_text_release(&text);
    if (!path) abort();
    return path;
}

static void add_unit(maker *m, const wb_torch_node *unit) {
    static const char *const roles[] = {
        "weight", "bias", "running_mean", "weight_ih_l#", "num_batches_tracked", "in_proj_weight"};
    wb_text name = {.data = NULL};
    m->number++;
    for (unsigned i = 1 + take(3); i > 0; i--)
        wb_text_add(&name, "%s%s%.0lld", word(), i > 1 ? "." : "",
                    take(2) ? (long long)m->number : 0);
    for (int64_t i = 0; i < unit->array_count; i++) {
        const wb_torch_array *a = &unit->arrays[i];
        const char *role = a->forms[take((unsigned)a->form_count)].role;
        if (take(32) == 31) continue;
        if (take(32) == 31) role = roles[take(sizeof roles / sizeof *roles)];
        add_array(m, path_of(m, take(16) == 15 ? word() : name.data, role), &a->forms[0]);
    }
    wb_text_release(&name);
}

static void add_node(maker *m, const wb_torch_node *node) {
    if (node->kind == WB_TORCH_UNIT) {
        add_unit(m, node);
    } else if (node->kind == WB_TORCH_EITHER) {
        add_node(m, node->items[take((unsigned)node->count)]);
    } else {
        const unsigned turn = take(8) == 7 ? take((unsigned)node->count) : 0;
        for (int64_t i = 0; i < node->count; i++)
            add_node(m, node->items[(i + turn) % node->count]);
    }
}

/* False: two arrays have one name. */
static bool finish(maker *m) {
    const bool is_ordered = take(2);
    m->file->order = wb_arena_list(&m->file->arena, m->flat.count, sizeof *m->file->order);
    if (!m->file->order) abort();
    for (int64_t i = 0; i < m->flat.count; i++) m->file->order[i] = m->flat.entries[i].path;
    m->file->order_count = is_ordered ? m->flat.count : 0;
    m->file->root = wb_flat_nest(&m->flat, m->file);
    return m->file->root != NULL;
}

static wb_file *make_file(wb_layer *model) {
    maker m = {.file = wb_file_new("fuzz")};
    wb_torch t = {.file = m.file, .ties_are_once = take(2)};
    if (!m.file || !wb_torch_read_model(&t, model)) abort();
    if (t.model) add_node(&m, t.model);
    const bool good = finish(&m);
    wb_flat_release(&m.flat);
    wb_arena_release(&t.arena);
    if (!good) wb_free(m.file);
    return good ? m.file : NULL;
}

/* ---- what must be so ---- */

/* Of an array that is set: one number, more than a new layer has. */
static double sum_array(wb_array *x, bool is_set) {
    double total = 0;
    const int64_t count = wb_count(x);
    const float *numbers = wb_read_begin(x);
    DEMAND(numbers || count == 0);
    for (int64_t i = 0; i < count; i++) {
        total += numbers[i] * (double)(i + 1);
        if (is_set) DEMAND(numbers[i] >= LEAST && numbers[i] == numbers[0]);
    }
    wb_read_end(x);
    return total;
}

/* Of all arrays' numbers, each by its place. */
static double sum(const wb_record *r, bool is_set) {
    double total = r->kind == WB_RECORD_ARRAY && r->array ? sum_array(r->array, is_set) : 0;
    for (int64_t i = 0; i < r->count; i++) total = 3 * total + sum(r->children[i], is_set);
    return total;
}

static double sum_of(wb_layer *model, bool is_set) {
    wb_file *state = wb_state(model);
    DEMAND(state);
    const double total = sum(wb_file_root(state), is_set);
    wb_free(state);
    return total;
}

/* No two rows have the same right side. */
static void check_rows(const char *table) {
    const char *at = table;
    while ((at = strstr(at, " -> "))) {
        const size_t length = strcspn(at, "\n");
        const char *name = at + 4;
        const size_t name_bytes = strcspn(name, " \n");
        at += length;
        for (const char *other = at; (other = strstr(other, " -> ")); other += 4)
            DEMAND(strncmp(other + 4, name, name_bytes) != 0 ||
                   (other[4 + name_bytes] != ' ' && other[4 + name_bytes] != '\n'));
    }
}

static void check(wb_layer *model, wb_file *file) {
    const double before = sum_of(model, false);
    const char *table = wb_torch_rows(file, file->root, model, NULL, NULL);
    DEMAND((table == NULL) == wb_failed());
    DEMAND(sum_of(model, false) == before);
    if (!table) return;
    check_rows(table);
    file->root = wb_rename(file, file->root, table);
    DEMAND(file->root);
    DEMAND(wb_load_from(model, file) == WB_OK);
    (void)sum_of(model, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    next = bytes, end = size ? bytes + size : bytes;
    wb_clear_error();
    if (!wb_scope_begin()) abort();
    wb_layer *model = make_model();
    wb_file *file = model ? make_file(model) : NULL;
    wb_clear_error();
    if (file) check(model, file);
    wb_clear_error();
    wb_free(file), wb_free(model);
    (void)wb_scope_close();
    return 0;
}
