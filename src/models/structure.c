/* Prints a model as the text that term.c reads: each layer with its settings and children, then one
 * line for each tie. */
#include "models/structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/julia.h"
#include "models/term.h"

/* ---- words ---- */

static void print_word(wb_text *out, const char *word, bool is_plain) {
    if (is_plain) {
        wb_text_put(out, word);
        return;
    }
    wb_text_put(out, "var\"");
    for (; *word; word++) {
        if (*word == '"' || *word == '\\') wb_text_byte(out, '\\');
        wb_text_byte(out, *word);
    }
    wb_text_byte(out, '"');
}

static void print_key(wb_text *out, const char *key) {
    if (!key) return;
    print_word(out, key, wb_is_word(key));
    wb_text_put(out, " = ");
}

/* ---- layers ---- */

static void print_layer(wb_text *out, const wb_layer *layer);

/* Prints arrays, in a tuple. */
static void print_array(wb_text *out, const wb_array *x) {
    const char *type = wb_julia_name_of_dtype((wb_dtype)x->dtype);
    wb_text_add(out, "zeros(%s", type ? type : "BFloat16");
    for (int i = 0; i < x->ndim; i++) wb_text_add(out, ", %lld", (long long)x->sizes[i]);
    wb_text_byte(out, ')');
}

static void print_entry(wb_text *out, const char *key, const wb_layer *layer, const wb_array *x) {
    print_key(out, key);
    if (layer)
        print_layer(out, layer);
    else if (x)
        print_array(out, x);
    else
        wb_text_put(out, "false");
}

static void print_list(wb_text *out, const wb_layer_list *list) {
    for (int64_t i = 0; i < list->count; i++) {
        const wb_layer_item *item = &list->items[i];
        if (i) wb_text_put(out, ", ");
        print_entry(out, item->name, item->layer, item->array);
    }
}

/* Prints what is between entries. */
typedef struct commas {
    wb_text *out;
    const char *next;
} commas;

static wb_text *begin_entry(commas *c) {
    wb_text_put(c->out, c->next);
    c->next = ", ";
    return c->out;
}

/* Settings, and children that stand among them. */
static int print_settings(commas *c, const wb_layer *layer) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    const int count = wb_settings_in_text(layer->class_, list, &positional);
    char text[200];
    for (int i = 0, has_keys = 0; i < count; i++) {
        if (list[i]->kind == WB_FIELD_CHILD) {
            print_entry(begin_entry(c), NULL, *wb_field_child(layer, list[i]), NULL);
        } else if (wb_setting_text(layer, list[i], wb_real_text, text, sizeof text)) {
            if (i >= positional && !has_keys++ && layer->class_->before_keys && *c->next == ',')
                c->next = layer->class_->before_keys;
            wb_text_put(begin_entry(c), text);
        }
    }
    return count;
}

/* The other fields; arrays are printed if no setting describes them. */
static void print_field(commas *c, const wb_layer *layer, const wb_field *f, bool has_settings) {
    if (f->kind == WB_FIELD_CHILD && !f->part && !f->positional) {
        print_entry(begin_entry(c), f->name, *wb_field_child(layer, f), NULL);
    } else if (f->kind == WB_FIELD_LIST && f->spread) {
        if (wb_field_list(layer, f)->count) print_list(begin_entry(c), wb_field_list(layer, f));
    } else if (f->kind == WB_FIELD_LIST) {
        print_key(begin_entry(c), f->name);
        wb_text_byte(c->out, '(');
        print_list(c->out, wb_field_list(layer, f));
        wb_text_put(c->out, ",)");
    } else if (wb_field_is_array(f) && !has_settings) {
        print_entry(begin_entry(c), f->name, NULL, *wb_field_array(layer, f));
    }
}

static void print_tree(wb_text *out, const wb_layer *layer) {
    const wb_layer_list *list = wb_field_list(layer, &layer->class_->fields[0]);
    wb_text_byte(out, '(');
    print_list(out, list);
    wb_text_put(out, list->count == 1 ? ",)" : ")");
}

