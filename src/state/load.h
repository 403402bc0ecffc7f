/* Loading, whatever the arrays come from. */
#ifndef WB_STATE_LOAD_H
#define WB_STATE_LOAD_H

#include "state/record.h"

typedef struct wb_source {
    const wb_file *file;   /* whose bytes the records are over */
    const wb_record *root; /* what the model's paths begin at */
    const char *noun;      /* for messages: "file" */
} wb_source;

/* The arrays of source into desc->model, by desc's filter and partial; its path and key are not looked at. */
wb_status wb_load_source(const wb_source *source, const wb_load_desc *desc);

#endif
