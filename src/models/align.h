/* Loading between lists of layers of different length: layers that the filter leaves out are
 * skipped, and the rest are matched in order. */
#ifndef WB_MODELS_ALIGN_H
#define WB_MODELS_ALIGN_H

#include "models/load.h"

/* For each item of a list, the matching item of the source's list. */
typedef struct wb_aligned {
    const wb_layer_list *list;
    const wb_record *source;
    int64_t *places; /* from 1, or WB_LEFT_OUT, or WB_UNMATCHED */
} wb_aligned;

typedef struct wb_alignment {
    wb_layer_filter *filter; /* NULL: all take part */
    void *user;
    const wb_source *source;
    wb_aligned *lists;
    int64_t count, capacity;
} wb_alignment;

enum { WB_LEFT_OUT = -1, WB_UNMATCHED = -2 };

/* The number, from 1, of the item of the source's list that the layer at path takes its arrays
 * from; WB_UNMATCHED with the error recorded. source_path: path of that list. */
int64_t wb_align(wb_alignment *alignment, const wb_path *path, const wb_record *list,
                 const char *source_path);

/* False if child i of a record in the source (at path) is a layer that the filter leaves out. */
bool wb_takes_layer(const wb_alignment *alignment, const wb_record *record, int64_t i,
                    const wb_path *path);

void wb_alignment_release(wb_alignment *alignment);

#endif
