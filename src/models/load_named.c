/* Loads a file into existing objects, all or none: everything is read, checked and computed before
 * the first of them changes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/saved.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "models/load.h"
#include "models/tree.h"
#include "ops/step.h"
#include "optimise/shard.h"

enum { PATH_TEXT = 512 };

/* Numbers that an object will have. */
typedef struct numbers {
    void *object;
    const wb_saved *saved; /* NULL: the object is an optimiser */
    void *values;
    struct numbers *next;
} numbers;

/* What a group of parameters will have. */
typedef struct group_settings {
    const wb_record *record; /* where its first member found it */
    wb_rule rule;
    int64_t steps;
    bool is_frozen;
} group_settings;

/* What an optimiser will have. */
typedef struct settings {
    wb_rule rule;
    int64_t step, skipped;
    double clip_norm;
    group_settings *groups;
    wb_array *count;
    double loss_scale, loss_scale_steps;
    wb_array *scale, *streak; /* NULL: the file has none, or the optimiser */
    wb_cohort *cohorts;
    int64_t cohort_count;
    int64_t *cohort_of; /* of each group */
} settings;

typedef struct loading {
    const wb_file *file;
    uint64_t errors; /* that there were before */
    wb_arena arena;
    wb_exchange exchange;
    numbers *numbers;
} loading;

/* ---- finding ---- */

static const wb_record *find(const loading *l, const char *path) {
    return wb_record_find(l->file, wb_file_root(l->file), path);
}

static bool has(const wb_record *map, const char *name) {
    for (int64_t i = 0; map && map->names && i < map->count; i++)
        if (map->names[i] && strcmp(map->names[i], name) == 0) return true;
    return false;
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
    char text[WB_SAVED_TEXT_BYTES];
} value;

static size_t size_of(const wb_saved_number *number) {
    if (number->kind == WB_SAVED_TEXT) return WB_SAVED_TEXT_BYTES;
    return number->kind == WB_SAVED_BOOL ? sizeof(bool) : sizeof(int64_t);
}

static value value_of(const wb_saved_number *number, const wb_record *r) {
    value v = {.text = {0}};
    const char *text;
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
    case WB_SAVED_TEXT:
        text = wb_record_text(r);
        if (text) (void)snprintf(v.text, sizeof v.text, "%s", text);
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

/* Says where an error of this loading is. */
static bool fail_at(const loading *l, const char *path) {
    (void)wb_error_prefix(l->errors, "%s: %s: ", l->file->path, path);
    return false;
}

/* Replaces the number at `at` by the file's; false if the file's is not valid, or differs although
 * the number is fixed. */
static bool read_number(const loading *l, const char *path, const wb_saved_number *number,
                        void *at) {
    const whole_path whole = path_of("%s.%s", path, number->name);
    if (number->is_new && !has(find(l, path), number->name)) return true;
    const wb_record *r = find(l, whole.text);
    if (!r) return false;
    const value theirs = value_of(number, r);
    if (wb_failed()) return fail_at(l, whole.text);
    value ours = {.text = {0}};
    memcpy(&ours, at, size_of(number));
    char texts[2][40];
    if (number->is_fixed && memcmp(&theirs, &ours, size_of(number)) != 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is %s in the file, but must be %s here",
                      l->file->path, whole.text, text_of(number, theirs, texts[0], sizeof texts[0]),
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
    (void)wb_fail(WB_ERROR_FORMAT,
                  "%s: the numbers of \"%s\" do not fit together: the file is "
                  "damaged",
                  l->file->path, path);
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
    const wb_source source = {.file = l->file, .root = find(l, name), .noun = noun.text};
    return source.root &&
           wb_load_plan(&source, &(wb_load_desc){.model = model}, &l->exchange) == WB_OK;
}

/* ---- rules ---- */

static bool fail_rule(const loading *l, const char *path, const char *theirs, const char *ours) {
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is %.40s in the file, %s in the optimiser",
                  l->file->path, path, theirs, ours);
    return false;
}

/* True if the rule at path has that name. */
static bool has_name(const loading *l, const char *path, const char *name) {
    const whole_path whole = path_of("%s.name", path);
    const wb_record *r = find(l, whole.text);
    if (!r) return false;
    const char *text = wb_record_text(r);
    if (!text) return fail_at(l, whole.text);
    return strcmp(text, name) == 0 || fail_rule(l, path, text, name);
}

static bool has_setting(const wb_rule_row *row, const char *name) {
    for (int i = 0; i < wb_rule_settings(row); i++)
        if (strcmp(row->settings[i].name, name) == 0) return true;
    return false;
}

/* A rule with other settings may have the same name, as wb_clip_norm with another p than 2. */
static bool has_settings_alone(const loading *l, const char *path, const wb_rule_row *row) {
    const wb_record *map = find(l, path);
    for (int64_t i = 0; map && map->names && i < map->count; i++) {
        const char *name = map->names[i];
        if (!name || strcmp(name, "name") == 0 || has_setting(row, name)) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: %s.%s is in the file, but the optimiser's %s has no such setting: make "
                      "the rule as it was when the file was saved",
                      l->file->path, path, name, row->name);
        return false;
    }
    return map != NULL;
}

