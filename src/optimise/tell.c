/* Describes a distributed optimiser and its model by facts, which ranks compare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/layer.h"
#include "optimise/compare.h"
#include "ranks/facts.h"

typedef struct teller {
    wb_visitor visitor;
    const wb_optimiser *optimiser;
    wb_text *facts;
    bool has_gradients;
} teller;

static const wb_tie_group *group_of(const wb_optimiser *o, wb_array *const *slot) {
    for (int64_t i = 0; i < o->member_count; i++)
        if (o->members[i].slot == slot) return &o->groups[o->members[i].group];
    return NULL;
}

/* With enough digits to read the same number back. */
static void real_text(double value, char *text, size_t size) {
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

static void add_real(wb_text *facts, const char *name, double value) {
    char text[40];
    real_text(value, text, sizeof text);
    wb_fact_add(facts, name, text);
}

static bool is_written(const wb_optimiser *o, wb_array *const *slot) {
    for (int64_t i = 0; i < o->written_count; i++)
        if (o->written[i] == slot) return true;
    return false;
}

static bool tell_array(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    teller *t = (teller *)(void *)visitor;
    char name[WB_PATH_BYTES], text[160], gradient[WB_PATH_BYTES + 32];
    const wb_tie_group *group = trainable ? group_of(t->optimiser, slot) : NULL;
    wb_path_text(path, name, sizeof name);
    (void)snprintf(text, sizeof text, "%s %s%s", wb_dtype_name((wb_dtype)(*slot)->dtype),
                   wb_text_of(*slot), group && group->is_frozen ? ", frozen" : "");
    wb_fact_add(t->facts, name, text);
    if (!trainable && t->has_gradients && is_written(t->optimiser, slot)) {
        (void)snprintf(gradient, sizeof gradient, "the new value of %s", name);
        wb_fact_add(t->facts, gradient, "there");
    }
    if (!group || group->is_frozen || !t->has_gradients) return true;
    const bool has = t->optimiser->sums[group - t->optimiser->groups];
    (void)snprintf(gradient, sizeof gradient, "the gradient of %s", name);
    if (has) wb_fact_add(t->facts, gradient, "there");
    return true;
}

static bool tell_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    teller *t = (teller *)(void *)visitor;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        const wb_path own = {.outer = path, .name = f->name};
        char name[WB_PATH_BYTES], value[160];
        if (!wb_setting_value(layer, f, real_text, value, sizeof value)) continue;
        wb_path_text(&own, name, sizeof name);
        wb_fact_add(t->facts, name, value);
    }
    return true;
}

/* A rule, under the path of the first array that it is for, unless that is the model's first. */
static void tell_rule(wb_text *facts, const wb_rule *rule, int64_t group) {
    char where[48] = "", name[160], names[200] = "";
    if (group > 0)
        (void)snprintf(where, sizeof where, " from parameter %lld on", (long long)group + 1);
    for (int i = 0; i < wb_rule_links(rule); i++) {
        const size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                       rule->links[i]->name);
    }
    (void)snprintf(name, sizeof name, "the rule%s", where);
    wb_fact_add(facts, name, names);
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);) {
        (void)snprintf(name, sizeof name, "%s of %s%s", at.row->settings[at.setting].name,
                       at.row->name, where);
        add_real(facts, name, rule->settings[at.value]);
    }
}

static bool is_first_with_rule(const wb_optimiser *o, int64_t group) {
    for (int64_t i = 0; i < group; i++)
        if (wb_rule_equal(wb_group_rule(o, &o->groups[i]), wb_group_rule(o, &o->groups[group])))
            return false;
    return true;
}

static void tell_optimiser(const wb_optimiser *o, wb_text *facts) {
    const struct {
        const char *name;
        double value;
    } numbers[] = {{".clip_total_norm", o->clip_norm},
                   {".loss_scale", o->first_scale},
                   {".loss_scale_interval", (double)o->scale_interval},
                   {".micro_batches", (double)o->micro_batches},
                   {".zero", o->is_divided},
                   {".may_miss", o->may_miss},
                   {".compare_every", (double)o->compare_every}};
    for (int64_t g = 0; g < o->group_count; g++)
        if (is_first_with_rule(o, g)) tell_rule(facts, wb_group_rule(o, &o->groups[g]), g);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_real(facts, numbers[i].name, numbers[i].value);
    wb_fact_add(facts, ".send", wb_dtype_name(o->send));
    wb_fact_add(facts, ".compute", wb_dtype_name(o->compute));
}

/* Rules first, which differ most often. */
wb_status wb_tell_settings(wb_optimiser *o, bool has_gradients, wb_text *facts) {
    teller t = {.visitor = {.array = tell_array, .layer = tell_layer},
                .optimiser = o,
                .facts = facts,
                .has_gradients = has_gradients};
    tell_optimiser(o, facts);
    if (!wb_visit(&t.visitor, o->model)) return wb_error_status();
    return wb_text_status(facts);
}
