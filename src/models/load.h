/* Loading, whatever the arrays come from. */
#ifndef WB_MODELS_LOAD_H
#define WB_MODELS_LOAD_H

#include "formats/record.h"
#include "layers/layer.h"

typedef struct wb_source {
    const wb_file *file;   /* whose bytes the records are over */
    const wb_record *root; /* what the model's paths begin at */
    const char *noun;      /* for messages: "file" */
} wb_source;

/* wb_record_get with an error that names the file. */
const wb_record *wb_record_find(const wb_file *file, const wb_record *root, const char *path);

bool wb_record_has_sizes_of(const wb_record *record, const wb_array *x);
/* On the device and in the type of x, as memory of its own; belongs to the scope. */
wb_array *wb_record_array_like(const wb_file *file, const wb_record *record, const wb_array *x);

/* What the places of desc->model will hold, by desc's filter and partial; its path and key are not
 * looked at. */
wb_status wb_load_plan(const wb_source *source, const wb_load_desc *desc, wb_exchange *exchange);

#endif
