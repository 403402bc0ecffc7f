/* Pairs the layers of a model with the modules of a file, one after another: of each side those
 * that may come next are tried, and the search goes back where none fits. Where two modules could
 * be the same layer, it does not guess: names must say which, and a file's order, which is that in
 * which a program makes modules, may only agree. */
#include <string.h>

#include "base/memory.h"
#include "models/torch.h"

/* Of all searches: more tries are as good as no end; each module takes some of the stack. */
enum { MOST_TRIES = 1 << 20, MOST_MODULES = 1 << 13 };

typedef struct nodes {
    wb_torch_node **items;
    int64_t count, capacity;
} nodes;

typedef enum outcome { NONE, ONE, EITHER, FAILED } outcome;

typedef struct search {
    wb_torch *torch;
    bool is_strict;       /* modules within modules are layers within layers */
    nodes candidates;     /* a stack */
    wb_torch_pair *pairs; /* of the last solution */
    wb_torch_pair *now;   /* of this try */
    int64_t count, capacity, step, tries;
    int64_t best; /* the most pairs that were found, and what came next */
    wb_torch_pair best_next;
    wb_torch_doubt doubt;
} search;

/* ---- what comes next ---- */

static bool push(search *s, wb_torch_node *node) {
    nodes *c = &s->candidates;
    if (!WB_GROW(c->items, c->count, c->capacity)) return false;
    c->items[c->count++] = node;
    return true;
}

/* Pushes the units below the node that may come next. */
static bool push_next(search *s, wb_torch_node *node) {
    if (node->kind == WB_TORCH_UNIT) return push(s, node);
    if (node->kind == WB_TORCH_EITHER && node->chosen) return push_next(s, node->chosen);
    for (int64_t i = 0; i < node->count; i++) {
        wb_torch_node *item = node->items[i];
        if (item->is_done || (item->before && !item->before->is_done)) continue;
        if (!push_next(s, item)) return false;
        if (node->kind == WB_TORCH_SEQUENCE) break;
    }
    return true;
}

/* The innermost node that has begun and is not done: what is next is in it. */
static wb_torch_node *open_of(wb_torch_node *last, wb_torch_node *root) {
    while (last && last->is_done) last = last->parent;
    return last ? last : root;
}

/* ---- taking a unit, and giving it back ---- */

static void take(wb_torch_node *unit, int64_t step) {
    for (wb_torch_node *n = unit, *inner = NULL; n; inner = n, n = n->parent) {
        if (n->begin < 0) n->begin = step;
        if (inner && n->kind == WB_TORCH_EITHER) n->chosen = inner;
    }
    for (wb_torch_node *n = unit; n; n = n->parent) {
        if (n->kind == WB_TORCH_UNIT || n->kind == WB_TORCH_EITHER)
            n->is_done = true;
        else
            n->is_done = --n->left == 0;
        if (!n->is_done) break;
    }
}

static void give_back(wb_torch_node *unit, int64_t step) {
    for (wb_torch_node *n = unit; n; n = n->parent) {
        const bool was_done = n->is_done;
        n->is_done = false;
        if (n->kind != WB_TORCH_UNIT && n->kind != WB_TORCH_EITHER) n->left++;
        if (!was_done) break;
    }
    for (wb_torch_node *n = unit; n; n = n->parent) {
        if (n->begin != step) continue;
        n->begin = -1;
        if (n->kind == WB_TORCH_EITHER) n->chosen = NULL;
    }
}

/* A node that began within another one must end in it. ended has ended with this step; the nodes
 * around open are those of the other side. */
static bool crosses_any(const wb_torch_node *ended, const wb_torch_node *open) {
    for (; ended && ended->is_done; ended = ended->parent)
        for (const wb_torch_node *n = open; n; n = n->parent)
            if (!n->is_done && n->begin > ended->begin) return true;
    return false;
}

static bool crosses(const wb_torch_pair *p) {
    return crosses_any(p->layer, p->module) || crosses_any(p->module, p->layer);
}

/* ---- names ---- */

static bool is_part(const char *path, const char *name) {
    const size_t length = name ? strlen(name) : 0;
    for (const char *at = path; length && *at; at += *at == '.') {
        const size_t bytes = strcspn(at, ".");
        if (bytes == length && memcmp(at, name, length) == 0) return true;
        at += bytes;
    }
    return false;
}

static bool is_named(const wb_torch_node *node, const char *path) {
    return is_part(path, node->name) || is_part(path, node->torch);
}

static int count_names(const wb_torch_node *layer, const char *path) {
    int count = 0;
    for (const wb_torch_node *n = layer; n->parent; n = n->parent)
        count += n->parent->count > 1 && is_named(n, path);
    return count;
}

