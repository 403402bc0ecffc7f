/* Models of language from folders of Hugging Face's. An architecture is a row: which maker, which
 * settings of config.json it takes, and the table of its arrays' names (architectures.c). Nothing
 * in the folder is executed. */
#include "models/hugging_face.h"

#include <string.h>

#include "array/use.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/index.h"
#include "formats/json.h"
#include "models/architectures.h"
#include "models/load.h"
#include "models/rename.h"

/* A folder that is being read. */
typedef struct reader {
    const char *folder;
    wb_file *config;
    const wb_json *root;
    const wb_architecture *architecture;
    const wb_family *family;
    wb_architecture_desc desc;
    wb_file *weights;
    const char *prefix;
    wb_text table;
} reader;

static void *member(reader *r, size_t offset) { return (char *)&r->desc + offset; }

/* ---- config.json ---- */

/* The member, which is neither absent nor null; else NULL. */
static const wb_json *given(const wb_json *object, const char *name) {
    const wb_json *value = wb_json_get(object, name);
    return value && value->kind != WB_JSON_NULL ? value : NULL;
}

static bool find_architecture(reader *r) {
    const wb_json *list = given(r->root, "architectures");
    const bool is_list = list && list->kind == WB_JSON_LIST;
    const wb_json *first = is_list && list->count ? list->items : NULL;
    const char *name = wb_json_text(first);
    if (!name)
        return wb_json_fault(r->config, list ? list : r->root,
                             "architectures must be a list that begins with a text, but %s %s",
                             is_list ? "begins with" : "is",
                             wb_json_noun(is_list ? first : list)) == WB_OK;
    wb_text known = {.data = NULL};
    for (int i = 0; i < wb_architecture_count; i++) {
        if (strcmp(wb_architectures[i].name, name) == 0) r->architecture = &wb_architectures[i];
        wb_text_add(&known, "%s%s", i ? ", " : "", wb_architectures[i].name);
    }
    if (!r->architecture)
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s, offset %lld: the architecture must be one of %s, but is %.80s",
                      r->config->path, (long long)first->offset,
                      wb_text_status(&known) == WB_OK ? known.data : "those in docs/files.md",
                      name);
    wb_text_release(&known);
    r->family = r->architecture ? r->architecture->family : NULL;
    return r->family != NULL;
}

static bool wanted(const reader *r, const wb_json *value, const char *name, const char *what) {
    (void)wb_json_fault(r->config, value, "%s must be %s, but is %s", name, what,
                        wb_json_noun(value));
    return false;
}

static bool refuse(const reader *r, const wb_json *value, const char *what) {
    (void)wb_fail(WB_ERROR_UNSUPPORTED, "%s, offset %lld: models with %s cannot be made",
                  r->config->path, (long long)value->offset, what);
    return false;
}

static bool find_activation(const reader *r, const wb_json *value, wb_activation **activation) {
    const char *name = wb_json_text(value);
    if (!name) return wanted(r, value, "the activation", "a text");
    for (int i = 0; i < wb_named_activation_count; i++)
        if (strcmp(wb_named_activations[i].name, name) == 0) {
            *activation = wb_named_activations[i].activation;
            return true;
        }
    char what[120];
    (void)snprintf(what, sizeof what, "the activation %.80s", name);
    return refuse(r, value, what);
}

static bool take_positive(const reader *r, const wb_json *value, const char *name, double *number) {
    if (!wb_json_number(value, number)) return wanted(r, value, name, "a number");
    if (*number > 0) return true;
    (void)wb_json_fault(r->config, value, "%s must be positive, but is %g", name, *number);
    return false;
}

static bool take_setting(reader *r, const wb_config_setting *s) {
    const wb_json *value = given(r->root, s->name);
    char what[80];
    bool flag = false;
    if (!value) return true;
    switch (s->kind) {
    case WB_CONFIG_INTEGER:
        return wb_json_integer(value, member(r, s->offset)) ||
               wanted(r, value, s->name, "an integer");
    case WB_CONFIG_REAL:
        return wb_json_number(value, member(r, s->offset)) || wanted(r, value, s->name, "a number");
    case WB_CONFIG_POSITIVE:
        return take_positive(r, value, s->name, member(r, s->offset));
    case WB_CONFIG_BOOL:
        return wb_json_bool(value, member(r, s->offset)) || wanted(r, value, s->name, "a bool");
    case WB_CONFIG_ACTIVATION:
        return find_activation(r, value, member(r, s->offset));
    case WB_CONFIG_FALSE:
        return (wb_json_bool(value, &flag) && !flag) || refuse(r, value, s->name);
    case WB_CONFIG_TRUE:
        (void)snprintf(what, sizeof what, "%s = false", s->name);
        return (wb_json_bool(value, &flag) && flag) || refuse(r, value, what);
    case WB_CONFIG_ABSENT:
        return refuse(r, value, s->name);
    }
    return true;
}

