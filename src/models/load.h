/* Loading arrays into a model, from any source. */
#ifndef WB_MODELS_LOAD_H
#define WB_MODELS_LOAD_H

#include "formats/record.h"
#include "layers/layer.h"

typedef struct wb_source {
    const wb_file *file;   /* the file whose bytes the records use */
    const wb_record *root; /* where the model's paths begin */
    const char *noun;      /* for messages: "file" */
    bool is_renamed;       /* the names are those that a table gave */
    bool needs_biases;     /* one that the source lacks is an error, and not zeros */
} wb_source;

/* Where the model is in the file: at key, or, NULL, at "model" or in all of it; NULL with an
 * error. */
const wb_record *wb_model_record(const wb_file *file, const char *key);

/* wb_record_get with an error that names the file. */
const wb_record *wb_record_find(const wb_file *file, const wb_record *root, const char *path);

/* Flux.params: a list that has arrays, and nothing else. */
bool wb_is_list_of_arrays(const wb_record *record);

bool wb_record_has_sizes_of(const wb_record *record, const wb_array *x);
/* A copy of the record's array, on the device and in the type of x; belongs to the scope. */
wb_array *wb_record_array_like(const wb_file *file, const wb_record *record, const wb_array *x);

/* wb_load from the source; desc's path, key, rename and from are ignored. */
wb_status wb_load_source(const wb_source *source, const wb_load_desc *desc);

/* Plans what the places of desc->model will hold, by desc's filter and partial; desc's path and key
 * are ignored. */
wb_status wb_load_plan(const wb_source *source, const wb_load_desc *desc, wb_exchange *exchange);

#endif
