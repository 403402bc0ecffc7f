/* A model's layers as PyTorch's modules: the rows of their classes say what PyTorch calls an array
 * and what turns it (wb_field.torch). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "models/torch.h"

/* What the rows of outer layers make of an array's name: "*_l#", "in_proj_* part 1/3|...". */
typedef struct pattern {
    const char *text;
    const struct pattern *outer;
} pattern;

typedef struct reader {
    wb_torch *torch;
    wb_ties arrays; /* that were met */
    wb_torch_array *firsts;
    int64_t count, capacity;
    bool failed;
} reader;

/* A layer, and how it is reached. */
typedef struct place {
    wb_layer *layer;
    const wb_layer *shown; /* the layer that makes it, for messages */
    const wb_path *path;
    const pattern *patterns;
} place;

/* ---- forms ---- */

/* "weight transpose" into its name and the rest. */
static void split(wb_torch *t, const char *text, size_t length, wb_torch_form *form) {
    const char *blank = memchr(text, ' ', length);
    const size_t name = blank ? (size_t)(blank - text) : length;
    form->role = wb_arena_text(&t->arena, text, name);
    form->options = blank ? wb_arena_text(&t->arena, blank + 1, length - name - 1) : "";
}

static const char *text_of(wb_torch *t, wb_text *text) {
    const char *copy =
        wb_text_status(text) == WB_OK ? wb_arena_text(&t->arena, text->data, text->size) : NULL;
    wb_text_release(text);
    return copy;
}

/* The form within one pattern: its star is the name so far, and its options come after. */
static wb_torch_form within(wb_torch *t, const char *text, size_t length,
                            const wb_torch_form *inner) {
    wb_torch_form outer = {.is_fused = inner->is_fused, .of = inner->of};
    split(t, text, length, &outer);
    if (!outer.role || !outer.options || !inner->role || !inner->options) return outer;
    const char *star = strchr(outer.role, '*');
    wb_text role = {.data = NULL}, options = {.data = NULL};
    wb_text_add(&role, "%.*s%s%s", (int)(star - outer.role), outer.role, inner->role, star + 1);
    wb_text_add(&options, "%s%s%s", inner->options, *inner->options && *outer.options ? " " : "",
                outer.options);
    outer.is_fused = outer.is_fused || strcmp(outer.role, "*") == 0;
    outer.role = text_of(t, &role), outer.options = text_of(t, &options);
    return outer;
}

/* The sizes that the file's array must have, so that the options make x's of them. */
static bool set_sizes(wb_torch_form *form, const wb_array *x) {
    wb_rename_table table;
    char text[100];
    (void)snprintf(text, sizeof text, "a -> b %s", form->options);
    bool good = wb_rename_parse(&table, text) == WB_OK;
    const wb_rename_row *row = good ? table.rows : NULL;
    const int n = form->ndim = good ? x->ndim - row->ones : 0;
    good = good && n >= 0 && n <= WB_MAX_DIMS;
    for (int d = 0; good && d < n; d++)
        form->sizes[row->order_count == n ? row->order[d] : d] = d < x->ndim ? x->sizes[d] : 1;
    const int along = good && row->along != WB_RENAME_LAST ? row->along : n - 1;
    if (good && row->parts && n > 0) form->sizes[along] *= row->parts;
    wb_rename_release(&table);
    return good;
}

/* The forms of the row: "weight transpose|weight", of which the second is a Conv1D's. */
static void set_own_forms(reader *r, wb_torch_array *a, const char *torch) {
    a->form_count = 0;
    for (const char *at = torch, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, "|");
        wb_torch_form *first = a->forms, *f = &a->forms[a->form_count++];
        *f = (wb_torch_form){.of = WB_TORCH_ANY};
        split(r->torch, at, (size_t)(end - at), f);
        const bool is_second =
            f != first && f->role && first->role && strcmp(f->role, first->role) == 0;
        if (is_second) first->of = WB_TORCH_LINEAR, f->of = WB_TORCH_CONV1D;
    }
}

/* Only attention with a module of its own has an array "in_proj_weight". */
static bool may_be_within(const wb_torch_form *inner, const char *outer) {
    return inner->of != WB_TORCH_CONV1D || *outer == '*';
}

/* What is joined in a Conv1D's weight is joined along its outputs, which come first. */
static void set_along(reader *r, wb_torch_form *f, const wb_array *x) {
    wb_text text = {.data = NULL};
    if (f->of != WB_TORCH_CONV1D || x->ndim != 2 || !f->options || !strstr(f->options, "part "))
        return;
    wb_text_add(&text, "%s along 0", f->options);
    f->options = text_of(r->torch, &text);
}