static bool lacks(const reader *r, const wb_json *object, const char *name) {
    (void)wb_json_fault(r->config, object, "%s is missing", name);
    return false;
}

/* A member that must be there. */
static bool take_number(const reader *r, const wb_json *object, const char *name, double *number) {
    const wb_json *value = given(object, name);
    return value ? take_positive(r, value, name, number) : lacks(r, object, name);
}

static bool take_llama3(const reader *r, const wb_json *rope, wb_llama_desc *d) {
    static const char name[] = "original_max_position_embeddings";
    const wb_json *length = given(rope, name);
    if (!length) return lacks(r, rope, name);
    return take_number(r, rope, "low_freq_factor", &d->rotary_low) &&
           take_number(r, rope, "high_freq_factor", &d->rotary_high) &&
           (wb_json_integer(length, &d->rotary_length) || wanted(r, length, name, "an integer"));
}

/* rope_scaling, or, in transformers 5, rope_parameters, which has rope_theta, too. */
static bool take_rotary(reader *r) {
    wb_llama_desc *d = &r->desc.llama;
    const char *name = "rope_parameters";
    const wb_json *rope = given(r->root, name);
    if (!rope) rope = given(r->root, name = "rope_scaling");
    if (!rope) return true;
    if (rope->kind != WB_JSON_OBJECT) return wanted(r, rope, name, "an object");
    const wb_json *base = given(rope, "rope_theta"), *type = given(rope, "rope_type");
    if (base && !take_positive(r, base, "rope_theta", &d->rotary)) return false;
    if (!type) type = given(rope, "type");
    if (!type || wb_json_is(type, "default")) return true;
    const bool is_linear = wb_json_is(type, "linear"), is_llama3 = wb_json_is(type, "llama3");
    if (!is_linear && !is_llama3) {
        char what[120];
        const char *text = wb_json_text(type);
        (void)snprintf(what, sizeof what, "rotary positions of the type %.80s", text ? text : "?");
        return refuse(r, type, what);
    }
    return take_number(r, rope, "factor", &d->rotary_factor) &&
           (is_linear || take_llama3(r, rope, d));
}

static bool take_positions(reader *r) {
    const wb_json *type = given(r->root, "position_embedding_type");
    if (r->family->has_rotary) return take_rotary(r);
    return !type || wb_json_is(type, "absolute") ||
           refuse(r, type, "another position_embedding_type than absolute");
}

static bool read_config(reader *r) {
    char *path = wb_path_in(r->folder, strlen(r->folder), "config.json");
    r->config = path ? wb_json_open(path, &r->root) : NULL;
    wb_release(path);
    if (!r->config || !find_architecture(r)) return false;
    r->family->begin(&r->desc);
    for (const wb_config_setting *s = r->family->settings; s->name; s++)
        if (!take_setting(r, s)) return false;
    if (r->family->head) *(bool *)member(r, r->family->head) = r->architecture->has_head;
    return take_positions(r);
}

/* ---- the arrays ---- */

static const wb_record *array_named(const reader *r, const char *prefix, const char *name) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s%s", *name == '@' ? prefix : "", name + (*name == '@'));
    const wb_record *x = wb_record_below(r->weights->root, path);
    return x && x->kind == WB_RECORD_ARRAY ? x : NULL;
}

/* Opens the weights; finds the prefix of their names, and their type. */
static bool open_weights(reader *r) {
    const wb_family *f = r->family;
    char name[80];
    r->weights = wb_open(r->folder);
    if (!r->weights) return false;
    (void)snprintf(name, sizeof name, "@%s", f->embedding);
    for (int i = 0; f->prefixes[i]; i++) {
        const wb_record *x = array_named(r, f->prefixes[i], name);
        if (!x) continue;
        r->prefix = f->prefixes[i];
        *(wb_dtype *)member(r, f->dtype) = (wb_dtype)x->dtype;
        return true;
    }
    (void)wb_fail(WB_ERROR_FORMAT, "%s: a %s must have the array %s%s", r->weights->path,
                  r->architecture->name, f->prefixes[0], f->embedding);
    return false;
}

static void put_row(reader *r, const char *row, int64_t after) {
    for (; *row; row++)
        if (*row == '@')
            wb_text_put(&r->table, r->prefix);
        else if (*row == '#')
            wb_text_add(&r->table, "%lld", (long long)after);
        else
            wb_text_byte(&r->table, *row);
    wb_text_byte(&r->table, '\n');
}

