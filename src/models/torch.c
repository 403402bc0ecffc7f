/* The text of a rename table, made from a PyTorch file and a model: a row for each array. */
#include "models/torch.h"

#include <string.h>

#include "base/memory.h"
#include "models/flux.h"
#include "models/load.h"

/* ---- trees ---- */

void *wb_torch_take(wb_torch *t, size_t size_bytes) { return wb_arena_take(&t->arena, size_bytes); }

wb_torch_node *wb_torch_node_new(wb_torch *t, wb_torch_kind kind, const char *name) {
    wb_torch_node *node = wb_torch_take(t, sizeof *node);
    if (node) *node = (wb_torch_node){.kind = kind, .name = name, .begin = -1};
    return node;
}

/* Room for one more in a list of the arena; the old one stays there. */
static bool grow(wb_torch *t, void **items, size_t item_bytes, int64_t count, int64_t *capacity) {
    if (count < *capacity) return true;
    const int64_t wanted = *capacity ? 2 * *capacity : 4;
    void *more = wb_arena_list(&t->arena, wanted, item_bytes);
    if (more && count) memcpy(more, *items, (size_t)count * item_bytes);
    if (more) *items = more, *capacity = wanted;
    return more != NULL;
}

bool wb_torch_add(wb_torch *t, wb_torch_node *node, wb_torch_node *item) {
    if (!grow(t, (void **)&node->items, sizeof(wb_torch_node *), node->count, &node->capacity))
        return false;
    node->items[node->count++] = item, node->left++;
    item->parent = node;
    return true;
}

wb_torch_array *wb_torch_add_array(wb_torch *t, wb_torch_node *unit) {
    if (!grow(t, (void **)&unit->arrays, sizeof *unit->arrays, unit->array_count,
              &unit->array_capacity))
        return NULL;
    return &unit->arrays[unit->array_count++];
}

/* ---- rows ---- */

void wb_torch_put_name(wb_text *text, const char *name) {
    const bool needs_quotes = strpbrk(name, " \t\r#*") != NULL;
    wb_text_add(text, needs_quotes ? "\"%s\"" : "%s", name);
}

static void put_row(wb_torch *t, const char *from, const char *to, const char *options) {
    wb_torch_put_name(&t->table, from);
    wb_text_put(&t->table, " -> ");
    wb_torch_put_name(&t->table, to);
    wb_text_add(&t->table, "%s%s\n", *options ? " " : "", options);
}

/* What is cut there is joined here, and what is dropped is added; transpose, flip and permute 2,1,0
 * undo themselves. */
static void put_row_back(wb_torch *t, const char *theirs, const char *ours, const char *options) {
    const char *part = strstr(options, "part ");
    wb_text from = {.data = NULL}, turn = {.data = NULL};
    wb_text_add(&from, "%s.%s", t->back, ours);
    wb_text_add(&turn, "%s%.*s%s%s", strncmp(options, "squeeze ", 8) == 0 ? "un" : "",
                part ? (int)(part - options) : (int)strlen(options), options, part ? "into " : "",
                part ? part + 5 : "");
    if (from.data && turn.data) put_row(t, from.data, theirs, turn.data);
    wb_text_release(&from), wb_text_release(&turn);
}

/* The places that are tied to the array get it, too. */
static void put_ties(wb_torch *t, const wb_torch_array *array, const char *from) {
    for (const wb_torch_tie *tie = t->ties; tie; tie = tie->next)
        if (strcmp(tie->first.name, array->name) == 0)
            put_row(t, from, tie->array.name, tie->array.forms[0].options);
}

static void put_pair(wb_torch *t, const wb_torch_pair *p) {
    for (int64_t i = 0; i < p->layer->array_count; i++) {
        const wb_torch_array *array = &p->layer->arrays[i], *found;
        const wb_torch_form *form = wb_torch_form_in(p->module, array, &found);
        if (!form) continue;
        if (t->back)
            put_row_back(t, found->name, array->name, form->options);
        else
            put_row(t, found->name, array->name, form->options), put_ties(t, array, found->name);
    }
}

/* ---- the table ---- */

/* Matches, with each place of a tied array as an array of the file; if that does not fit, all of
 * them as one, as safetensors of other libraries have them. */