static bool read_link(const loading *l, const char *path, const wb_rule_row *row, double *values) {
    if (!has_name(l, path, row->name) || !has_settings_alone(l, path, row)) return false;
    for (int i = 0; i < wb_rule_settings(row); i++) {
        const bool is_flag = row->settings[i].kind == WB_SETTING_FLAG;
        bool flag = values[i] != 0;
        const wb_saved_number number = {row->settings[i].name, 0,
                                        is_flag ? WB_SAVED_BOOL : WB_SAVED_REAL, false, false};
        if (!read_number(l, path, &number, is_flag ? (void *)&flag : (void *)&values[i]))
            return false;
        if (is_flag) values[i] = flag;
        if (wb_setting_check(l->file->path, row, i, values[i]) != WB_OK) return false;
    }
    return true;
}

/* The settings of the file into the rule, which has the same rows. */
static bool read_rule(const loading *l, const char *path, wb_rule *rule) {
    const int links = wb_rule_links(rule);
    double *values = rule->settings;
    if (links == 1) return read_link(l, path, rule->links[0], values);
    if (!has_name(l, path, "OptimiserChain")) return false;
    for (int i = 0; i < links; i++) {
        if (!read_link(l, path_of("%s.%d", path, i + 1).text, rule->links[i], values)) return false;
        values += wb_rule_settings(rule->links[i]);
    }
    const wb_record *chain = find(l, path);
    if (!chain || !has(chain, path_of("%d", links + 1).text)) return chain != NULL;
    return fail_rule(l, path, "a longer chain", "a shorter one");
}

/* Checks a group that has no rule of its own in the file: the optimiser must not have one with
 * other rows. */
static bool same_rows(const loading *l, const char *path, const wb_rule *ours,
                      const wb_rule *theirs) {
    if (memcmp(ours->links, theirs->links, sizeof ours->links) == 0) return true;
    return fail_rule(l, path_of("%s.rule", path).text, "not given", "one of its own");
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
    (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must be an array, but is not one in the file",
                  l->file->path, path);
    return false;
}

/* This rank's part of the state, in the type of `kept`. The file's state must have the sizes of its
 * array. */
static wb_array *state_at(const loading *l, const char *path, const wb_tie_group *group,
                          const wb_array *like, const wb_array *kept) {
    const wb_record *r = find(l, path);
    if (!r || !is_array(l, r, path)) return NULL;
    if (wb_record_has_sizes_of(r, like)) {
        wb_array *whole = wb_record_array_like(l->file, r, kept);
        return whole ? wb_part_of(group, whole) : NULL;
    }
    return wb_fail_null(WB_ERROR_SHAPE, "%s: %s is %s in the file, %s in the optimiser",
                        l->file->path, path, wb_sizes_text(r->ndim, r->sizes), wb_text_of(like));
}

static bool plan_group(const walker *w, int64_t g, const char *path) {
    static const wb_saved_number steps[] = {
        WB_SAVED_FIELD(group_settings, steps, WB_SAVED_INTEGER)};
    loading *l = w->loading;
    wb_tie_group *group = &w->optimiser->groups[g];
    group_settings *s = &w->settings->groups[g];
    s->rule = w->settings->rule;
    if (!read_numbers(l, path, 1, steps, s)) return false;
    if (s->steps < 0 || s->steps > INT32_MAX) return impossible(l, path);
    s->rule = *wb_group_rule(w->optimiser, group);
    s->is_frozen = has(s->record, "frozen");
    const whole_path rule = path_of("%s.rule", path);
    if (!has(s->record, "rule")) {
        if (!same_rows(l, path, &s->rule, &w->settings->rule)) return false;
        s->rule = w->settings->rule;
    } else if (!read_rule(l, rule.text, &s->rule)) {
        return false;
    }
    for (int k = 0; k < wb_rule_states(&s->rule); k++) {
        char name[WB_STATE_NAME_BYTES];
        const whole_path whole = path_of("%s.%s", path, wb_rule_state_name(&s->rule, k, name));
        const wb_array *like = *w->optimiser->members[group->first].slot;
        if (!wb_keeps_state(group)) continue;
        wb_array *state = state_at(l, whole.text, group, like, group->states[k]);
        if (!state || !wb_exchange_add(&l->exchange, &group->states[k], state)) return false;
    }
    return true;
}

/* Reads a group at its first member; at the others the file must have the same record. */
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
    const wb_record **first = &w->settings->groups[g].record;
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

/* The cohort of a group: those that have the same rule and as many steps. */
static int64_t plan_cohort(settings *s, const group_settings *group, const wb_array *beside) {
    const bool shares = group->steps == s->step;
    int64_t c = 0;
    while (c < s->cohort_count && !(s->cohorts[c].steps == group->steps &&
                                    wb_rule_equal(&s->cohorts[c].rule, &group->rule)))
        c++;
    if (c < s->cohort_count) return c;
    wb_array *count = shares ? NULL : wb_optimiser_new_count(group->steps, beside);
    if (!shares && (!count || wb_evaluate_roots(1, &count) != WB_OK)) return -1;
    s->cohorts[c] = (wb_cohort){.rule = group->rule, .count = count, .steps = group->steps};
    return s->cohort_count++;
}

