/* Lists of layers of different length, of which some do not take part: those that are left meet in
 * order. */
#ifndef WB_MODELS_ALIGN_H
#define WB_MODELS_ALIGN_H

#include "models/load.h"

/* The item of a list that meets each item of another one. */
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

/* Which item of the source's list, from 1, the layer at path takes its arrays from; WB_UNMATCHED
 * with the error recorded. source_path: that of the list. */
int64_t wb_align(wb_alignment *alignment, const wb_path *path, const wb_record *list,
                 const char *source_path);

/* Whether child i of a record in the source, at path there, is a layer that does not take part. */
bool wb_takes_layer(const wb_alignment *alignment, const wb_record *record, int64_t i,
                    const wb_path *path);

void wb_alignment_release(wb_alignment *alignment);

#endif