char wb_torch_head(const char *path) {
    static const char *const names[] = {"q",    "query", "queries", "wq",    "k",      "key",
                                        "keys", "wk",    "v",       "value", "values", "wv"};
    static const char heads[] = "qqqqkkkkvvvv";
    const char *dot = strrchr(path, '.');
    for (const char *at = dot ? dot + 1 : path; *at; at += *at == '_') {
        const size_t length = strcspn(at, "_");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strlen(names[i]) == length && strncasecmp(names[i], at, length) == 0)
                return heads[i];
        at += length;
    }
    return 0;
}

static bool is_fused_head(const char *path) {
    const char *dot = strrchr(path, '.'), *last = dot ? dot + 1 : path;
    return strstr(last, "qkv") || strstr(last, "QKV") || strcmp(last, "c_attn") == 0;
}

/* ---- what fits ---- */

static bool has_form(const wb_torch_node *module, const wb_torch_array *a, const wb_torch_form *f) {
    if (f->of == (module->is_conv1d ? WB_TORCH_LINEAR : WB_TORCH_CONV1D)) return false;
    return strcmp(a->role, f->role) == 0 && a->record->ndim == f->ndim &&
           memcmp(a->record->sizes, f->sizes, sizeof *f->sizes * (size_t)f->ndim) == 0 &&
           (!f->is_fused || is_fused_head(module->path));
}

const wb_torch_form *wb_torch_form_in(const wb_torch_node *module, const wb_torch_array *array,
                                      const wb_torch_array **found) {
    for (int i = 0; i < array->form_count; i++)
        for (int64_t k = 0; k < module->array_count; k++) {
            if (!has_form(module, &module->arrays[k], &array->forms[i])) continue;
            *found = &module->arrays[k];
            return &array->forms[i];
        }
    return NULL;
}

/* All arrays of the layer are in the module, and no others. */
static bool has_arrays(const wb_torch_node *layer, const wb_torch_node *module) {
    const wb_torch_array *found;
    for (int64_t i = 0; i < layer->array_count; i++)
        if (!wb_torch_form_in(module, &layer->arrays[i], &found)) return false;
    for (int64_t k = 0; k < module->array_count; k++) {
        bool is_used = false;
        for (int64_t i = 0; i < layer->array_count && !is_used; i++)
            is_used =
                wb_torch_form_in(module, &layer->arrays[i], &found) && found == &module->arrays[k];
        if (!is_used) return false;
    }
    return true;
}

/* A unit of the branch has such arrays, too. */
static bool may_be_in(const wb_torch_node *branch, const wb_torch_node *module) {
    if (branch->kind == WB_TORCH_UNIT) return has_arrays(branch, module);
    for (int64_t i = 0; i < branch->count; i++)
        if (may_be_in(branch->items[i], module)) return true;
    return false;
}

/* The module has the name of an item beside the layer's own, where it could be as well. */
static bool is_of_another(const wb_torch_node *layer, const wb_torch_node *module) {
    for (const wb_torch_node *n = layer; n->parent; n = n->parent) {
        if (n->parent->kind == WB_TORCH_EITHER || is_named(n, module->path)) continue;
        for (int64_t i = 0; i < n->parent->count; i++) {
            const wb_torch_node *other = n->parent->items[i];
            if (other != n && is_named(other, module->path) && may_be_in(other, module))
                return true;
        }
    }
    return false;
}

static bool fits(const wb_torch_node *layer, const wb_torch_node *module) {
    const char head = layer->head ? wb_torch_head(module->path) : 0;
    if (layer->head && head != (layer->head == 'o' ? 0 : layer->head)) return false;
    if (module->mate && module->mate != layer) return false;
    return has_arrays(layer, module) && !is_of_another(layer, module);
}

/* What a module whose word has begun already goes on from, layer2 from layer1; or NULL. */
static const wb_torch_node *begun(const wb_torch_node *module, const wb_torch_node *open) {
    const wb_torch_node *item = module;
    while (item->parent && item->parent != open) item = item->parent;
    return item->before;
}

/* An Embedding's weight has the sizes of a Linear's, such as the last one of a language model. */
static bool is_embedding(const wb_torch_node *layer, const wb_torch_node *module) {
    const wb_layer_class *k = layer->layer->class_;
    const char *dot = strrchr(module->path, '.'), *last = dot ? dot + 1 : module->path;
    const bool is_it = k == &wb_embedding_class || k == &wb_position_embedding_class ||
                       k == &wb_embedding_bag_class;
    return is_it &&
           (strcasestr(last, "emb") || strcmp(last, "wte") == 0 || strcmp(last, "wpe") == 0);
}

