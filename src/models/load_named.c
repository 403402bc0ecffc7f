/* A file into objects that there are, all or none: everything is read, checked and computed before
 * the first of them changes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/saved.h"
#include "layers/layer.h"
#include "models/load.h"
#include "optimise/optimiser.h"

enum { PATH_TEXT = 512 };

/* Numbers that an object will have. */
typedef struct numbers {
    void *object;
    const wb_saved *saved; /* NULL: object is an optimiser */
    void *values;
    struct numbers *next;
} numbers;

/* What an optimiser will have. */
typedef struct settings {
    wb_rule rule;
    int64_t step;
    double clip_norm;
    int64_t *steps;           /* of each group */
    const wb_record **groups; /* of each group: where its first member found it */
} settings;

typedef struct loading {
    const wb_file *file;
    wb_arena arena;
    wb_exchange exchange;
    numbers *numbers;
} loading;

/* ---- finding ---- */

static const wb_record *find(const loading *l, const char *path) {
    return wb_record_find(l->file, wb_file_root(l->file), path);
}

/* A path from the file's root. A longer one than there is room for is not found. */
typedef struct whole_path {
    char text[PATH_TEXT];
} whole_path;

__attribute__((format(printf, 1, 2))) static whole_path path_of(const char *format, ...) {
    whole_path path;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(path.text, sizeof path.text, format, arguments);
    va_end(arguments);
    return path;
}

/* ---- numbers ---- */

/* A number of any kind. */
typedef union value {
    int64_t integer;
    double real;
    bool boolean;
} value;

static size_t size_of(const wb_saved_number *number) {
    return number->kind == WB_SAVED_BOOL ? sizeof(bool) : sizeof(int64_t);
}

static value value_of(const wb_saved_number *number, const wb_record *r) {
    value v = {.integer = 0};
    switch (number->kind) {
    case WB_SAVED_INTEGER:
        v.integer = wb_record_integer(r);
        break;
    case WB_SAVED_REAL:
        v.real = wb_record_real(r);
        break;
    case WB_SAVED_BOOL:
        v.boolean = wb_record_bool(r);
        break;
    }
    return v;
}

static const char *text_of(const wb_saved_number *number, value v, char *text, size_t size) {
    if (number->kind == WB_SAVED_BOOL) return v.boolean ? "true" : "false";
    if (number->kind == WB_SAVED_REAL)
        (void)snprintf(text, size, "%g", v.real);
    else
        (void)snprintf(text, size, "%lld", (long long)v.integer);
    return text;
}

/* Says where the pending error is. */
static bool fail_at(const loading *l, const char *path) {
    char why[WB_MESSAGE_BYTES];
    const wb_status status = wb_take_error(why, sizeof why);
    (void)wb_fail(status, "%s: %s: %s", l->file->path, path, why);
    return false;
}

/* The number of the file over the one at `at`; false where it cannot be one or, fixed, is
 * another. */
static bool read_number(const loading *l, const char *path, const wb_saved_number *number,
                        void *at) {
    const whole_path whole = path_of("%s.%s", path, number->name);
    const wb_record *r = find(l, whole.text);
    if (!r) return false;
    const value theirs = value_of(number, r);
    if (wb_failed()) return fail_at(l, whole.text);
    value ours = {.integer = 0};
    memcpy(&ours, at, size_of(number));
    char texts[2][40];
    if (number->is_fixed && memcmp(&theirs, &ours, size_of(number)) != 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is %s in the file, here it is %s", l->file->path,
                      whole.text, text_of(number, theirs, texts[0], sizeof texts[0]),
                      text_of(number, ours, texts[1], sizeof texts[1]));
        return false;
    }
    memcpy(at, &theirs, size_of(number));
    return true;
}

static bool read_numbers(const loading *l, const char *path, int count,
                         const wb_saved_number *table, void *values) {
    for (int i = 0; i < count; i++)
        if (!read_number(l, path, &table[i], (char *)values + table[i].offset)) return false;
    return true;
}

static bool remember(loading *l, void *object, const wb_saved *saved, void *values) {
    numbers *n = wb_arena_take(&l->arena, sizeof *n);
    if (!n) return false;
    *n = (numbers){object, saved, values, l->numbers};
    l->numbers = n;
    return true;
}

