/* Models from files alone: from the structure that wb_save wrote, from Flux's structs, from folders
 * of Hugging Face's, and from GGUF. */
#include <string.h>

#include "formats/index.h"
#include "models/advice.h"
#include "models/build.h"
#include "models/flux.h"
#include "models/gguf_model.h"
#include "models/hugging_face.h"
#include "models/load.h"
#include "models/structure.h"

static const char *text_named(const wb_record *map, const char *name) {
    for (int64_t i = 0; map && map->names && i < map->count; i++)
        if (strcmp(map->names[i], name) == 0 && map->children[i]->kind == WB_RECORD_TEXT)
            return map->children[i]->text;
    return NULL;
}

/* The text of the structure that wb_save wrote beside the model; NULL: there is none. */
static const char *structure_of(wb_file *file, const char *key) {
    const char *name = wb_structure_key(key, &file->arena);
    const char *text = name ? text_named(file->metadata, name) : NULL;
    return text || !name ? text : text_named(file->root, name);
}

/* True if arrays by name are all that there is. */
static bool is_state(const wb_record *r) {
    return r->kind == WB_RECORD_MAP || r->kind == WB_RECORD_ARRAY || wb_is_list_of_arrays(r);
}

/* A list does not say which array is what: a new model gets them in order. */
static wb_layer *model_of_list(wb_file *file, const wb_record *list, const char *text) {
    const wb_source source = {.file = file, .root = list, .noun = "file"};
    wb_layer *model = wb_parse(.text = text);
    if (model && wb_load_source(&source, &(wb_load_desc){.model = model}) == WB_OK) return model;
    wb_free(model);
    return NULL;
}

static wb_layer *load_model(wb_file *file, const char *key, const char *text) {
    const bool is_given = text != NULL, is_whole = !key || strcmp(key, "model") == 0;
    if (!text && is_whole && wb_is_gguf_model(file)) return wb_gguf_model(file);
    if (!text) text = structure_of(file, key ? key : "model");
    if (wb_failed()) return NULL;
    const bool has_arrays = !text || !key || wb_record_below(file->root, key);
    const wb_record *r =
        has_arrays ? wb_model_record(file, key) : wb_record_new(&file->arena, WB_RECORD_MAP);
    if (!r) return NULL;
    r = wb_flux_look(r);
    if (is_given && wb_is_list_of_arrays(r)) return model_of_list(file, r, text);
    if (text || !is_state(r)) {
        wb_layer *model = wb_build(file, r == file->root ? "" : key ? key : "model", r, text);
        const wb_source source = {.file = file, .root = r, .noun = "file"};
        if (!model && is_given) wb_advise_on_torch(&source);
        return model;
    }
    return wb_fail_null(WB_ERROR_UNSUPPORTED,
                        "%s: a model needs a structure, but there are only arrays%s%s; wb_load "
                        "puts them into a model that you give",
                        file->path, key ? " under " : "", key ? key : "");
}

wb_layer *wb_load_model(const char *path, const char *key) {
    return wb_load_model_as(path, key, NULL);
}

wb_layer *wb_file_model(wb_file *file, const char *key, const char *structure) {
    if (wb_failed()) return wb_not_run_null("wb_file_model");
    if (!wb_file_check("wb_file_model", file)) return NULL;
    return load_model(file, key, structure);
}

wb_layer *wb_load_model_as(const char *path, const char *key, const char *structure) {
    if (wb_failed()) return wb_not_run_null("wb_load_model");
    if (path && !structure && wb_is_folder(path)) {
        if (!key || strcmp(key, "model") == 0) return wb_hugging_face_model(path);
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "%s: a folder has one model, so the key must be NULL or \"model\", got "
                            "\"%.80s\"",
                            path, key);
    }
    wb_file *file = wb_open(path);
    wb_layer *model = file ? load_model(file, key, structure) : NULL;
    wb_free(file);
    return model;
}
