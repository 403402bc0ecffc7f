/* What all models of language share that are read from files: see language_model.h. */
#include "models/language_model.h"

#include <string.h>

#include "array/use.h"
#include "models/load.h"
#include "models/rename.h"

static void *member(wb_language_model *m, size_t offset) { return (char *)&m->desc + offset; }

bool wb_find_architecture(wb_language_model *m, const wb_architecture *rows, int count,
                          const char *name, int64_t offset) {
    wb_text known = {.data = NULL};
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0) m->architecture = &rows[i];
        wb_text_add(&known, "%s%s", i ? ", " : "", rows[i].name);
    }
    if (!m->architecture)
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s, offset %lld: the architecture must be one of %s, but is %.80s",
                      m->config->path, (long long)offset,
                      wb_text_status(&known) == WB_OK ? known.data : "those in docs/files.md",
                      name);
    wb_text_release(&known);
    return m->architecture != NULL;
}

/* ---- settings ---- */

const wb_json *wb_given_setting(const wb_json *object, const char *name) {
    const wb_json *value = wb_json_get(object, name);
    return value && value->kind != WB_JSON_NULL ? value : NULL;
}

bool wb_want_setting(const wb_language_model *m, const wb_json *value, const char *name,
                     const char *what) {
    (void)wb_json_fault(m->config, value, "%s must be %s, but is %s", name, what,
                        wb_json_noun(value));
    return false;
}

bool wb_refuse_setting(const wb_language_model *m, const wb_json *value, const char *what) {
    (void)wb_fail(WB_ERROR_UNSUPPORTED, "%s, offset %lld: models with %s cannot be made",
                  m->config->path, (long long)value->offset, what);
    return false;
}

static bool find_activation(const wb_language_model *m, const wb_json *value,
                            wb_activation **activation) {
    const char *name = wb_json_text(value);
    if (!name) return wb_want_setting(m, value, "the activation", "a text");
    for (int i = 0; i < wb_named_activation_count; i++)
        if (strcmp(wb_named_activations[i].name, name) == 0) {
            *activation = wb_named_activations[i].activation;
            return true;
        }
    char what[120];
    (void)snprintf(what, sizeof what, "the activation %.80s", name);
    return wb_refuse_setting(m, value, what);
}

bool wb_take_positive_setting(const wb_language_model *m, const wb_json *value, const char *name,
                              double *number) {
    if (!wb_json_number(value, number)) return wb_want_setting(m, value, name, "a number");
    if (*number > 0) return true;
    (void)wb_json_fault(m->config, value, "%s must be positive, but is %g", name, *number);
    return false;
}

static bool is_of_array(wb_config_kind kind) {
    return kind == WB_CONFIG_HAS_ARRAY || kind == WB_CONFIG_LACKS_ARRAY ||
           kind == WB_CONFIG_ROWS_OF_ARRAY;
}

static void take_of_array(wb_language_model *m, const wb_config_setting *s) {
    const wb_record *x = wb_language_array(m, s->name);
    if (s->kind == WB_CONFIG_HAS_ARRAY) *(bool *)member(m, s->offset) = x != NULL;
    if (s->kind == WB_CONFIG_LACKS_ARRAY) *(bool *)member(m, s->offset) = x == NULL;
    if (s->kind == WB_CONFIG_ROWS_OF_ARRAY && x && x->ndim == 2)
        *(int64_t *)member(m, s->offset) = x->sizes[1];
}