static bool set_forms(reader *r, wb_torch_array *a, const char *torch, const pattern *patterns,
                      const wb_array *x) {
    set_own_forms(r, a, torch);
    for (const pattern *p = patterns; p; p = p->outer) {
        wb_torch_form made[WB_TORCH_FORMS];
        int count = 0;
        for (const char *at = p->text, *end; at; at = *end ? end + 1 : NULL) {
            end = at + strcspn(at, "|");
            for (int i = 0; i < a->form_count && count < WB_TORCH_FORMS; i++)
                if (may_be_within(&a->forms[i], at))
                    made[count++] = within(r->torch, at, (size_t)(end - at), &a->forms[i]);
        }
        memcpy(a->forms, made, sizeof *made * (size_t)count), a->form_count = count;
    }
    for (int i = 0; i < a->form_count; i++) {
        set_along(r, &a->forms[i], x);
        if (!a->forms[i].role || !a->forms[i].options || !set_sizes(&a->forms[i], x)) return false;
    }
    return true;
}

/* ---- arrays ---- */

/* Whether a row of the user gives the place its array. */
static bool is_given(const wb_torch *t, const char *path) {
    for (int64_t i = 0; i < t->taken_count; i++)
        if (strcmp(t->taken[i], path) == 0) return true;
    return false;
}

static bool note_tie(reader *r, const wb_torch_array *a, int64_t first) {
    wb_torch_tie *tie = wb_torch_take(r->torch, sizeof *tie);
    if (!tie) return false;
    *tie = (wb_torch_tie){.array = *a, .first = r->firsts[first], .next = r->torch->ties};
    r->torch->ties = tie;
    return true;
}

static bool remember(reader *r, const wb_torch_array *a, const wb_array *x) {
    if (!wb_ties_add(&r->arrays, x) || !WB_GROW(r->firsts, r->count, r->capacity)) return false;
    r->firsts[r->count++] = *a;
    return true;
}

/* Adds the array in the slot to the unit. */
static bool add_array(reader *r, wb_torch_node *unit, const place *p, const wb_path *path,
                      const char *torch, const wb_array *x) {
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    if (is_given(r->torch, text)) return true;
    wb_torch_array a = {.name = wb_arena_text(&r->torch->arena, text, strlen(text))};
    if (!a.name || !set_forms(r, &a, torch, p->patterns, x)) return false;
    const int64_t first = wb_ties_find(&r->arrays, x);
    if (first >= 0 && r->torch->ties_are_once) return note_tie(r, &a, first);
    if (first < 0 && !remember(r, &a, x)) return false;
    wb_torch_array *added = wb_torch_add_array(r->torch, unit);
    if (added) *added = a;
    return added != NULL;
}

/* ---- layers ---- */

static wb_torch_node *node_of(reader *r, const place *p);

static bool is_pattern(const wb_field *f) {
    return f->kind == WB_FIELD_CHILD && f->torch && strchr(f->torch, '*');
}

/* How many of its children's arrays are in one module of PyTorch's: those of attention. */
static int count_heads(const wb_layer_class *k) {
    int count = 0;
    for (int i = 0; i < k->field_count; i++) count += is_pattern(&k->fields[i]);
    return count;
}

static wb_torch_node *unit_of(reader *r, const place *p) {
    char text[WB_PATH_BYTES];
    wb_torch_node *unit = wb_torch_node_new(r->torch, WB_TORCH_UNIT, NULL);
    wb_path_text(p->path, text, sizeof text);
    if (!unit || !(unit->path = wb_arena_text(&r->torch->arena, text, strlen(text)))) return NULL;
    unit->layer = p->shown;
    return unit;
}

/* The layer's own arrays. */
static bool add_own(reader *r, wb_torch_node *unit, const place *p) {
    const wb_layer_class *k = p->layer->class_;
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        const wb_path path = {.outer = p->path, .name = f->name, .index = 1};
        if (!wb_field_is_array(f) || f->fixed || !*wb_field_array(p->layer, f)) continue;
        if (!add_array(r, unit, p, &path, f->torch ? f->torch : f->name,
                       *wb_field_array(p->layer, f)))
            return false;
    }
    return true;
}

static bool add_item(reader *r, wb_torch_node *node, wb_torch_node *item, const char *name,
                     const char *torch) {
    if (!item) return !r->failed;
    if (name) item->name = name;
    if (torch) item->torch = torch;
    return wb_torch_add(r->torch, node, item);
}

/* ---- attention: q, k and v in one module, or in one each ---- */

static bool add_whole(reader *r, wb_torch_node *either, const place *p) {
    wb_torch_node *unit = unit_of(r, p);
    const wb_layer_class *k = p->layer->class_;
    for (int i = 0; unit && i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (!is_pattern(f)) continue;
        const wb_path path = {.outer = p->path, .name = f->name, .index = 1};
        const pattern own = {f->torch, p->patterns};
        const place child = {*wb_field_child(p->layer, f), p->shown, &path, &own};
        if (child.layer && !add_own(r, unit, &child)) return false;
    }
    if (unit && !unit->array_count) return true;
    return unit && wb_torch_add(r->torch, either, unit);
}