/* The rename table of this file. */
static bool make_table(reader *r) {
    const wb_family *f = r->family;
    const int64_t after = f->before + *(const int64_t *)member(r, f->layers) + 1;
    const bool tied = f->tied && *(const bool *)member(r, f->tied);
    const bool has_head = f->head && r->architecture->has_head;
    const bool file_has_head = f->head && array_named(r, "", "lm_head.weight");
    if (has_head && !tied && !file_has_head) {
        (void)wb_fail(WB_ERROR_FORMAT,
                      "%s: a %s whose tie_word_embeddings is false must have the array "
                      "lm_head.weight",
                      r->weights->path, r->architecture->name);
        return false;
    }
    for (const wb_name_row *n = f->names; n->row; n++)
        if (!n->only_if || array_named(r, r->prefix, n->only_if)) put_row(r, n->row, after);
    if (has_head && tied) {
        wb_text_add(&r->table, "%s%s -> layers.%lld.weight transpose\n", r->prefix, f->embedding,
                    (long long)after + 1);
        if (file_has_head) wb_text_put(&r->table, "lm_head.weight ->\n");
    } else if (has_head)
        wb_text_add(&r->table, "lm_head.weight -> layers.%lld.weight transpose\n",
                    (long long)after + 1);
    else if (file_has_head)
        wb_text_put(&r->table, "lm_head.weight ->\n");
    wb_text_byte(&r->table, 0);
    return wb_text_status(&r->table) == WB_OK;
}

static bool add_numbers(wb_record *r, void *sum) {
    double count = r->kind == WB_RECORD_ARRAY ? 1 : 0;
    for (int d = 0; d < r->ndim; d++) count *= (double)r->sizes[d];
    *(double *)sum += count;
    return true;
}

/* A small file does not make a large model: no memory is asked for that the file cannot fill. */
static bool has_room(const reader *r) {
    const double wants = r->family->least(&r->desc);
    double has = 0;
    (void)wb_record_walk(r->weights->root, add_numbers, &has);
    if (wants <= has) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the model has at least %.0f numbers, but the weights %.0f",
                  r->config->path, wants, has);
    return false;
}

/* All that the architecture has must be in the file. */
static bool load(reader *r, wb_layer *model) {
    wb_source source = {
        .file = r->weights, .noun = "file", .is_renamed = true, .needs_biases = true};
    source.root = make_table(r) ? wb_rename(r->weights, r->weights->root, r->table.data) : NULL;
    return source.root && wb_load_source(&source, &(wb_load_desc){.model = model}) == WB_OK;
}

static wb_layer *make(reader *r) {
    if (!read_config(r) || !open_weights(r) || !has_room(r)) return NULL;
    *(wb_init **)member(r, r->family->init) = wb_zeros_init; /* the file has the numbers */
    const uint64_t errors = wb_error_count();
    wb_layer *model = r->family->make(&r->desc);
    if (!model) wb_error_prefix(errors, "%s: ", r->config->path);
    if (!model || !load(r, model)) {
        wb_free(model);
        return NULL;
    }
    if (r->architecture->lost)
        wb_log_line(WB_LOG_WARN, "%s: the model is the encoder of a %s; %s is left out", r->folder,
                    r->architecture->name, r->architecture->lost);
    return model;
}

wb_layer *wb_hugging_face_model(const char *folder) {
    reader r = {.folder = folder};
    wb_layer *model = make(&r);
    wb_text_release(&r.table);
    wb_free(r.weights), wb_free(r.config);
    return model;
}

/* ---- the end of texts ---- */

/* The first one that the file names; -1: none, and with an error. */
static int64_t end_in(const char *folder, const char *name) {
    const wb_json *root;
    int64_t token = -1;
    char *path = wb_path_in(folder, strlen(folder), name);
    wb_file *file = path ? wb_json_open(path, &root) : NULL;
    const wb_json *value = file ? given(root, "eos_token_id") : NULL;
    if (value && value->kind == WB_JSON_LIST && value->count) value = value->items;
    if (value && (!wb_json_integer(value, &token) || token < 0 || token > INT32_MAX)) {
        (void)wb_json_fault(file, value, "eos_token_id must be a token, but is %s",
                            wb_json_noun(value));
        token = -1;
    }
    wb_free(file);
    wb_release(path);
    return token;
}

int64_t wb_end_token(const char *folder) {
    if (wb_failed()) return (void)wb_not_run("wb_end_token"), -1;
    if (!folder) return wb_fail_argument_null("wb_end_token", "the folder") ? 0 : -1;
    int64_t token = -1;
    if (wb_has_file(folder, "generation_config.json"))
        token = end_in(folder, "generation_config.json");
    return token < 0 && !wb_failed() ? end_in(folder, "config.json") : token;
}