/* The higher, the rather is the module the layer; odd where it goes on. */
static int rank(const wb_torch_node *layer, const wb_torch_node *module,
                const wb_torch_node *open) {
    return 2 * count_names(layer, module->path) + 2 * is_embedding(layer, module) +
           (begun(module, open) != NULL);
}

/* ---- the search ---- */

static outcome go_on(search *s);

static outcome try_pair(search *s, wb_torch_node *layer, wb_torch_node *module) {
    outcome result = NONE;
    if (s->step == s->capacity) return NONE;
    s->now[s->step] = (wb_torch_pair){layer, module};
    take(layer, s->step), take(module, s->step);
    if (!s->is_strict || !crosses(&s->now[s->step])) {
        s->step++;
        result = go_on(s);
        s->step--;
    }
    give_back(module, s->step), give_back(layer, s->step);
    return result;
}

/* The pair of the layer, or the module, in the last solution; NULL: it has none. */
static const wb_torch_pair *pair_of(const search *s, const wb_torch_node *unit) {
    for (int64_t i = 0; i < s->count; i++)
        if (s->pairs[i].layer == unit || s->pairs[i].module == unit) return &s->pairs[i];
    return NULL;
}

static bool is_in(const wb_torch_node *n, const wb_torch_node *outer) {
    while (n && n != outer) n = n->parent;
    return n != NULL;
}

/* That `found` goes on in the layers where it began speaks for it, conv3 after conv2 in one branch,
 * but not if the other module is of these layers, too. */
static bool is_no_better(const search *s, const wb_torch_node *layer, const wb_torch_node *before,
                         const wb_torch_node *other) {
    const wb_torch_node *last = NULL, *both = layer;
    for (int64_t i = 0; i < s->count; i++)
        if (is_in(s->pairs[i].module, before)) last = s->pairs[i].layer;
    while (both && !is_in(last, both)) both = both->parent;
    return is_in(pair_of(s, other)->layer, both);
}

/* The modules from begin to end, those that fit best first; worse ones are not tried once one leads
 * to a solution, but for those that only do not go on. */
static outcome try_layer(search *s, wb_torch_node *layer, int64_t begin, int64_t end,
                         const wb_torch_node *open) {
    wb_torch_node *found = NULL;
    int best = -1;
    for (int64_t i = begin; i < end; i++) {
        const wb_torch_node *module = s->candidates.items[i];
        const int own = fits(layer, module) ? rank(layer, module, open) : -1;
        best = own > best ? own : best;
    }
    for (bool had_odd = false; best >= 0 && (!found || had_odd); best--) {
        const bool is_second = found != NULL;
        for (int64_t i = begin; i < end; i++) {
            wb_torch_node *module = s->candidates.items[i];
            if (!fits(layer, module) || rank(layer, module, open) != best) continue;
            if (is_second && !is_no_better(s, layer, begun(found, open), module)) continue;
            const outcome result = try_pair(s, layer, module);
            if (result == EITHER || result == FAILED) return result;
            if (result == NONE) continue;
            if (found) {
                s->doubt = (wb_torch_doubt){.layer = layer, .first = found, .second = module};
                return EITHER;
            }
            found = module;
        }
        had_odd = !is_second && best % 2 == 1;
    }
    return found ? ONE : NONE;
}

/* Of the modules from begin to end the one whose name is most like the layer's; NULL: none. */
static wb_torch_node *likeliest(const search *s, const wb_torch_node *layer, int64_t begin,
                                int64_t end, const wb_torch_node *open) {
    wb_torch_node *found = begin < end ? s->candidates.items[begin] : NULL;
    for (int64_t i = begin + 1; layer && i < end; i++) {
        wb_torch_node *module = s->candidates.items[i];
        if (rank(layer, module, open) > rank(layer, found, open)) found = module;
    }
    return found;
}

static void note_best(search *s, int64_t begin, int64_t middle, int64_t end,
                      const wb_torch_node *open) {
    if (s->step < s->best) return;
    if (s->step == s->best && (s->best_next.layer || s->best_next.module)) return;
    wb_torch_node *layer = begin < middle ? s->candidates.items[begin] : NULL;
    s->best = s->step;
    s->best_next = (wb_torch_pair){layer, likeliest(s, layer, middle, end, open)};
}

static outcome finish(search *s) {
    memcpy(s->pairs, s->now, sizeof *s->now * (size_t)s->step);
    s->count = s->step;
    return ONE;
}

