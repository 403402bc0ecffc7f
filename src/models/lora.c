/* Adapters of low rank in files: the folders of Hugging Face's library PEFT. Names there are those
 * of a model's modules, "base_model.model.MODULE.lora_A.weight"; the rename tables of the known
 * architectures say which layer a module is. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array/use.h"
#include "base/memory.h"
#include "base/replace.h"
#include "formats/flat.h"
#include "formats/index.h"
#include "formats/json.h"
#include "layers/lora.h"
#include "models/architectures.h"
#include "models/hugging_face.h"
#include "models/load.h"
#include "models/rename.h"

#define BEFORE     "base_model.model."
#define WEIGHT     ".weight"
#define CONFIG     "adapter_config.json"
#define ADAPTERS   "adapter_model.safetensors"
#define OLD_FORMAT "adapter_model.bin"

/* ---- names ---- */

static bool ends_with(const char *text, size_t bytes, const char *end) {
    const size_t more = strlen(end);
    return bytes >= more && memcmp(text + bytes - more, end, more) == 0;
}

/* Without ".weight", or a ".*" that stands for it and the bias; 0: it is another array. */
static size_t module_bytes(const char *name, size_t bytes) {
    if (ends_with(name, bytes, WEIGHT)) return bytes - strlen(WEIGHT);
    return ends_with(name, bytes, ".*") ? bytes - strlen(".*") : 0;
}

/* "A.weight -> B.weight OPTIONS" of an architecture becomes the rows of adapters beside it. A is
 * the same for all parts of a weight; of B, whose output is divided, a part is taken. */
static void put_rows(wb_text *table, const char *prefix, const char *row) {
    const char *arrow = strstr(row, " -> "), *to = arrow ? arrow + 4 : NULL;
    if (!to || !strchr(row, '*')) return;
    const size_t to_bytes = strcspn(to, " ");
    const char *part = strstr(to + to_bytes, "part ");
    const int module = (int)module_bytes(row, (size_t)(arrow - row)),
              layer = (int)module_bytes(to, to_bytes);
    if (module == 0 || layer == 0) return;
    for (const char *which = "AB"; *which; which++) {
        const bool is_divided = part && *which == 'B';
        wb_text_add(table, BEFORE "%s%.*s.lora_%c.weight -> model.%.*s.adapter.%c transpose",
                    prefix, module - 1, row + 1, *which, layer, to, *which == 'A' ? 'a' : 'b');
        wb_text_add(table, is_divided ? " %.8s\n" : "\n", is_divided ? part : "");
    }
}

/* Of all architectures, and Weber's own paths; new names begin with "model". */
static bool make_table(wb_text *table) {
    for (int i = 0; i < wb_architecture_count; i++) {
        const wb_family *f = wb_architectures[i].family;
        bool is_known = false;
        for (int k = 0; k < i; k++) is_known |= wb_architectures[k].family->names == f->names;
        for (int p = 0; !is_known && f->prefixes[p]; p++)
            for (const wb_name_row *n = f->names; n->row; n++)
                put_rows(table, f->prefixes[p], n->row);
    }
    wb_text_put(table, "base_model.**.lora_A.weight -> **.adapter.a transpose\n"
                       "base_model.**.lora_B.weight -> **.adapter.b transpose\n");
    wb_text_byte(table, 0);
    return wb_text_status(table) == WB_OK;
}

/* ---- reading ---- */

/* A folder that is being read. */
typedef struct reader {
    wb_file *config, *weights;
    const wb_json *root;
    const wb_record *arrays; /* under Weber's paths */
    int64_t rank;
    double scale;
    const wb_record **taken; /* arrays that a layer has got */
    int64_t taken_count, taken_capacity;
} reader;

/* What changes the computation, or is saved besides; absent, null, false and empty are fine. */
static const char *const refused[] = {"use_dora",
                                      "lora_bias",
                                      "use_qalora",
                                      "modules_to_save",
                                      "rank_pattern",
                                      "alpha_pattern",
                                      "layer_replication",
                                      "target_parameters",
                                      "megatron_config",
                                      "trainable_token_indices",
                                      "alora_invocation_tokens"};

static bool is_nothing(const wb_json *value) {
    bool flag = true;
    if (!value || value->kind == WB_JSON_NULL) return true;
    if (value->kind == WB_JSON_LIST || value->kind == WB_JSON_OBJECT) return value->count == 0;
    return wb_json_bool(value, &flag) && !flag;
}