static bool plan_cohorts(loading *l, wb_optimiser *o, settings *s) {
    const size_t groups = (size_t)o->group_count + 1;
    s->cohorts = wb_arena_take(&l->arena, groups * sizeof *s->cohorts);
    s->cohort_of = wb_arena_take(&l->arena, groups * sizeof *s->cohort_of);
    if (!s->cohorts || !s->cohort_of || !wb_optimiser_reserve_cohorts(o, (int64_t)groups))
        return false;
    s->count = wb_optimiser_new_count(s->step, o->count);
    if (!s->count || wb_evaluate_roots(1, &s->count) != WB_OK) return false;
    for (int64_t g = 0; g < o->group_count; g++)
        if ((s->cohort_of[g] = plan_cohort(s, &s->groups[g], o->count)) < 0) return false;
    return true;
}

static bool plan_scale(loading *l, const char *name, const wb_optimiser *o, settings *s) {
    static const wb_saved_number table[] = {
        WB_SAVED_FIELD(settings, loss_scale, WB_SAVED_REAL),
        WB_SAVED_FIELD(settings, loss_scale_steps, WB_SAVED_REAL)};
    if (!o->scale || !has(find(l, name), "loss_scale")) return true;
    if (!read_numbers(l, name, 2, table, s)) return false;
    if (!(s->loss_scale >= 1 && s->loss_scale <= 0x1p24 && s->loss_scale_steps >= 0 &&
          s->loss_scale_steps < 0x1p31))
        return impossible(l, name);
    wb_array *both[2] = {wb_scalar(WB_F32, s->loss_scale),
                         wb_optimiser_new_count((int64_t)s->loss_scale_steps, o->scale)};
    if (!both[0] || !both[1]) return false;
    both[0]->device = o->scale->device;
    if (wb_evaluate_roots(2, both) != WB_OK) return false;
    s->scale = both[0], s->streak = both[1];
    return true;
}

static bool plan_optimiser(loading *l, const char *name, wb_optimiser *o) {
    static const wb_saved_number table[] = {WB_SAVED_FIELD(settings, step, WB_SAVED_INTEGER),
                                            WB_SAVED_FIELD(settings, clip_norm, WB_SAVED_REAL),
                                            WB_SAVED_FIELD(settings, skipped, WB_SAVED_INTEGER)};
    settings *s = wb_arena_take(&l->arena, sizeof *s);
    const wb_record *r = find(l, name);
    if (!s || !r) return false;
    s->rule = o->rule;
    s->groups = wb_arena_list(&l->arena, o->group_count + 1, sizeof *s->groups);
    const int count = has(r, "skipped") ? 3 : 2;
    if (!s->groups || !read_numbers(l, name, count, table, s) ||
        !read_rule(l, path_of("%s.rule", name).text, &s->rule))
        return false;
    if (s->step < 0 || s->skipped < 0 || s->step > INT32_MAX - s->skipped || !(s->clip_norm >= 0))
        return impossible(l, name);
    walker w = {{.array = plan_member}, l, name, o, s};
    return wb_visit(&w.visitor, o->model) && plan_cohorts(l, o, s) && plan_scale(l, name, o, s) &&
           remember(l, o, NULL, s);
}

static void set_optimiser(wb_optimiser *o, const settings *s) {
    o->rule = s->rule;
    o->clip_norm = s->clip_norm;
    o->step = s->step + s->skipped;
    o->compared_at = -1;
    for (int64_t g = 0; g < o->group_count; g++) {
        o->groups[g].cohort = s->cohort_of[g];
        o->groups[g].is_frozen = s->groups[g].is_frozen;
    }
    wb_optimiser_set_cohorts(o, s->count, s->cohort_count, s->cohorts);
    if (s->scale) wb_optimiser_set_scale(o, s->scale, s->streak);
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
                      : "wb_load_named: \"%s\" has the type %s, which cannot be loaded",
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
    loading l = {.file = file, .errors = wb_error_count()};
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    const wb_status status = plan_all(&l, count, objects);
    if (status == WB_OK) set_all(&l);
    wb_exchange_end(&l.exchange, status == WB_OK);
    wb_arena_release(&l.arena);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

wb_status wb_load_named_from_make(const wb_file *file, int64_t count, const wb_named *objects) {
    static const char function[] = "wb_load_named_from";
    if (wb_failed()) return wb_not_run(function);
    if (!wb_file_check(function, file) || !wb_may_use_named(function, count, objects))
        return wb_error_status();
    return load(file, count, objects);
}

static bool check(const char *path, int64_t count, const wb_named *objects) {
    if (!path) (void)wb_fail_argument_null("wb_load_named", "the path");
    return path && wb_may_use_named("wb_load_named", count, objects);
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