static bool take_setting(wb_language_model *m, const wb_config_setting *s) {
    const wb_json *value = wb_given_setting(m->settings, s->name);
    char what[80];
    bool flag = false;
    if (is_of_array(s->kind)) return take_of_array(m, s), true;
    if (!value) return true;
    switch (s->kind) {
    case WB_CONFIG_INTEGER:
        return wb_json_integer(value, member(m, s->offset)) ||
               wb_want_setting(m, value, s->name, "an integer");
    case WB_CONFIG_REAL:
        return wb_json_number(value, member(m, s->offset)) ||
               wb_want_setting(m, value, s->name, "a number");
    case WB_CONFIG_POSITIVE:
        return wb_take_positive_setting(m, value, s->name, member(m, s->offset));
    case WB_CONFIG_BOOL:
        return wb_json_bool(value, member(m, s->offset)) ||
               wb_want_setting(m, value, s->name, "a bool");
    case WB_CONFIG_ACTIVATION:
        return find_activation(m, value, member(m, s->offset));
    case WB_CONFIG_FALSE:
        return (wb_json_bool(value, &flag) && !flag) || wb_refuse_setting(m, value, s->name);
    case WB_CONFIG_TRUE:
        (void)snprintf(what, sizeof what, "%s = false", s->name);
        return (wb_json_bool(value, &flag) && flag) || wb_refuse_setting(m, value, what);
    case WB_CONFIG_ABSENT:
        return wb_refuse_setting(m, value, s->name);
    case WB_CONFIG_HAS_ARRAY:
    case WB_CONFIG_LACKS_ARRAY:
    case WB_CONFIG_ROWS_OF_ARRAY:
        break;
    }
    return true;
}

bool wb_lack_setting(const wb_language_model *m, const wb_json *object, const char *name) {
    (void)wb_json_fault(m->config, object, "%s is missing", name);
    return false;
}

bool wb_take_settings(wb_language_model *m) {
    const wb_family *f = m->architecture->family;
    f->begin(&m->desc);
    for (const wb_config_setting *s = f->settings; s->name; s++)
        if (!take_setting(m, s)) return false;
    if (f->head) *(bool *)member(m, f->head) = m->architecture->has_head;
    return !f->positions || f->positions(m);
}

/* ---- the arrays ---- */

const wb_record *wb_language_array(const wb_language_model *m, const char *name) {
    char path[400];
    const bool has_prefix = *name == '@';
    (void)snprintf(path, sizeof path, "%s%s", has_prefix ? m->prefix : "", name + has_prefix);
    const wb_record *x = wb_record_below(m->weights->root, path);
    return x && x->kind == WB_RECORD_ARRAY ? x : NULL;
}

/* Finds the prefix of the names, and the type. */
static bool find_embedding(wb_language_model *m) {
    const wb_family *f = m->architecture->family;
    char name[80];
    (void)snprintf(name, sizeof name, "@%s", f->embedding);
    for (int i = 0; f->prefixes[i]; i++) {
        m->prefix = f->prefixes[i];
        const wb_record *x = wb_language_array(m, name);
        if (!x) continue;
        *(wb_dtype *)member(m, f->dtype) = (wb_dtype)x->dtype;
        return true;
    }
    (void)wb_fail(WB_ERROR_FORMAT, "%s: a %s must have the array %s%s", m->weights->path,
                  m->architecture->name, f->prefixes[0], f->embedding);
    return false;
}

static void put_row(wb_language_model *m, const char *row, int64_t after) {
    for (; *row; row++)
        if (*row == '@')
            wb_text_put(&m->table, m->prefix);
        else if (*row == '#')
            wb_text_add(&m->table, "%lld", (long long)after);
        else
            wb_text_byte(&m->table, *row);
    wb_text_byte(&m->table, '\n');
}

/* The rename table of this file. */
static bool make_table(wb_language_model *m) {
    const wb_family *f = m->architecture->family;
    const int64_t after = f->before + *(const int64_t *)member(m, f->layers) + 1;
    const bool tied = f->tied && *(const bool *)member(m, f->tied);
    const bool has_head = f->head && m->architecture->has_head;
    const bool file_has_head = f->head && wb_language_array(m, f->head_name);
    if (has_head && !tied && !file_has_head) {
        (void)wb_fail(WB_ERROR_FORMAT,
                      "%s: a %s whose tie_word_embeddings is false must have the array "
                      "lm_head.weight",
                      m->weights->path, m->architecture->name);
        return false;
    }
    for (const wb_name_row *n = f->names; n->row; n++)
        if (!n->only_if || wb_language_array(m, n->only_if)) put_row(m, n->row, after);
    if (has_head && tied) {
        wb_text_add(&m->table, "%s%s -> layers.%lld.weight transpose\n", m->prefix, f->embedding,
                    (long long)after + 1);
        if (file_has_head) wb_text_add(&m->table, "%s ->\n", f->head_name);
    } else if (has_head)
        wb_text_add(&m->table, "%s -> layers.%lld.weight transpose\n", f->head_name,
                    (long long)after + 1);
    else if (file_has_head)
        wb_text_add(&m->table, "%s ->\n", f->head_name);
    wb_text_byte(&m->table, 0);
    return wb_text_status(&m->table) == WB_OK;
}