static outcome go_on(search *s) {
    const wb_torch_pair *last = s->step ? &s->now[s->step - 1] : NULL;
    wb_torch *t = s->torch;
    wb_torch_node *model = t->model, *modules = t->modules;
    const bool no_layer = !model || model->is_done,
               no_module = !t->module_count || modules->is_done;
    if (no_layer && no_module) return finish(s);
    wb_torch_node *open = open_of(last ? last->module : NULL, modules);
    const int64_t begin = s->candidates.count;
    bool good = no_layer || push_next(s, open_of(last ? last->layer : NULL, model));
    const int64_t middle = s->candidates.count;
    good = good && (no_module || push_next(s, open));
    const int64_t end = s->candidates.count;
    s->tries += (end - middle) * (middle - begin) + 1;
    outcome result = good && s->tries < MOST_TRIES ? NONE : FAILED;
    if (good) note_best(s, begin, middle, end, open);
    for (int64_t i = begin; result == NONE && i < middle; i++)
        result = try_layer(s, s->candidates.items[i], middle, end, open);
    s->candidates.count = begin;
    return result;
}

static outcome search_from_start(search *s, bool is_strict) {
    s->is_strict = is_strict, s->step = 0;
    return go_on(s);
}

static outcome search_by(search *s, wb_torch_order order) {
    s->best = 0, s->best_next = (wb_torch_pair){NULL, NULL};
    outcome result = wb_torch_arrange(s->torch, order) ? search_from_start(s, true) : FAILED;
    if (result == NONE && order == WB_TORCH_BY_NAMES) result = search_from_start(s, false);
    return result;
}

static bool make_room(search *s) {
    wb_torch *t = s->torch;
    if (t->module_count > MOST_MODULES) {
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s: the file has %lld modules; at most %d are matched, so give a rename "
                      "table (.rename)",
                      t->file->path, (long long)t->module_count, MOST_MODULES);
        return false;
    }
    s->capacity = t->module_count;
    s->now = wb_torch_take(t, wb_bytes((int64_t)sizeof *s->now * (s->capacity + 1)));
    s->pairs = wb_torch_take(t, wb_bytes((int64_t)sizeof *s->pairs * (s->capacity + 1)));
    return s->now && s->pairs;
}

/* Notes the first pair by the order that is none by names; false: there is none. */
static bool find_doubt(search *s, const wb_torch_pair *by_order) {
    for (int64_t i = 0; i < s->count; i++) {
        const wb_torch_pair *named = pair_of(s, by_order[i].layer);
        if (named && named->module == by_order[i].module) continue;
        const wb_torch_node *second = named ? named->module : by_order[i].module;
        s->doubt = (wb_torch_doubt){by_order[i].layer, by_order[i].module, second, true};
        return true;
    }
    return false;
}

/* Whether the pairs of the last solution are possible in the file's order. */
static outcome try_in_order(search *s) {
    if (!wb_torch_arrange(s->torch, WB_TORCH_BY_FILE)) return FAILED;
    for (int64_t i = 0; i < s->count; i++) s->pairs[i].module->mate = s->pairs[i].layer;
    return search_from_start(s, true);
}

/* The file's order has the outcome so far. Names, or else sizes alone, must give one solution; the
 * order must allow it, unless it allows none. */
static outcome confirm(search *s, outcome by_order) {
    const search ordered = *s;
    if (!make_room(s)) return FAILED;
    outcome result = search_by(s, WB_TORCH_BY_NAMES);
    if (result == NONE && by_order == ONE) result = search_by(s, WB_TORCH_BY_NOTHING);
    if (result == ONE && by_order == ONE) {
        const bool differs = find_doubt(s, ordered.pairs);
        result = try_in_order(s);
        return result == NONE && differs ? EITHER : result;
    }
    if (result == ONE || result == EITHER || wb_failed()) return result;
    s->torch->told_by_names = by_order == NONE && s->best > ordered.best;
    if (!s->torch->told_by_names) s->best = ordered.best, s->best_next = ordered.best_next;
    return by_order == ONE ? result : NONE;
}

static void explain(const search *s, outcome result) {
    if (wb_failed()) return;
    if (result == EITHER)
        wb_torch_fail_either(s->torch, &s->doubt);
    else
        wb_torch_fail(s->torch, s->best, s->best_next.layer, s->best_next.module);
    if (result == FAILED)
        wb_error_add("this is as far as the search came; there are too many ways to go on, so give "
                     "rows for some of the modules (.rename)");
}

const wb_torch_pair *wb_torch_match(wb_torch *t, int64_t *count) {
    search s = {.torch = t};
    t->told_by_names = false;
    const wb_torch_order order = t->is_ordered ? WB_TORCH_BY_FILE : WB_TORCH_BY_NAMES;
    outcome result = make_room(&s) ? search_by(&s, order) : FAILED;
    if (result != FAILED && t->is_ordered) result = confirm(&s, result);
    wb_release(s.candidates.items);
    *count = s.count;
    if (result == ONE) return s.pairs;
    explain(&s, result);
    return NULL;
}
