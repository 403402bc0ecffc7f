/* A layer that computes something in a scope of its own and drops it. */
#ifndef TESTS_SHOW_TWOFOLD_H
#define TESTS_SHOW_TWOFOLD_H

#include <weber/model.h>

typedef struct twofold {
    wb_layer layer;
    wb_layer *dropped, *used;
} twofold;

/* What is made after the scope may get the addresses of what was in it. */
static wb_array *apply_twofold(wb_layer *layer, wb_array *x) {
    const twofold *t = (const twofold *)(const void *)layer;
    if (wb_scope_open() != WB_OK) return NULL;
    (void)wb_apply(t->dropped, x);
    (void)wb_scope_close();
    return wb_apply(t->used, wb_mul(wb_tanh(x), wb_exp(x)));
}
WB_FUNCTOR(twofold, apply_twofold, WB_CHILD_FIELD(twofold, dropped), WB_CHILD_FIELD(twofold, used));

static inline twofold *new_twofold(void) {
    twofold *model = wb_new(twofold);
    model->dropped = wb_chain(wb_dense(3, 3), wb_dense(3, 3)), model->used = wb_dense(3, 2);
    return model;
}

#endif
