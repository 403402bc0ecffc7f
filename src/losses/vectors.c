/* Losses with a term for each pair of vectors. */
#include "losses/loss.h"

enum { VECTORS = WB_LOSS_TERMS };

static wb_array *along(const wb_loss *loss, wb_array *x) { return wb_sum_dims(x, loss->dim); }

static bool begin(wb_loss *loss) {
    if (loss->p->ndim > 0 && loss->y->ndim > 0) return wb_loss_target(loss);
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the %s has no dimension of features", loss->name,
                  loss->p->ndim == 0 ? "prediction" : "target");
    return false;
}

/* The length of vectors, of finite slope at 0. */
static wb_array *length(const wb_loss *loss, wb_array *x, double least) {
    const int64_t dim = loss->dim;
    return MAX(wb_norm_make(x, 2, 1, &dim), NUM(least));
}

static wb_array *cosine(wb_loss *loss) {
    if (!begin(loss)) return NULL;
    wb_array *lengths = MUL(length(loss, loss->p, 1e-8), length(loss, loss->y, 1e-8));
    wb_array *cosines = DIV(along(loss, MUL(loss->p, loss->y)), lengths);
    return wb_loss_aggregate(loss, SUB(NUM(1), cosines), NULL);
}
WB_LOSS_FUNCTIONS(cosine_loss, VECTORS | WB_LOSS_DIM, cosine)

static wb_array *distance(const wb_loss *loss, wb_array *x) {
    return length(loss, SUB(loss->p, x), 1e-6);
}

static wb_array *triplet(wb_loss *loss) {
    const double margin = loss->desc->margin;
    if (!begin(loss)) return NULL;
    wb_array *negative = wb_loss_other(loss, "negative", loss->desc->negative);
    if (!negative) return NULL;
    wb_array *gap = SUB(distance(loss, loss->y), distance(loss, negative));
    return wb_loss_aggregate(loss, wb_relu(ADD(gap, NUM(margin))), NULL);
}
WB_LOSS_FUNCTIONS(triplet_loss, VECTORS | WB_LOSS_DIM | WB_LOSS_MARGIN | WB_LOSS_NEGATIVE, triplet)

static wb_array *infonce(wb_loss *loss) {
    const double temperature = loss->desc->temperature;
    if (!begin(loss)) return NULL;
    if (loss->p->ndim != 2)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "%s: the prediction must have 2 dimensions, (features, batch), got %s",
                            loss->name, wb_text_of(loss->p));
    wb_array *p = DIV(loss->p, length(loss, loss->p, 1e-8));
    wb_array *y = DIV(loss->y, length(loss, loss->y, 1e-8));
    wb_array *scale = NUM(1 / temperature);
    wb_array *all = MUL(wb_matmul_transposed(y, p, true, false), scale); /* (j, i) */
    wb_array *own = MUL(along(loss, MUL(p, y)), scale);
    /* without vectors there is no maximum */
    wb_array *against = loss->p->sizes[1] ? wb_logsumexp(all) : along(loss, all);
    return wb_loss_aggregate(loss, SUB(against, own), NULL);
}
WB_LOSS_FUNCTIONS(infonce_loss, VECTORS | WB_LOSS_TEMPERATURE, infonce)