static bool impossible(const loading *l, const char *path) {
    (void)wb_fail(WB_ERROR_FORMAT, "%s: the numbers of \"%s\" cannot be", l->file->path, path);
    return false;
}

static bool plan_saved(loading *l, const char *name, void *object, const wb_saved *saved) {
    void *values = wb_arena_take(&l->arena, saved->size_bytes);
    if (!values) return false;
    saved->get(object, values);
    if (!read_numbers(l, name, saved->count, saved->numbers, values)) return false;
    if (saved->is_possible && !saved->is_possible(object, values)) return impossible(l, name);
    return remember(l, object, saved, values);
}

/* ---- models ---- */

static bool plan_model(loading *l, const char *name, wb_layer *model) {
    const whole_path noun = path_of("file under \"%s\"", name);
    const wb_source source = {l->file, find(l, name), noun.text};
    return source.root &&
           wb_load_plan(&source, &(wb_load_desc){.model = model}, &l->exchange) == WB_OK;
}

/* ---- optimisers ---- */

typedef struct walker {
    wb_visitor visitor;
    loading *loading;
    const char *name;
    wb_optimiser *optimiser;
    settings *settings;
} walker;

static bool is_array(const loading *l, const wb_record *r, const char *path) {
    if (r->kind == WB_RECORD_ARRAY) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: %s is no array in the file", l->file->path, path);
    return false;
}

static wb_array *state_at(const loading *l, const char *path, const wb_array *like) {
    const wb_record *r = find(l, path);
    if (!r || !is_array(l, r, path)) return NULL;
    if (wb_record_has_sizes_of(r, like)) return wb_record_array_like(l->file, r, like);
    return wb_fail_null(WB_ERROR_SHAPE, "%s: %s is %s in the file, %s in the optimiser",
                        l->file->path, path, wb_sizes_text(r->ndim, r->sizes), wb_text_of(like));
}

static bool plan_group(const walker *w, int64_t g, const char *path) {
    static const wb_saved_number steps[] = {{"steps", 0, WB_SAVED_INTEGER, false}};
    loading *l = w->loading;
    wb_tie_group *group = &w->optimiser->groups[g];
    if (!read_numbers(l, path, 1, steps, &w->settings->steps[g])) return false;
    if (w->settings->steps[g] < 0) return impossible(l, path);
    const wb_rule_row *row = wb_rule_row_of(&w->optimiser->rule);
    for (int k = 0; k < wb_rule_states(&w->optimiser->rule); k++) {
        const whole_path whole = path_of("%s.%s", path, row->states[k]);
        wb_array *state = state_at(l, whole.text, group->states[k]);
        if (!state || !wb_exchange_add(&l->exchange, &group->states[k], state)) return false;
    }
    return true;
}

/* The member's group by its first member; the others have to say the same. */
static bool plan_member(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    const walker *w = (walker *)(void *)visitor;
    const wb_optimiser *o = w->optimiser;
    (void)trainable;
    int64_t i = 0;
    while (i < o->member_count && o->members[i].slot != slot) i++;
    if (i == o->member_count) return true;
    char place[WB_PATH_BYTES];
    wb_path_text(path, place, sizeof place);
    const whole_path whole = path_of("%s.state.%s", w->name, place);
    const wb_record *r = find(w->loading, whole.text);
    if (!r) return false;
    const int64_t g = o->members[i].group;
    const wb_record **first = &w->settings->groups[g];
    if (!*first) {
        *first = r;
        return plan_group(w, g, whole.text);
    }
    if (*first == r) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: %s is a state of its own in the file, but the model's array is tied to an "
                  "earlier one",
                  w->loading->file->path, whole.text);
    return false;
}

static bool read_rule(const loading *l, const char *name, wb_rule *rule) {
    const wb_rule_row *row = wb_rule_row_of(rule);
    const wb_record *r = find(l, path_of("%s.rule.name", name).text);
    if (!r) return false;
    const char *text = wb_record_text(r);
    if (!text) return fail_at(l, path_of("%s.rule.name", name).text);
    if (strcmp(text, row->name) != 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s.rule is %.40s in the file, %s in the optimiser",
                      l->file->path, name, text, row->name);
        return false;
    }
    return read_numbers(l, path_of("%s.rule", name).text, row->setting_count, row->settings,
                        rule) &&
           wb_rule_check(l->file->path, rule) == WB_OK;
}