static bool check_config(const reader *r) {
    const wb_json *type = wb_json_get(r->root, "peft_type"), *bias = wb_json_get(r->root, "bias");
    if (!wb_json_is(type, "LORA"))
        return wb_json_fault(r->config, type ? type : r->root, "peft_type must be \"LORA\"") ==
               WB_OK;
    if (bias && bias->kind != WB_JSON_NULL && !wb_json_is(bias, "none"))
        return wb_json_fault(r->config, bias, "biases beside adapters are not read") == WB_OK;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const wb_json *value = wb_json_get(r->root, refused[i]);
        if (!is_nothing(value))
            return wb_json_fault(r->config, value, "adapters with %s are not read", refused[i]) ==
                   WB_OK;
    }
    return true;
}

static bool read_config(reader *r, const char *folder) {
    char *path = wb_path_in(folder, strlen(folder), CONFIG);
    r->config = path ? wb_json_open(path, &r->root) : NULL;
    wb_release(path);
    if (!r->config || !check_config(r)) return false;
    const wb_json *rank = wb_json_get(r->root, "r"), *alpha = wb_json_get(r->root, "lora_alpha"),
                  *rooted = wb_json_get(r->root, "use_rslora");
    double number;
    bool is_rooted = false;
    if (!wb_json_integer(rank, &r->rank) || r->rank < 1)
        return wb_json_fault(r->config, rank ? rank : r->root, "r must be a positive integer") ==
               WB_OK;
    if (!wb_json_number(alpha, &number) || !isfinite(number))
        return wb_json_fault(r->config, alpha ? alpha : r->root, "lora_alpha must be a number") ==
               WB_OK;
    if (rooted && rooted->kind != WB_JSON_NULL && !wb_json_bool(rooted, &is_rooted))
        return wb_json_fault(r->config, rooted, "use_rslora must be true or false") == WB_OK;
    r->scale = number / (is_rooted ? sqrt((double)r->rank) : (double)r->rank);
    return true;
}

static bool open_weights(reader *r, const char *folder) {
    const bool is_old = !wb_has_file(folder, ADAPTERS) && wb_has_file(folder, OLD_FORMAT);
    char *path = wb_path_in(folder, strlen(folder), is_old ? OLD_FORMAT : ADAPTERS);
    wb_text table = {.data = NULL};
    r->weights = path ? wb_open(path) : NULL;
    r->arrays = r->weights && make_table(&table)
                    ? wb_rename(r->weights, r->weights->root, table.data)
                    : NULL;
    wb_text_release(&table);
    wb_release(path);
    return r->arrays != NULL;
}

/* The array beside the layer, in the type that adapters of it have; NULL without one. */
static wb_array *array_at(reader *r, const char *layer, const char *which, const wb_array *weight) {
    char path[WB_PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "model%s%s.adapter.%s", *layer ? "." : "", layer, which);
    const wb_record *record = wb_record_below(r->arrays, path);
    if (!record || record->kind != WB_RECORD_ARRAY) return NULL;
    if (!wb_dtype_is_float((wb_dtype)record->dtype))
        return wb_fail_null(WB_ERROR_DTYPE, "%s: %s must be of a floating type, but is %s",
                            r->weights->path, wb_origin_text(record, path),
                            wb_dtype_name((wb_dtype)record->dtype));
    if (!WB_GROW(r->taken, r->taken_count, r->taken_capacity)) return NULL;
    r->taken[r->taken_count++] = record;
    return wb_cast(wb_record_array(r->weights, record), weight->dtype == WB_F64 ? WB_F64 : WB_F32);
}

static bool plan_layer(reader *r, const wb_module *m, wb_lora_plan *plan) {
    const wb_array *weight = wb_get(m->layer, "weight");
    if (!weight) return false;
    wb_array *a = array_at(r, m->path, "a", weight), *b = array_at(r, m->path, "b", weight);
    if (wb_failed()) return false;
    if (!a && !b) return true;
    if (!a || !b) {
        (void)wb_fail(WB_ERROR_FORMAT, "%s: the adapter of %s has no lora_%c", r->weights->path,
                      m->path, a ? 'B' : 'A');
        return false;
    }
    const uint64_t errors = wb_error_count();
    if (a->ndim == 2 && a->sizes[0] != r->rank)
        (void)wb_fail(WB_ERROR_SHAPE, "r is %lld in " CONFIG ", but A is %s", (long long)r->rank,
                      wb_text_of(a));
    else if (wb_lora_plan_add(plan, m->layer, a, b, r->scale))
        return true;
    wb_error_prefix(errors, "%s: %s: ", r->weights->path, m->path);
    return false;
}

static bool is_taken(const reader *r, const wb_record *record) {
    for (int64_t i = 0; i < r->taken_count; i++)
        if (r->taken[i] == record) return true;
    return false;
}

