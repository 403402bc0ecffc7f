/* Models of language from GGUF files, by the rows of gguf_architectures.c. */
#include "models/gguf_model.h"

#include <math.h>
#include <string.h>

#include "array/use.h"
#include "models/language_model.h"

/* ---- metadata as settings ---- */

static const wb_record *value_of(const wb_file *file, const char *key) {
    return file->metadata ? wb_record_below(file->metadata, key) : NULL;
}

static wb_json json_of(const wb_record *r) {
    wb_json value = {.kind = WB_JSON_LIST, .offset = r->offset};
    if (r->kind == WB_RECORD_BOOL) value.kind = WB_JSON_BOOL, value.boolean = r->boolean;
    if (r->kind == WB_RECORD_INTEGER) value.kind = WB_JSON_INTEGER, value.integer = r->integer;
    if (r->kind == WB_RECORD_REAL) value.kind = WB_JSON_REAL, value.real = r->real;
    if (r->kind == WB_RECORD_TEXT) {
        value.kind = WB_JSON_TEXT, value.text = r->text;
        value.count = (int64_t)strlen(r->text);
    }
    return value;
}

/* The values whose keys begin with the architecture, without it; NULL on failure. */
static const wb_json *settings_of(wb_file *file, const char *architecture) {
    const wb_record *all = file->metadata;
    const size_t length = strlen(architecture);
    int64_t count = 0;
    wb_json *items = wb_arena_list(&file->arena, all->count + 1, sizeof *items);
    if (!items) return NULL;
    for (int64_t i = 0; i < all->count; i++) {
        const char *key = all->names[i];
        if (strncmp(key, architecture, length) != 0 || key[length] != '.') continue;
        wb_json item = json_of(all->children[i]);
        item.name = key + length + 1;
        item.name_bytes = (uint32_t)strlen(item.name);
        items[count++] = item;
    }
    return wb_json_object(&file->arena, items, count);
}

/* ---- positions ---- */

/* What divides the rate of position i in Llama 3.1, whose numbers are not in the metadata: slow
 * rates by the factor, fast ones by 1, those between by something between. */
enum { LOW = 1, HIGH = 4, LENGTH = 8192 };
static double divisor(double factor, double rate) {
    const double turns = LENGTH * rate / (2 * acos(-1));
    if (turns < LOW) return factor;
    if (turns > HIGH) return 1;
    const double part = (turns - LOW) / (HIGH - LOW);
    return 1 / ((1 - part) / factor + part);
}

static bool are_of_llama3(const float *x, int64_t count, double base, double factor) {
    for (int64_t i = 0; i < count; i++) {
        const double wanted = divisor(factor, pow(base, -(double)i / (double)count));
        if (!(fabs((double)x[i] - wanted) <= 1e-3 * wanted)) return false;
    }
    return true;
}

static bool take_rates(wb_language_model *m, const wb_record *rates) {
    wb_llama_desc *d = &m->desc.llama;
    bool good = false;
    if (!wb_scope_begin()) return false;
    wb_array *x = rates->dtype == WB_F32 ? wb_record_array(m->weights, rates) : NULL;
    const int64_t count = x ? wb_count(x) : 0;
    const float *data = count ? wb_read_begin(x) : NULL;
    if (data) {
        const double factor = (double)data[count - 1];
        good = factor >= 1 && are_of_llama3(data, count, d->rotary, factor);
        d->rotary_factor = factor, d->rotary_low = LOW, d->rotary_high = HIGH;
        d->rotary_length = LENGTH;
        wb_read_end(x);
    }
    if (!good && !wb_failed())
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s, offset %lld: " WB_GGUF_RATES " must have the numbers of Llama 3.1",
                      m->weights->path, (long long)rates->offset);
    return wb_scope_leave() == WB_OK && good;
}

bool wb_gguf_rotary(wb_language_model *m) {
    wb_llama_desc *d = &m->desc.llama;
    const wb_json *type = wb_given_setting(m->settings, "rope.scaling.type"),
                  *factor = wb_given_setting(m->settings, "rope.scaling.factor"),
                  *turned = wb_given_setting(m->settings, "rope.dimension_count");
    const wb_record *rates = wb_language_array(m, WB_GGUF_RATES);
    const int64_t width = d->head_features ? d->head_features
                          : d->heads > 0   ? d->features / d->heads
                                           : 0;
    int64_t number;
    if (turned && (!wb_json_integer(turned, &number) || number != width))
        return wb_refuse_setting(m, turned, "a rope.dimension_count other than the size of heads");
    if (rates) return take_rates(m, rates);
    if (!type || wb_json_is(type, "none")) return true;
    if (!wb_json_is(type, "linear"))
        return wb_refuse_setting(m, type, "another rope.scaling.type than none and linear");
    return factor ? wb_take_positive_setting(m, factor, "rope.scaling.factor", &d->rotary_factor)
                  : wb_lack_setting(m, m->settings, "rope.scaling.factor");
}

/* ---- the model ---- */

static bool find_architecture(wb_language_model *m, wb_file *file) {
    static const char key[] = "general.architecture", parts_key[] = "split.count";
    const wb_record *name = value_of(file, key), *parts = value_of(file, parts_key);
    if (!name || name->kind != WB_RECORD_TEXT)
        return wb_file_fault(file, name ? name->offset : 0, "%s must be a text, but is %s", key,
                             wb_record_noun(name)) == WB_OK;
    if (parts && parts->kind == WB_RECORD_INTEGER && parts->integer > 1) {
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s, offset %lld: the model is in %lld files, which are not read together; "
                      "llama.cpp joins them by `llama-gguf-split --merge`",
                      file->path, (long long)parts->offset, (long long)parts->integer);
        return false;
    }
    if (!wb_find_architecture(m, wb_gguf_architectures, wb_gguf_architecture_count, name->text,
                              name->offset))
        return false;
    m->settings = settings_of(file, name->text);
    return m->settings != NULL;
}

bool wb_is_gguf_model(const wb_file *file) {
    return file->format == &wb_format_gguf && !value_of(file, "model_structure");
}

wb_layer *wb_gguf_model(wb_file *file) {
    wb_language_model m = {.path = file->path, .config = file, .weights = file};
    wb_layer *model =
        find_architecture(&m, file) && wb_take_settings(&m) ? wb_make_language_model(&m) : NULL;
    wb_text_release(&m.table);
    return model;
}

int64_t wb_gguf_end_token(const wb_file *file) {
    const wb_record *r = value_of(file, "tokenizer.ggml.eos_token_id");
    if (!r) return -1;
    if (r->kind == WB_RECORD_INTEGER && r->integer >= 0 && r->integer <= INT32_MAX)
        return r->integer;
    (void)wb_file_fault(file, r->offset, "tokenizer.ggml.eos_token_id must be a token, but is %s",
                        wb_record_noun(r));
    return -1;
}