static bool plan_optimiser(loading *l, const char *name, wb_optimiser *o) {
    static const wb_saved_number table[] = {WB_SAVED_FIELD(settings, step, WB_SAVED_INTEGER),
                                            WB_SAVED_FIELD(settings, clip_norm, WB_SAVED_REAL)};
    settings *s = wb_arena_take(&l->arena, sizeof *s);
    if (!s) return false;
    s->rule = o->rule;
    s->steps = wb_arena_take(&l->arena, (size_t)o->group_count * sizeof *s->steps);
    s->groups = wb_arena_take(&l->arena, (size_t)o->group_count * sizeof *s->groups);
    if (!s->steps || !s->groups || !read_numbers(l, name, 2, table, s) ||
        !read_rule(l, name, &s->rule))
        return false;
    if (s->step < 0 || !(s->clip_norm >= 0)) return impossible(l, name);
    walker w = {{.array = plan_member}, l, name, o, s};
    return wb_visit(&w.visitor, o->model) && remember(l, o, NULL, s);
}

static void set_optimiser(wb_optimiser *o, const settings *s) {
    o->rule = s->rule;
    o->clip_norm = s->clip_norm;
    o->step = s->step;
    for (int64_t g = 0; g < o->group_count; g++) o->groups[g].steps = s->steps[g];
}

/* ---- all of them ---- */

static bool plan_object(loading *l, const wb_named *named) {
    const wb_class *klass = ((const wb_object *)named->object)->klass;
    if (wb_is_layer(named->object)) return plan_model(l, named->name, named->object);
    if (wb_is_optimiser(named->object)) return plan_optimiser(l, named->name, named->object);
    if (klass && klass->saved) return plan_saved(l, named->name, named->object, klass->saved);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  klass == &wb_array_class
                      ? "wb_load_named: \"%s\" is an %s, which keeps its numbers; put it into a "
                        "tree (wb_tree_named), or read it with wb_open"
                      : "wb_load_named: \"%s\" is a %s, into which nothing can be loaded",
                  named->name, klass && klass->name ? klass->name : "thing");
    return false;
}

static wb_status plan_all(loading *l, int64_t count, const wb_named *objects) {
    for (int64_t i = 0; i < count; i++) /* slots of states stay where they are from now on */
        if (wb_is_optimiser(objects[i].object) && wb_optimiser_group(objects[i].object) != WB_OK)
            return wb_error_status();
    for (int64_t i = 0; i < count; i++)
        if (!plan_object(l, &objects[i])) return wb_failed() ? wb_error_status() : WB_ERROR_MEMORY;
    return wb_exchange_evaluate(&l->exchange);
}

/* From here on nothing fails. */
static void set_all(const loading *l) {
    for (const numbers *n = l->numbers; n; n = n->next) {
        if (n->saved)
            n->saved->set(n->object, n->values);
        else
            set_optimiser(n->object, n->values);
    }
}

static wb_status load(const wb_file *file, int64_t count, const wb_named *objects) {
    loading l = {.file = file};
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    const wb_status status = plan_all(&l, count, objects);
    if (status == WB_OK) set_all(&l);
    wb_exchange_end(&l.exchange, status == WB_OK);
    wb_arena_release(&l.arena);
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return status == WB_OK ? closed : status;
}

static bool check(const char *path, int64_t count, const wb_named *objects) {
    const char *missing = path ? NULL : "the path";
    for (int64_t i = 0; i < count && !missing; i++)
        if (!objects[i].name || !objects[i].object)
            missing = objects[i].name ? objects[i].name : "a key";
    if (missing) (void)wb_fail_argument_null("wb_load_named", missing);
    return !missing;
}

wb_status wb_load_named_make(const char *path, int64_t count, const wb_named *objects) {
    if (wb_failed()) return wb_not_run("wb_load_named");
    if (!check(path, count, objects)) return wb_error_status();
    wb_file *file = wb_open(path);
    if (!file) return wb_error_status();
    const wb_status status = load(file, count, objects);
    wb_free(file);
    return status;
}