/* All arrays of the file must be adapters of layers that the model has. */
static bool check_all_taken(const reader *r) {
    wb_flat flat = {.count = 0};
    bool good = wb_flat_make(&flat, r->arrays, r->weights->path) == WB_OK;
    for (int64_t i = 0; good && i < flat.count; i++) {
        const wb_record *record = flat.entries[i].record;
        if (!record || !wb_record_has_data(record) || is_taken(r, record)) continue;
        good = false;
        (void)wb_fail(WB_ERROR_FORMAT, "%s: %s is no adapter of a Dense layer that the model has",
                      r->weights->path, wb_origin_text(record, flat.entries[i].path));
    }
    wb_flat_release(&flat);
    return good;
}

static bool plan_all(reader *r, wb_layer *model, wb_lora_plan *plan) {
    bool good = true;
    for (wb_module m = {0}; wb_next_module(model, &m);) {
        if (good && wb_dense_adapter(m.layer)) good = plan_layer(r, &m, plan);
    }
    if (!good || wb_failed() || !check_all_taken(r)) return false;
    if (plan->count == 0)
        (void)wb_fail(WB_ERROR_FORMAT, "%s: there are no adapters", r->weights->path);
    return plan->count > 0;
}

wb_status wb_lora_load(const char *path, wb_layer *model) {
    if (wb_failed()) return wb_not_run("wb_lora_load");
    if (!path) return wb_fail_argument_null("wb_lora_load", "the path"), wb_error_status();
    if (!wb_check_model("wb_lora_load", model) || wb_is_tracing("wb_lora_load") ||
        !wb_scope_begin())
        return wb_error_status();
    reader r = {.rank = 0};
    wb_lora_plan plan = {.count = 0};
    const bool good = read_config(&r, path) && open_weights(&r, path) && plan_all(&r, model, &plan);
    wb_lora_plan_end(&plan, model, good ? WB_LORA_REPLACE : WB_LORA_GIVE_UP);
    wb_release(r.taken), wb_free(r.weights), wb_free(r.config);
    const wb_status status = wb_scope_leave();
    return wb_failed() ? wb_error_status() : status;
}

/* ---- writing ---- */

/* A module's name, rank and scale, in the order of the model. */
typedef struct writer {
    const wb_lora_save_desc *desc;
    wb_file *base; /* of whose arrays the names are; NULL: Weber's paths */
    const wb_record *names;
    const char *own_prefix, *wanted_prefix; /* of names: in the file; in the model's modules */
    wb_named *arrays;
    int64_t count, capacity;
    int64_t rank;
    double scale;
    wb_text targets; /* of the config: "a", "b" */
    wb_arena arena;
} writer;

/* The name of the module, from the name of its weight in the base's file. */
static const char *module_name(writer *w, const char *path) {
    if (!w->names) return path;
    char at[WB_PATH_BYTES + 16];
    (void)snprintf(at, sizeof at, "%s" WEIGHT, path);
    const wb_record *record = wb_record_below(w->names, at);
    const char *name = record ? record->origin : NULL;
    if (!name || !ends_with(name, strlen(name), WEIGHT))
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_lora_save: %s: there is no %s in that model",
                            w->desc->base, at);
    if (record->turn && record->turn->end)
        return wb_fail_null(WB_ERROR_UNSUPPORTED,
                            "wb_lora_save: %s is a part of %s in that model, and PEFT has no "
                            "adapters of parts; save it without .base",
                            path, name);
    const size_t own = strlen(w->own_prefix);
    const bool has_prefix = strncmp(name, w->own_prefix, own) == 0;
    wb_text text = {.data = NULL};
    wb_text_put(&text, has_prefix ? w->wanted_prefix : "");
    wb_text_put(&text, name + (has_prefix ? own : 0));
    wb_text_byte(&text, 0);
    char *copy = wb_text_status(&text) == WB_OK
                     ? wb_arena_text(&w->arena, text.data, strlen(text.data) - strlen(WEIGHT))
                     : NULL;
    wb_text_release(&text);
    return copy;
}

static bool add_array(writer *w, const char *module, char which, wb_array *x) {
    char name[2 * WB_PATH_BYTES];
    (void)snprintf(name, sizeof name, BEFORE "%s%slora_%c" WEIGHT, module, *module ? "." : "",
                   which);
    wb_array *turned = wb_transpose(x);
    if (!turned || !WB_GROW(w->arrays, w->count, w->capacity)) return false;
    char *key = wb_arena_text(&w->arena, name, strlen(name));
    w->arrays[w->count] = (wb_named){key, turned};
    w->count += key != NULL;
    return key;
}