static const wb_torch_pair *match_ties(wb_torch *t, wb_layer *model, int64_t *count) {
    t->ties_are_once = false;
    const wb_torch_pair *pairs = wb_torch_read_model(t, model) ? wb_torch_match(t, count) : NULL;
    if (pairs || wb_error_status() == WB_ERROR_MEMORY) return pairs;
    wb_error_aside first;
    wb_error_put_aside(&first);
    t->ties_are_once = true;
    const bool has_ties = wb_torch_read_model(t, model) && t->ties;
    pairs = has_ties ? wb_torch_match(t, count) : NULL;
    if (pairs) return pairs;
    wb_clear_error();
    wb_error_bring_back(&first);
    return NULL;
}

/* If Linears do not fit, modules with the names of Hugging Face's Conv1D are such, all of them: a
 * square one is told by the others. */
static const wb_torch_pair *match_any(wb_torch *t, wb_layer *model, int64_t *count) {
    const wb_torch_pair *pairs = match_ties(t, model, count);
    wb_error_aside first;
    if (pairs || wb_error_status() != WB_ERROR_SHAPE || !wb_torch_take_conv1d(t)) return pairs;
    wb_error_put_aside(&first);
    pairs = match_ties(t, model, count);
    if (pairs || wb_error_status() == WB_ERROR_MEMORY) return pairs;
    wb_clear_error();
    wb_error_bring_back(&first);
    return NULL;
}

static bool begin(wb_torch *t, const wb_record *root, const char *rename) {
    if (rename && wb_rename_parse(&t->given, rename) != WB_OK) return false;
    if (rename) wb_text_add(&t->table, "%s\n", rename);
    if (root->kind == WB_RECORD_MAP || root->kind == WB_RECORD_LIST)
        return wb_torch_read_file(t, root);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: a file of PyTorch's must have arrays by name",
                  t->file->path);
    return false;
}

const char *wb_torch_rows(wb_file *file, const wb_record *root, wb_layer *model, const char *rename,
                          const char *back) {
    wb_torch t = {.file = file, .back = back};
    const char *rows = NULL;
    int64_t count = 0;
    const wb_torch_pair *pairs = begin(&t, root, rename) && wb_model_evaluate(model) == WB_OK
                                     ? match_any(&t, model, &count)
                                     : NULL;
    for (int64_t i = 0; pairs && i < count; i++) put_pair(&t, &pairs[i]);
    if (pairs && wb_text_status(&t.table) == WB_OK)
        rows = wb_arena_text(&file->arena, t.table.data ? t.table.data : "", t.table.size);
    wb_text_release(&t.table);
    wb_rename_release(&t.given);
    wb_release(t.taken);
    wb_arena_release(&t.arena);
    return rows;
}

const char *wb_torch_table_for(wb_file *file, const wb_record *root, const wb_load_desc *desc) {
    const char *table = wb_torch_rows(file, root, desc->model, desc->rename, NULL);
    for (const char *at = table; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        wb_log_line(WB_LOG_DEBUG, "rename table: %.*s", (int)strcspn(at, "\n"), at);
    return table;
}

const wb_record *wb_torch_state_dict(const wb_record *root) {
    static const char *const names[] = {"state_dict", "model_state_dict"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const wb_record *r = root->kind == WB_RECORD_MAP ? wb_record_below(root, names[i]) : NULL;
        if (r && r->kind == WB_RECORD_MAP) return r;
    }
    return root;
}

/* Below the key, or, without one, in all of the file where that fits. */
static const char *table_of(const char *function, wb_file *file, const char *key, wb_layer *model,
                            const char *rename, const char *back) {
    if (wb_failed()) return wb_not_run_null(function);
    if (!wb_file_check(function, file) || !wb_check_model(function, model)) return NULL;
    const wb_record *root = wb_flux_look(wb_model_record(file, key));
    if (!root) return NULL;
    const char *rows =
        wb_torch_rows(file, key ? root : wb_torch_state_dict(root), model, rename, back);
    wb_error_aside first;
    if (rows || key || root == file->root) return rows;
    wb_error_put_aside(&first);
    rows = wb_torch_rows(file, file->root, model, rename, back);
    if (rows) return rows;
    wb_clear_error();
    wb_error_bring_back(&first);
    return NULL;
}

const char *wb_torch_table(wb_file *file, const char *key, wb_layer *model, const char *rename) {
    return table_of("wb_torch_table", file, key, model, rename, NULL);
}

const char *wb_torch_table_back(wb_file *file, const char *key, wb_layer *model) {
    return table_of("wb_torch_table_back", file, key, model, NULL, "model");
}

bool wb_check_from(const char *function, const char *from) {
    if (!from || strcmp(from, "torch") == 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: .from must be \"torch\", got \"%.60s\"", function, from);
    return false;
}
