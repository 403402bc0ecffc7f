/* Models of language from folders of Hugging Face's. An architecture is a row: which maker, which
 * settings of config.json it takes, and the table of its arrays' names (architectures.c). Nothing
 * in the folder is executed. */
#include "models/hugging_face.h"

#include <string.h>

#include "base/memory.h"
#include "formats/index.h"
#include "models/gguf_model.h"
#include "models/language_model.h"

/* ---- config.json ---- */

static bool find_architecture(wb_language_model *m) {
    const wb_json *list = wb_given_setting(m->settings, "architectures");
    const bool is_list = list && list->kind == WB_JSON_LIST;
    const wb_json *first = is_list && list->count ? list->items : NULL;
    const char *name = wb_json_text(first);
    if (!name)
        return wb_json_fault(m->config, list ? list : m->settings,
                             "architectures must be a list that begins with a text, but %s %s",
                             is_list ? "begins with" : "is",
                             wb_json_noun(is_list ? first : list)) == WB_OK;
    return wb_find_architecture(m, wb_architectures, wb_architecture_count, name, first->offset);
}

/* A member that must be there. */
static bool take_number(const wb_language_model *m, const wb_json *object, const char *name,
                        double *number) {
    const wb_json *value = wb_given_setting(object, name);
    return value ? wb_take_positive_setting(m, value, name, number)
                 : wb_lack_setting(m, object, name);
}

static bool take_llama3(const wb_language_model *m, const wb_json *rope, wb_llama_desc *d) {
    static const char name[] = "original_max_position_embeddings";
    const wb_json *length = wb_given_setting(rope, name);
    if (!length) return wb_lack_setting(m, rope, name);
    return take_number(m, rope, "low_freq_factor", &d->rotary_low) &&
           take_number(m, rope, "high_freq_factor", &d->rotary_high) &&
           (wb_json_integer(length, &d->rotary_length) ||
            wb_want_setting(m, length, name, "an integer"));
}

/* rope_scaling, or, in transformers 5, rope_parameters, which has rope_theta, too. */
bool wb_config_rotary(wb_language_model *m) {
    wb_llama_desc *d = &m->desc.llama;
    const char *name = "rope_parameters";
    const wb_json *rope = wb_given_setting(m->settings, name);
    if (!rope) rope = wb_given_setting(m->settings, name = "rope_scaling");
    if (!rope) return true;
    if (rope->kind != WB_JSON_OBJECT) return wb_want_setting(m, rope, name, "an object");
    const wb_json *base = wb_given_setting(rope, "rope_theta"),
                  *type = wb_given_setting(rope, "rope_type");
    if (base && !wb_take_positive_setting(m, base, "rope_theta", &d->rotary)) return false;
    if (!type) type = wb_given_setting(rope, "type");
    if (!type || wb_json_is(type, "default")) return true;
    const bool is_linear = wb_json_is(type, "linear"), is_llama3 = wb_json_is(type, "llama3");
    if (!is_linear && !is_llama3) {
        char what[120];
        const char *text = wb_json_text(type);
        (void)snprintf(what, sizeof what, "rotary positions of the type %.80s", text ? text : "?");
        return wb_refuse_setting(m, type, what);
    }
    return take_number(m, rope, "factor", &d->rotary_factor) &&
           (is_linear || take_llama3(m, rope, d));
}

bool wb_config_positions(wb_language_model *m) {
    const wb_json *type = wb_given_setting(m->settings, "position_embedding_type");
    return !type || wb_json_is(type, "absolute") ||
           wb_refuse_setting(m, type, "another position_embedding_type than absolute");
}

/* Opens the folder's files; false with an error. Close them in any case. */
static bool open_folder(wb_language_model *m, wb_file **config) {
    char *path = wb_path_in(m->path, strlen(m->path), "config.json");
    m->config = *config = path ? wb_json_open(path, &m->settings) : NULL;
    wb_release(path);
    if (*config && find_architecture(m) && wb_take_settings(m)) m->weights = wb_open(m->path);
    return m->weights != NULL;
}

wb_layer *wb_hugging_face_model(const char *folder) {
    wb_language_model m = {.path = folder};
    wb_file *config;
    wb_layer *model = open_folder(&m, &config) ? wb_make_language_model(&m) : NULL;
    wb_text_release(&m.table);
    wb_free(m.weights), wb_free(config);
    return model;
}

const wb_record *wb_hugging_face_names(const char *folder, wb_file **weights, const char **own,
                                       const char **wanted) {
    wb_language_model m = {.path = folder};
    wb_file *config;
    const wb_record *names = open_folder(&m, &config) ? wb_language_names(&m) : NULL;
    wb_text_release(&m.table);
    wb_free(config);
    *weights = m.weights, *own = m.prefix;
    if (names)
        *wanted = m.architecture->has_head || m.architecture->lost
                      ? m.architecture->family->prefixes[0]
                      : "";
    return names;
}

/* ---- the end of texts ---- */

/* The first one that the file names; -1: none, and with an error. */
static int64_t end_in(const char *folder, const char *name) {
    const wb_json *root;
    int64_t token = -1;
    char *path = wb_path_in(folder, strlen(folder), name);
    wb_file *file = path ? wb_json_open(path, &root) : NULL;
    const wb_json *value = file ? wb_given_setting(root, "eos_token_id") : NULL;
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

/* Of a GGUF file. */
static int64_t end_of_file(const char *path) {
    wb_file *file = wb_open(path);
    const int64_t token = file ? wb_gguf_end_token(file) : -1;
    wb_free(file);
    return token;
}

int64_t wb_end_token(const char *folder) {
    if (wb_failed()) return (void)wb_not_run("wb_end_token"), -1;
    if (!folder) return wb_fail_argument_null("wb_end_token", "the folder") ? 0 : -1;
    int64_t token = -1;
    if (!wb_is_folder(folder)) return end_of_file(folder);
    if (wb_has_file(folder, "generation_config.json"))
        token = end_in(folder, "generation_config.json");
    return token < 0 && !wb_failed() ? end_in(folder, "config.json") : token;
}