static void print_layer(wb_text *out, const wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    const char *function = wb_function_in_files(layer);
    char text[512];
    if (k == &wb_tree_class) {
        print_tree(out, layer);
    } else if (function) {
        wb_text_put(out, function);
    } else if (k->describe) {
        wb_class_describe(layer, false, text, sizeof text);
        wb_text_put(out, text);
    } else {
        print_word(out, k->name, wb_is_word(k->name));
        commas c = {out, "("};
        const int settings = print_settings(&c, layer);
        for (int i = 0; i < k->field_count; i++)
            print_field(&c, layer, &k->fields[i], settings > 0);
        wb_text_put(out, *c.next == '(' ? "()" : ")");
    }
}

/* ---- ties ---- */

typedef struct place {
    wb_array *array;
    const char *path;
} place;

typedef struct ties {
    wb_visitor visitor;
    wb_text *out;
    wb_arena arena;
    wb_ties arrays;
    place *places;
    int64_t count, capacity;
} ties;

static void print_path(wb_text *out, const char *path) {
    const char *at = path;
    while (*at == '.' || wb_is_word((char[]){*at, 0}) || (*at >= '0' && *at <= '9')) at++;
    print_word(out, path, *at == 0);
}

static void print_tie(wb_text *out, const char *path, const place *first, int ndim,
                      const int64_t *dims) {
    const bool is_transpose = ndim == 2 && dims[0] == 1;
    wb_text_byte(out, '\n');
    print_path(out, path);
    wb_text_put(out, is_transpose ? " = transpose(" : " = permutedims(");
    print_path(out, first->path);
    for (int i = 0; i < ndim && !is_transpose; i++)
        wb_text_add(out, "%s%lld%s", i ? ", " : ", (", (long long)dims[i] + 1,
                    i + 1 < ndim ? ""
                    : ndim == 1  ? ",)"
                                 : ")");
    wb_text_byte(out, ')');
}

/* Prints an array that shares another one's memory in another order of dimensions. */
static bool find_tie(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    ties *t = (ties *)(void *)visitor;
    char text[WB_PATH_BYTES];
    int64_t dims[WB_MAX_DIMS];
    (void)trainable;
    wb_path_text(path, text, sizeof text);
    const int64_t first = wb_ties_find(&t->arrays, *slot);
    if (first >= 0) {
        if (t->places[first].array != *slot && wb_tie_dims(t->places[first].array, *slot, dims))
            print_tie(t->out, text, &t->places[first], (*slot)->ndim, dims);
        return true;
    }
    if (!WB_GROW(t->places, t->count, t->capacity) || !wb_ties_add(&t->arrays, *slot)) return false;
    const char *copy = wb_arena_text(&t->arena, text, strlen(text));
    if (copy) t->places[t->count++] = (place){*slot, copy};
    return copy != NULL;
}

static bool print_ties(wb_text *out, wb_layer *model) {
    ties t = {.visitor = {.array = find_tie}, .out = out};
    const bool good = wb_visit(&t.visitor, model);
    wb_release(t.places);
    wb_ties_release(&t.arrays);
    wb_arena_release(&t.arena);
    return good;
}

/* ---- all ---- */

const char *wb_structure_text(wb_layer *model, wb_arena *arena) {
    wb_text out = {.data = NULL};
    print_layer(&out, model);
    const bool good = print_ties(&out, model) && wb_text_status(&out) == WB_OK;
    const char *copy = good ? wb_arena_text(arena, out.data, out.size) : NULL;
    wb_text_release(&out);
    return copy;
}

const char *wb_structure_key(const char *key, wb_arena *arena) {
    static const char ending[] = "_structure";
    const size_t length = strlen(key);
    char *text = wb_arena_take(arena, length + sizeof ending);
    if (!text) return NULL;
    memcpy(text, key, length);
    memcpy(text + length, ending, sizeof ending);
    return text;
}
