/* The arrays of a PyTorch file as modules: those whose names differ in the last part alone are one,
 * and each direction of each layer of a recurrent module is one. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/flat.h"
#include "models/flux.h"
#include "models/torch.h"

/* An array of the file. */
typedef struct entry {
    const char *name; /* below the root */
    size_t module_bytes;
    const char *role;
    int64_t part; /* of weight_ih_l1_reverse: 2 + 1; -1: none */
    const wb_record *record;
    int64_t at; /* its place in the file's order */
} entry;

typedef struct list {
    entry *entries;
    int64_t count, capacity;
} list;

/* ---- names ---- */

/* weight_ih_l1_reverse: the name is weight_ih_l#_reverse, the part 3. */
static const char *role_of(wb_torch *t, const char *last, int64_t *part) {
    static const char *const begins[] = {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l",
                                         "weight_hr_l"};
    *part = -1;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const size_t length = strlen(begins[i]);
        char *end;
        if (strncmp(last, begins[i], length) != 0 || last[length] < '0' || last[length] > '9')
            continue;
        const long number = strtol(last + length, &end, 10);
        const bool is_back = strcmp(end, "_reverse") == 0;
        if ((*end && !is_back) || number > 1 << 20) continue;
        char text[40];
        (void)snprintf(text, sizeof text, "%s#%s", begins[i], end);
        *part = 2 * number + is_back;
        return wb_arena_text(&t->arena, text, strlen(text));
    }
    return last;
}

/* Arrays that a model of images has itself, beside its modules; each is like a module. */
static bool is_alone(const char *last) {
    static const char *const names[] = {"class_token", "cls_token", "pos_embedding", "pos_embed",
                                        "layer_scale"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(last, names[i]) == 0) return true;
    return false;
}

static bool is_count(const char *name) {
    static const char count[] = "num_batches_tracked";
    const char *dot = strrchr(name, '.');
    return strcmp(dot ? dot + 1 : name, count) == 0;
}

/* Notes the places that rows of the user give the array to; *is_taken: there are such rows. */
static bool take_given(wb_torch *t, const char *name, bool *is_taken) {
    char to[WB_RENAME_BYTES];
    const wb_rename_row *row = wb_rename_find(&t->given, NULL, name, to);
    *is_taken = row != NULL;
    for (; row; row = wb_rename_find(&t->given, row, name, to)) {
        if (!row->to) continue;
        const char *copy = wb_arena_text(&t->arena, to, strlen(to));
        if (!copy || !WB_GROW(t->taken, t->taken_count, t->taken_capacity)) return false;
        t->taken[t->taken_count++] = copy;
    }
    return !wb_failed();
}

static bool add_entry(wb_torch *t, list *l, const char *name, const wb_record *r) {
    bool is_taken;
    if (!take_given(t, name, &is_taken)) return false;
    if (is_taken) return true;
    if (is_count(name) && t->back) return true;
    if (is_count(name)) {
        wb_torch_put_name(&t->table, name);
        wb_text_put(&t->table, " ->\n");
        return true;
    }
    const char *dot = strrchr(name, '.');
    entry e = {.name = name, .record = r, .at = l->count};
    const char *last = dot ? dot + 1 : name;
    e.module_bytes = is_alone(last) ? strlen(name) : dot ? (size_t)(dot - name) : 0;
    e.role = role_of(t, last, &e.part);
    if (!e.role || !WB_GROW(l->entries, l->count, l->capacity)) return false;
    l->entries[l->count++] = e;
    return true;
}

/* Recursive: no tree is deeper than WB_RECORD_DEPTH. */
static bool add_entries(wb_torch *t, list *l, const wb_record *r, const char *outer) {
    for (int64_t i = 0; i < r->count; i++) {
        const wb_record *child = wb_flux_look(r->children[i]);
        wb_text text = {.data = NULL};
        wb_text_add(&text, "%s%s", outer, *outer ? "." : "");
        if (r->names)
            wb_text_put(&text, r->names[i]);
        else
            wb_text_add(&text, "%lld", (long long)i + 1);
        const char *path =
            wb_text_status(&text) == WB_OK ? wb_arena_text(&t->arena, text.data, text.size) : NULL;
        wb_text_release(&text);
        if (!path) return false;
        if (wb_record_is_container(child) && !add_entries(t, l, child, path)) return false;
        if (child->kind == WB_RECORD_ARRAY && !add_entry(t, l, path, child)) return false;
    }
    return true;
}

