/* The body of a scan: a small graph of its own, from placeholders to results. It refers to no array
 * outside: each one that it used has a placeholder. */
#ifndef WB_ARRAY_BODY_H
#define WB_ARRAY_BODY_H

#include "array/array.h"
#include "array/payload.h"

typedef struct wb_body {
    wb_payload payload;
    /* Placeholders, numbered by their attribute 0: carries, slices of the inputs, captured
     * arrays. */
    int32_t ncarries, nslices, ncaptured;
    int32_t nresults;   /* the next carries, then the outputs of a step */
    wb_array **given;   /* the placeholders; holds a reference to each */
    wb_array **results; /* referred to */
    int64_t draws;      /* how far the random counter moves in a step; may be negative */
    void *tape;         /* of the last evaluation; src/evaluate makes it */
    void (*tape_free)(void *tape);
} wb_body;

/* The body of a scan; NULL: x is not a scan. */
static inline wb_body *wb_body_of(const wb_array *x) {
    return x->op == WB_OP_scan ? (wb_body *)(void *)x->payload : NULL;
}

static inline int32_t wb_body_given(const wb_body *body) {
    return body->ncarries + body->nslices + body->ncaptured;
}

/* The result that holds the numbers of result r: the first output that is the same array, else the
 * first carry that is, else r itself. */
int32_t wb_body_same(const wb_body *body, int32_t r);

/* A body with room for its lists, and one reference. NULL when out of memory. */
wb_body *wb_body_new(int32_t ngiven, int32_t nresults);
wb_body *wb_body_ref(wb_body *body);
void wb_body_unref(wb_body *body);

#endif