static bool add_numbers(wb_record *r, void *sum) {
    double count = r->kind == WB_RECORD_ARRAY ? 1 : 0;
    for (int d = 0; d < r->ndim; d++) count *= (double)r->sizes[d];
    *(double *)sum += count;
    return true;
}

/* A small file does not make a large model: no memory is asked for that the file cannot fill. */
static bool has_room(const wb_language_model *m) {
    const double wants = m->architecture->family->least(&m->desc);
    double has = 0;
    (void)wb_record_walk(m->weights->root, add_numbers, &has);
    if (wants <= has) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the model has at least %.0f numbers, but the weights %.0f",
                  m->config->path, wants, has);
    return false;
}

/* ---- rotary positions of neighbours ---- */

/* Replaces the array `name` of the layer, if it is there. */
static bool put_halves(wb_language_model *m, const wb_record *layer, const char *name,
                       int64_t run) {
    wb_arena *arena = &m->weights->arena;
    for (int64_t i = 0; layer && layer->names && i < layer->count; i++) {
        wb_record **child = &layer->children[i];
        if (strcmp(layer->names[i], name) != 0 || (*child)->kind != WB_RECORD_ARRAY ||
            (*child)->sizes[0] % run)
            continue;
        wb_record *made = wb_record_new(arena, WB_RECORD_ARRAY);
        wb_turn *turn = wb_arena_take(arena, sizeof *turn);
        if (!made || !turn || !(turn->of = wb_arena_list(arena, 1, sizeof *turn->of))) return false;
        *made = **child;
        made->turn = turn, made->data = NULL, made->packed = NULL;
        turn->of[0] = *child, turn->count = 1, turn->pairs = run;
        *child = made;
    }
    return true;
}

/* The rows of queries and keys: of each head, first those of the first half. */
static bool put_all_halves(wb_language_model *m, const wb_record *root) {
    static const char *const layers[] = {"q_proj", "k_proj"};
    const wb_llama_desc *d = &m->desc.llama;
    const int64_t run = d->head_features ? d->head_features : d->features / d->heads,
                  before = m->architecture->family->before;
    bool good = true;
    for (int64_t i = 1; i <= d->layers; i++)
        for (int k = 0; good && k < 2; k++) {
            char path[80];
            (void)snprintf(path, sizeof path, "layers.%lld.attention.%s", (long long)(before + i),
                           layers[k]);
            const wb_record *layer = wb_record_below(root, path);
            good = put_halves(m, layer, "weight", run) && put_halves(m, layer, "bias", run);
        }
    return good;
}

/* All that the architecture has must be in the file. */
static bool load(wb_language_model *m, wb_layer *model) {
    wb_source source = {
        .file = m->weights, .noun = "file", .is_renamed = true, .needs_biases = true};
    wb_record *root = make_table(m) ? wb_rename(m->weights, m->weights->root, m->table.data) : NULL;
    if (!root || (m->architecture->family->has_pairs && !put_all_halves(m, root))) return false;
    source.root = root;
    return wb_load_source(&source, &(wb_load_desc){.model = model}) == WB_OK;
}

const wb_record *wb_language_names(wb_language_model *m) {
    return find_embedding(m) && make_table(m)
               ? wb_rename(m->weights, m->weights->root, m->table.data)
               : NULL;
}

wb_layer *wb_make_language_model(wb_language_model *m) {
    const wb_family *f = m->architecture->family;
    if (!find_embedding(m) || !has_room(m)) return NULL;
    *(wb_init **)member(m, f->init) = wb_zeros_init; /* the file has the numbers */
    const uint64_t errors = wb_error_count();
    wb_layer *model = f->make(&m->desc);
    if (!model) wb_error_prefix(errors, "%s: ", m->config->path);
    if (!model || !load(m, model)) {
        wb_free(model);
        return NULL;
    }
    if (m->architecture->lost)
        wb_log_line(WB_LOG_WARN, "%s: the model is the encoder of a %s; %s is left out", m->path,
                    m->architecture->name, m->architecture->lost);
    return model;
}
