/* What `weber evaluate` runs a model over: a data set by its name, or files of one's own. */
#ifndef WB_TOOL_DATASET_H
#define WB_TOOL_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include <weber.h>

typedef struct dataset_desc {
    const char *data;   /* "fashion-mnist", or a file: CSV, IDX, or one that wb_open reads */
    const char *labels; /* a file of these alone; NULL: they are in data */
    const char *x, *y;  /* their names in files; of a CSV y is the column of labels; or NULL */
    const char *split;  /* "test" or "train" */
    const char *layout; /* of x, "NCHW", "WHCN", ...; NULL: as it lies in memory */
    const char *model;  /* the file that may hold the vocabulary of a CSV's labels */
    double scale;       /* of x; 0: 1/255 of bytes, 1 of all else */
    char separator;     /* of a CSV; 0: a comma, in .tsv a tab */
    bool no_header;     /* of a CSV */
} dataset_desc;

typedef struct dataset {
    wb_array *x, *y; /* observations along the last dimension; they belong to the scope */
    int64_t classes; /* 0: that is not known */
    char *names;     /* of the classes, one a line, or NULL */
    double scale;    /* 1: x stays as it is */
    int ndim;        /* of x */
    int64_t order[WB_MAX_DIMS]; /* that x is permuted to */
    bool add_channel;           /* (W, H, N) becomes (W, H, 1, N) */
    bool is_image;
} dataset;

/* False: it has been said why, or is the thread's error. To be closed, also on failure. */
bool dataset_open(dataset *set, const dataset_desc *desc);
void dataset_close(dataset *set);

/* For a loader of its arrays, with the dataset as user: images as (W, H, C, N), scaled. */
void dataset_prepare(wb_batch *batch, void *set);

/* At most `letters` letters of a class's name, or its number, at the right of `width` columns. */
void dataset_put_class(const dataset *set, int64_t label, int letters, int width);

#endif