static wb_torch_node *each_of(reader *r, const place *p) {
    wb_torch_node *each = wb_torch_node_new(r->torch, WB_TORCH_BRANCHES, NULL);
    const wb_layer_class *k = p->layer->class_;
    for (int i = 0; each && i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (!is_pattern(f)) continue;
        const wb_path path = {.outer = p->path, .name = f->name, .index = 1};
        const place child = {*wb_field_child(p->layer, f), p->shown, &path, p->patterns};
        wb_torch_node *unit = child.layer ? node_of(r, &child) : NULL;
        if (unit) unit->head = f->name[0];
        if (!add_item(r, each, unit, f->name, NULL)) return NULL;
    }
    return each;
}

/* The same arrays in both forms: those of the second one are no ties. */
static bool add_heads(reader *r, wb_torch_node *node, const place *p) {
    wb_torch_node *either = wb_torch_node_new(r->torch, WB_TORCH_EITHER, NULL);
    if (!either || !add_whole(r, either, p)) return false;
    if (either->count == 0) return true;
    const bool ties_are_once = r->torch->ties_are_once;
    r->torch->ties_are_once = false;
    wb_torch_node *each = each_of(r, p);
    r->torch->ties_are_once = ties_are_once;
    return each && wb_torch_add(r->torch, either, each) && wb_torch_add(r->torch, node, either);
}

/* ---- all fields ---- */

static bool add_child(reader *r, wb_torch_node *node, const place *p, const wb_field *f) {
    wb_layer *layer = *wb_field_child(p->layer, f);
    const wb_path path = {.outer = p->path, .name = f->name, .index = 1};
    const pattern own = {f->torch, p->patterns};
    const place child = {layer, f->part ? p->shown : layer, &path,
                         is_pattern(f) ? &own : p->patterns};
    if (!layer) return true;
    return add_item(r, node, node_of(r, &child), f->name, is_pattern(f) ? NULL : f->torch);
}

static bool add_list(reader *r, wb_torch_node *node, wb_torch_node *unit, const place *p,
                     const wb_field *f) {
    const wb_layer_list *list = wb_field_list(p->layer, f);
    const wb_path outer = {.outer = p->path, .name = f->name, .index = f->name ? 1 : 0};
    for (int64_t i = 0; i < list->count; i++) {
        const wb_layer_item *item = &list->items[i];
        const wb_path path = {.outer = &outer, .name = item->name, .index = i + 1, .list = list};
        const place child = {item->layer, item->layer, &path, p->patterns};
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)i);
        if (item->layer && !add_item(r, node, node_of(r, &child), item->name, NULL)) return false;
        if (item->array &&
            !add_array(r, unit, p, &path, item->name ? item->name : number, item->array))
            return false;
    }
    return true;
}

static bool add_fields(reader *r, wb_torch_node *node, wb_torch_node *unit, const place *p) {
    const wb_layer_class *k = p->layer->class_;
    const bool has_heads = count_heads(k) > 1;
    bool is_added = false; /* the heads are, at the place of the first one */
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (f->fixed) continue;
        if (has_heads && is_pattern(f)) {
            if (!is_added && !add_heads(r, node, p)) return false;
            is_added = true;
        } else if (f->kind == WB_FIELD_CHILD && !add_child(r, node, p, f)) {
            return false;
        } else if (f->kind == WB_FIELD_LIST && !add_list(r, node, unit, p, f)) {
            return false;
        }
    }
    for (int64_t i = 0; has_heads && i < node->count; i++)
        if (node->items[i]->kind == WB_TORCH_UNIT) node->items[i]->head = 'o';
    return true;
}

/* NULL, too, for a layer without arrays. Recursive: models are as deep as the program makes
 * them. */
static wb_torch_node *node_of(reader *r, const place *p) {
    const bool is_chain = p->layer->class_ == &wb_chain_class;
    wb_torch_node *node =
        wb_torch_node_new(r->torch, is_chain ? WB_TORCH_SEQUENCE : WB_TORCH_BRANCHES, NULL);
    wb_torch_node *unit = unit_of(r, p);
    r->failed = r->failed || !node || !unit || !add_own(r, unit, p) ||
                !add_fields(r, node, unit, p) ||
                (unit->array_count && !wb_torch_add(r->torch, node, unit));
    if (r->failed || node->count == 0) return NULL;
    return node->count == 1 ? node->items[0] : node;
}

bool wb_torch_read_model(wb_torch *t, wb_layer *model) {
    reader r = {.torch = t};
    t->ties = NULL;
    t->model = node_of(&r, &(place){.layer = model, .shown = model});
    if (t->model) t->model->parent = NULL;
    wb_ties_release(&r.arrays);
    wb_release(r.firsts);
    return !r.failed && !wb_failed();
}