static bool add_adapter(writer *w, const char *path, const wb_lora_layer *l) {
    const double scale = wb_item(l->scale);
    const int64_t rank = l->a->sizes[0];
    const char *module = module_name(w, path);
    if (!module || wb_failed()) return false;
    if (!isfinite(scale)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_lora_save: alpha / rank of %s is %g", path, scale);
        return false;
    }
    if (w->count && (rank != w->rank || scale != w->scale)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_lora_save: all adapters must have one rank and alpha; %s has rank %lld "
                      "and alpha / rank = %g, those before it %lld and %g",
                      path, (long long)rank, scale, (long long)w->rank, w->scale);
        return false;
    }
    if (w->count) wb_text_put(&w->targets, ", ");
    wb_json_quote(&w->targets, module);
    w->rank = rank, w->scale = scale;
    return add_array(w, module, 'A', l->a) && add_array(w, module, 'B', l->b);
}

static bool add_all(writer *w) {
    bool good = true;
    for (wb_module m = {0}; wb_next_module(w->desc->model, &m);) {
        const wb_lora_layer *l = good ? wb_lora_of(m.layer) : NULL;
        if (l) good = add_adapter(w, m.path, l);
    }
    if (good && !wb_failed() && w->count == 0)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_lora_save: %s has no adapters",
                      w->desc->model->class_->name);
    return good && !wb_failed();
}

static void print_config(writer *w, wb_text *out) {
    wb_text_put(out, "{\n  \"peft_type\": \"LORA\",\n  \"base_model_name_or_path\": ");
    if (w->desc->base)
        wb_json_quote(out, w->desc->base);
    else
        wb_text_put(out, "null");
    wb_text_add(out,
                ",\n  \"r\": %lld,\n  \"lora_alpha\": %.17g,\n  \"lora_dropout\": 0.0,\n"
                "  \"bias\": \"none\",\n  \"fan_in_fan_out\": false,\n"
                "  \"inference_mode\": true,\n  \"target_modules\": [",
                (long long)w->rank, w->scale * (double)w->rank);
    wb_text_add(out, "%s]\n}\n", w->targets.data);
}

static wb_status write_config(writer *w, const char *path) {
    wb_text text = {.data = NULL};
    wb_replacement file;
    wb_text_byte(&w->targets, 0);
    if (wb_text_status(&w->targets) == WB_OK) print_config(w, &text);
    wb_status status = wb_text_status(&text);
    if (status == WB_OK && wb_failed()) status = wb_error_status();
    if (status == WB_OK) {
        const bool is_open = wb_replace_begin(&file, path);
        const bool is_written =
            is_open && fwrite(text.data, 1, text.size, file.stream) == text.size;
        if (!is_open || !wb_replace_end(&file, is_written))
            status =
                wb_fail(WB_ERROR_IO, "%s: cannot be written: %s", path, wb_replace_words(errno));
    }
    wb_text_release(&text);
    return status;
}

static wb_status write(writer *w) {
    const char *folder = w->desc->path;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return wb_fail(WB_ERROR_IO, "%s: the folder cannot be made: %s", folder, strerror(errno));
    char *arrays = wb_path_in(folder, strlen(folder), ADAPTERS),
         *config = wb_path_in(folder, strlen(folder), CONFIG);
    wb_status status =
        arrays && config ? wb_save_make(arrays, w->count, w->arrays) : WB_ERROR_MEMORY;
    if (status == WB_OK) status = write_config(w, config);
    wb_release(arrays), wb_release(config);
    return status;
}

wb_status wb_lora_save_make(wb_lora_save_desc d) {
    if (wb_failed()) return wb_not_run("wb_lora_save");
    if (!wb_check_start("wb_lora_save", d.start_)) return wb_error_status();
    if (!d.path) return wb_fail_argument_null("wb_lora_save", "the path"), wb_error_status();
    if (!wb_check_model("wb_lora_save", d.model) || wb_is_tracing("wb_lora_save") ||
        !wb_scope_begin())
        return wb_error_status();
    writer w = {.desc = &d};
    const bool has_names =
        !d.base ||
        (w.names = wb_hugging_face_names(d.base, &w.base, &w.own_prefix, &w.wanted_prefix)) != NULL;
    wb_status status = wb_model_evaluate(d.model);
    if (status == WB_OK) status = has_names && add_all(&w) ? write(&w) : wb_error_status();
    wb_text_release(&w.targets), wb_arena_release(&w.arena);
    wb_release(w.arrays), wb_free(w.base);
    const wb_status left = wb_scope_leave();
    return status == WB_OK ? left : status;
}