/* ---- the order of the file ---- */

static int by_name(const void *a, const void *b) {
    const entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* Makes text, of which `used` bytes are there, the beginning of the paths below the wanted record.
 * Recursive: no tree is deeper than WB_RECORD_DEPTH. */
static bool find_path(const wb_record *r, const wb_record *wanted, char text[WB_RENAME_BYTES],
                      size_t used) {
    text[used] = 0;
    if (r == wanted) return true;
    for (int64_t i = 0; r->kind == WB_RECORD_MAP && i < r->count; i++) {
        const size_t room = WB_RENAME_BYTES - used, length = strlen(r->names[i]) + 1;
        if (r->children[i]->kind != WB_RECORD_MAP || length >= room) continue;
        (void)snprintf(text + used, room, "%s.", r->names[i]);
        if (find_path(r->children[i], wanted, text, used + length)) return true;
    }
    return false;
}

/* Gives the entries their places in the file's order; false if not all of them are in it. */
static bool set_order(const wb_file *file, list *l, const wb_record *root) {
    char before[WB_RENAME_BYTES];
    if (!file->order_count || !find_path(file->root, root, before, 0)) return false;
    const size_t length = strlen(before);
    if (l->count) qsort(l->entries, (size_t)l->count, sizeof *l->entries, by_name);
    for (int64_t i = 0; i < l->count; i++) l->entries[i].at = -1;
    for (int64_t i = 0; i < file->order_count; i++) {
        if (strncmp(file->order[i], before, length) != 0) continue;
        const entry key = {.name = file->order[i] + length};
        entry *e =
            l->count ? bsearch(&key, l->entries, (size_t)l->count, sizeof key, by_name) : NULL;
        if (e && e->at < 0) e->at = i;
    }
    for (int64_t i = 0; i < l->count; i++)
        if (l->entries[i].at < 0) return false;
    return true;
}

/* ---- modules ---- */

static int by_module(const void *a, const void *b) {
    const entry *left = a, *right = b;
    const size_t length =
        left->module_bytes < right->module_bytes ? left->module_bytes : right->module_bytes;
    const int order = memcmp(left->name, right->name, length);
    if (order) return order;
    if (left->module_bytes != right->module_bytes)
        return left->module_bytes < right->module_bytes ? -1 : 1;
    if (left->part != right->part) return left->part < right->part ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

static bool same_module(const entry *a, const entry *b) {
    return a->module_bytes == b->module_bytes && a->part == b->part &&
           memcmp(a->name, b->name, a->module_bytes) == 0;
}

static wb_torch_node *unit_of(wb_torch *t, const entry *e, int64_t count) {
    wb_torch_node *unit = wb_torch_node_new(t, WB_TORCH_UNIT, NULL);
    if (!unit || !(unit->path = wb_arena_text(&t->arena, e->name, e->module_bytes))) return NULL;
    unit->at = e->at;
    if (e->part >= 0) unit->word = "l", unit->word_bytes = 1, unit->number = e->part;
    for (int64_t i = 0; i < count; i++) {
        wb_torch_array *a = wb_torch_add_array(t, unit);
        if (!a) return NULL;
        *a = (wb_torch_array){.name = e[i].name, .role = e[i].role, .record = e[i].record};
        if (e[i].at < unit->at) unit->at = e[i].at;
    }
    return unit;
}

static int by_place(const void *a, const void *b) {
    const wb_torch_node *const *left = a, *const *right = b;
    return ((*left)->at > (*right)->at) - ((*left)->at < (*right)->at);
}

static int by_path(const void *a, const void *b) {
    const wb_torch_node *const *left = a, *const *right = b;
    const int order = wb_path_compare((*left)->path, (*right)->path);
    return order ? order
                 : ((*left)->number > (*right)->number) - ((*left)->number < (*right)->number);
}

/* ---- the tree of names ---- */

/* "layer10": the word layer, the number 10. */
static void set_number(wb_torch_node *node) {
    size_t length = strlen(node->name), digits = 0;
    while (digits < length && digits < 9 && node->name[length - digits - 1] >= '0' &&
           node->name[length - digits - 1] <= '9')
        digits++;
    if (!digits) return;
    node->word = node->name, node->word_bytes = length - digits;
    node->number = strtoll(node->name + length - digits, NULL, 10);
}

/* Adds an item, and finds the one of the same word that comes before: names are sorted, so that it
 * is near. */
static bool add_item(wb_torch *t, wb_torch_node *node, wb_torch_node *item) {
    enum { MOST_BETWEEN = 100 };
    const int64_t last = node->count - 1;
    for (int64_t i = last; item->word && !item->before && i >= 0 && i > last - MOST_BETWEEN; i--) {
        const wb_torch_node *other = node->items[i];
        if (other->word && other->word_bytes == item->word_bytes &&
            memcmp(other->word, item->word, item->word_bytes) == 0)
            item->before = other;
    }
    return wb_torch_add(t, node, item);
}

/* The node at the path, made where it is not there; units come sorted, so that it can only be the
 * last item of its parent. */
static wb_torch_node *node_at(wb_torch *t, const char *path) {
    wb_torch_node *node = t->modules;
    for (const char *at = path; *at;) {
        const size_t length = strcspn(at, ".");
        wb_torch_node *last = node->count ? node->items[node->count - 1] : NULL;
        const bool is_it = last && last->kind == WB_TORCH_NAMES && strlen(last->name) == length &&
                           memcmp(last->name, at, length) == 0;
        if (!is_it) {
            const char *name = wb_arena_text(&t->arena, at, length);
            last = name ? wb_torch_node_new(t, WB_TORCH_NAMES, name) : NULL;
            if (last) set_number(last);
            if (!last || !add_item(t, node, last)) return NULL;
        }
        node = last;
        at += length + (at[length] == '.');
    }
    return node;
}

/* Those of GPT-2 and its like; a Linear may have them, too. */
bool wb_torch_take_conv1d(wb_torch *t) {
    static const char *const names[] = {"c_attn", "c_proj", "c_fc", "q_attn"};
    bool has_any = false;
    for (int64_t i = 0; i < t->module_count; i++) {
        const char *dot = strrchr(t->units[i]->path, '.');
        const char *last = dot ? dot + 1 : t->units[i]->path;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(last, names[k]) == 0) has_any = t->units[i]->is_conv1d = true;
    }
    return has_any;
}

/* Forgets where the unit was; numbers in names stay. */
static void set_free(wb_torch_node *unit) {
    unit->parent = NULL, unit->before = NULL, unit->mate = NULL;
}

bool wb_torch_arrange(wb_torch *t, wb_torch_order order) {
    static const wb_torch_kind kinds[] = {WB_TORCH_SEQUENCE, WB_TORCH_NAMES, WB_TORCH_BRANCHES};
    const bool has_names = order == WB_TORCH_BY_NAMES;
    t->modules = wb_torch_node_new(t, kinds[order], NULL);
    if (!t->modules) return false;
    if (t->module_count)
        qsort(t->units, (size_t)t->module_count, sizeof *t->units, has_names ? by_path : by_place);
    for (int64_t i = 0; i < t->module_count; i++) {
        set_free(t->units[i]);
        wb_torch_node *node = has_names ? node_at(t, t->units[i]->path) : t->modules;
        if (!node) return false;
        if (!(has_names ? add_item : wb_torch_add)(t, node, t->units[i])) return false;
    }
    return true;
}

static bool make_units(wb_torch *t, list *l) {
    t->units = wb_arena_list(&t->arena, l->count + 1, sizeof *t->units);
    bool good = t->units != NULL;
    if (good && l->count) qsort(l->entries, (size_t)l->count, sizeof *l->entries, by_module);
    for (int64_t i = 0, end; good && i < l->count; i = end) {
        for (end = i + 1; end < l->count && same_module(&l->entries[i], &l->entries[end]);) end++;
        t->units[t->module_count] = unit_of(t, &l->entries[i], end - i);
        good = t->units[t->module_count++] != NULL;
    }
    return good;
}

bool wb_torch_read_file(wb_torch *t, const wb_record *root) {
    list l = {.count = 0};
    bool good = add_entries(t, &l, root, "") && wb_text_status(&t->table) == WB_OK;
    t->is_ordered = good && set_order(t->file, &l, root);
    good = good && !wb_failed() && make_units(t, &l);
    wb_release(l.entries);
    return good;
}
