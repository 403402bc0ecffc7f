/* What the ranks of a group compute together, as nodes with an effect. */
#include "ops/collective.h"

#include "array/thread.h"
#include "base/memory.h"
#include "ops/check.h"

wb_collective wb_collective_of(const wb_array *node) {
    return (wb_collective){.number = node->late[0],
                           .terms = node->late[1],
                           .count = wb_count(node->inputs[0]),
                           .kind = (int32_t)node->attributes.collective.kind,
                           .reduction = (int32_t)node->attributes.collective.reduction,
                           .root = (int32_t)node->attributes.collective.root,
                           .dtype = node->dtype};
}

/* ---- making nodes ---- */

/* At exit: the other ranks may need collectives whose results this rank never reads. */
static void compute_the_rest(void) {
    if (!wb_failed()) (void)wb_settle_effects();
}

/* A collective that is refused counts, too. If only this rank made the mistake, its collectives
 * have other numbers than the other ranks' from here on, so that different arrays are never
 * added. */
static wb_array *counted(wb_array *result) {
    if (!result && wb_ranks_count() > 1 && !wb_thread_get()->is_sizing) (void)wb_ranks_number();
    return result;
}

/* Numbers the node and lists it for the next evaluation. */
static wb_array *take_effect(wb_array *node) {
    wb_thread *thread = wb_thread_get();
    if (thread->is_sizing) return node;
    if (!WB_GROW(thread->effects, thread->effect_count, thread->effect_capacity)) return NULL;
    node->late[0] = wb_ranks_number(), node->late[1] = 0;
    if (node->late[0] < 0) return NULL;
    thread->effects[thread->effect_count++] = wb_ref(node);
    wb_ranks_before_leaving(compute_the_rest);
    return node;
}

static wb_array *node_of(const char *function, wb_collective_kind kind, wb_array *x,
                         wb_reduction reduction, int root, int ndim, const int64_t *sizes) {
    if (wb_is_tracing(function)) return NULL;
    wb_array *node = wb_node_with(WB_OP_collective, (wb_dtype)x->dtype, ndim, sizes, 1, &x,
                                  WB_WORDS(collective, kind, reduction, root));
    if (node) node = take_effect(node);
    if (!node) wb_ranks_fail(); /* the others wait for this one's part */
    return node;
}

/* x as an operand: weak numbers have a type of their own from here on. NULL: refused. */
static wb_array *operand(const char *function, wb_array *x) {
    if (!wb_ranks_join(function)) return NULL;
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x");
    return x->flags & WB_NODE_WEAK ? wb_cast(x, WB_F32) : x;
}

static bool check_reduction(const char *function, const wb_array *x, wb_reduction reduction) {
    const bool adds = reduction == WB_REDUCE_SUM || reduction == WB_REDUCE_MEAN;
    const char *what = reduction == WB_REDUCE_MEAN ? "mean" : "sum";
    if ((unsigned)reduction > WB_REDUCE_MIN)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: the reduction must be WB_REDUCE_SUM, MEAN, MAX or MIN, got %d", function,
                      (int)reduction);
    else if (adds && x->dtype == WB_BOOL)
        (void)wb_fail(WB_ERROR_DTYPE, "%s: a %s of bool is not defined; cast x to another type",
                      function, what);
    else if (reduction == WB_REDUCE_MEAN && !wb_dtype_is_float((wb_dtype)x->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: a mean needs a floating type, got %s", function,
                      wb_dtype_name((wb_dtype)x->dtype));
    else
        return true;
    return false;
}

static bool check_root(const char *function, int root) {
    if (root >= 0 && root < wb_ranks_count()) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the root must be a rank from 0 to %d, got %d", function,
                  wb_ranks_count() - 1, root);
    return false;
}

/* ---- the functions; each gives NULL where it is refused ---- */

/* f16 is added in f32. bf16 is, too, but sent as it is. */
static wb_array *reduced(const char *function, wb_collective_kind kind, wb_array *x,
                         wb_reduction reduction, int root, const int64_t *sizes) {
    wb_array *wide = x->dtype == WB_F16 ? wb_cast(x, WB_F32) : x;
    if (!wide) return NULL;
    wb_array *y = node_of(function, kind, wide, reduction, root, x->ndim, sizes);
    return y && wide != x ? wb_cast(y, WB_F16) : y;
}

static wb_array *allreduce(wb_array *x, wb_reduction reduction) {
    static const char function[] = "allreduce";
    x = operand(function, x);
    if (!x || !check_reduction(function, x, reduction)) return NULL;
    if (wb_ranks_count() == 1) return x;
    return reduced(function, WB_COLLECTIVE_ALLREDUCE, x, reduction, 0, x->sizes);
}

static wb_array *reduce(wb_array *x, wb_reduction reduction, int root) {
    static const char function[] = "reduce";
    x = operand(function, x);
    if (!x || !check_reduction(function, x, reduction) || !check_root(function, root)) return NULL;
    if (wb_ranks_count() == 1) return x;
    return reduced(function, WB_COLLECTIVE_REDUCE, x, reduction, root, x->sizes);
}

static wb_array *bcast(wb_array *x, int root) {
    static const char function[] = "bcast";
    x = operand(function, x);
    if (!x || !check_root(function, root)) return NULL;
    if (wb_ranks_count() == 1) return x;
    return node_of(function, WB_COLLECTIVE_BCAST, x, WB_REDUCE_SUM, root, x->ndim, x->sizes);
}

static wb_array *allgather(wb_array *x) {
    static const char function[] = "allgather";
    x = operand(function, x);
    if (!x || wb_ranks_count() == 1) return x;
    int64_t sizes[WB_MAX_DIMS] = {1};
    const int ndim = x->ndim ? x->ndim : 1;
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    sizes[ndim - 1] *= wb_ranks_count();
    if (!wb_check_sizes(function, ndim, sizes)) return NULL;
    return node_of(function, WB_COLLECTIVE_ALLGATHER, x, WB_REDUCE_SUM, 0, ndim, sizes);
}

static wb_array *reduce_scatter(wb_array *x, wb_reduction reduction) {
    static const char function[] = "reduce_scatter";
    x = operand(function, x);
    if (!x || !check_reduction(function, x, reduction)) return NULL;
    const int ranks = wb_ranks_count();
    if (ranks == 1) return x;
    const int64_t last = x->ndim ? x->sizes[x->ndim - 1] : 1;
    if (last % ranks)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "%s: the last dimension must be a multiple of %d, the number of ranks, "
                            "got %s",
                            function, ranks, wb_text_of(x));
    int64_t sizes[WB_MAX_DIMS] = {0};
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    sizes[x->ndim - 1] /= ranks;
    return reduced(function, WB_COLLECTIVE_REDUCE_SCATTER, x, reduction, 0, sizes);
}

wb_array *wb_allreduce(wb_array *x, wb_reduction reduction) {
    return counted(allreduce(x, reduction));
}
wb_array *wb_reduce_to(wb_array *x, wb_reduction reduction, int root) {
    return counted(reduce(x, reduction, root));
}
wb_array *wb_bcast(wb_array *x, int root) { return counted(bcast(x, root)); }
wb_array *wb_allgather(wb_array *x) { return counted(allgather(x)); }
wb_array *wb_reduce_scatter(wb_array *x, wb_reduction reduction) {
    return counted(reduce_scatter(x, reduction));
}

wb_array *wb_allreduce_told(wb_array *x, wb_reduction reduction, int64_t terms) {
    wb_array *all = wb_allreduce(x, reduction);
    if (all && all != x) all->late[1] = terms;
    return all;
}

wb_status wb_barrier(void) {
    if (wb_is_tracing("barrier") || !wb_ranks_join("barrier")) return wb_error_status();
    if (wb_ranks_count() == 1) return WB_OK;
    const wb_collective c = {.number = wb_ranks_number(), .kind = WB_COLLECTIVE_BARRIER};
    if (c.number < 0) return wb_error_status();
    const wb_status status = wb_settle_effects();
    return status == WB_OK ? wb_ranks_run(&c, NULL, NULL) : status;
}

/* ---- derivatives, of the sum of all ranks' losses ---- */

/* g on the root's rank, or on all others; 0 elsewhere. A selection, so that the recipe is the same
 * everywhere: a walk through it makes the same collectives on all ranks. */
static wb_array *where(bool wants_root, const wb_array *o, wb_array *g) {
    const bool is_root = o->attributes.collective.root == wb_ranks_own();
    return SELECT(wb_full_make(WB_BOOL, is_root == wants_root, 0, NULL), g, NUM(0));
}

/* Gives equal shares of g to the ranks whose x is the result o; all ranks have the same o and g. */
static wb_array *shares(wb_array *x, wb_array *o, wb_array *g) {
    wb_array *holds = wb_cast(EQ(x, o), (wb_dtype)g->dtype);
    return DIV(MUL(g, holds), wb_allreduce(holds, WB_REDUCE_SUM));
}

static wb_array *pull_allreduce(wb_array *o, wb_array *g) {
    const wb_reduction reduction = (wb_reduction)o->attributes.collective.reduction;
    if (reduction == WB_REDUCE_SUM || reduction == WB_REDUCE_MEAN)
        return wb_allreduce(g, reduction);
    return shares(o->inputs[0], o, wb_allreduce(g, WB_REDUCE_SUM));
}

/* The root's cotangent goes to all; the others' stays with them, too. */
static wb_array *pull_reduce(wb_array *o, wb_array *g) {
    const wb_reduction reduction = (wb_reduction)o->attributes.collective.reduction;
    const int root = (int)o->attributes.collective.root;
    wb_array *out = wb_bcast(g, root);
    if (reduction == WB_REDUCE_MEAN)
        out = DIV(out, NUM(wb_ranks_count()));
    else if (reduction != WB_REDUCE_SUM)
        out = shares(o->inputs[0], wb_bcast(o, root), out);
    return ADD(out, where(false, o, g));
}

static wb_array *pull_bcast(wb_array *o, wb_array *g) {
    return where(true, o, wb_allreduce(g, WB_REDUCE_SUM));
}

static wb_array *pull_reduce_scatter(wb_array *o, wb_array *g) {
    const wb_reduction reduction = (wb_reduction)o->attributes.collective.reduction;
    wb_array *whole = wb_allgather(g);
    if (reduction == WB_REDUCE_SUM) return whole;
    if (reduction == WB_REDUCE_MEAN) return DIV(whole, NUM(wb_ranks_count()));
    return shares(o->inputs[0], wb_allgather(o), whole);
}

void wb_vjp_collective(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    if (!want[0]) return;
    switch ((wb_collective_kind)o->attributes.collective.kind) {
    case WB_COLLECTIVE_ALLREDUCE:
        out[0] = pull_allreduce(o, g);
        break;
    case WB_COLLECTIVE_REDUCE:
        out[0] = pull_reduce(o, g);
        break;
    case WB_COLLECTIVE_BCAST:
        out[0] = pull_bcast(o, g);
        break;
    case WB_COLLECTIVE_ALLGATHER: {
        const wb_array *x = o->inputs[0];
        out[0] = wb_reduce_scatter(g, WB_REDUCE_SUM);
        if (x->ndim == 0) out[0] = wb_reshape_make(out[0], 0, NULL);
        break;
    }
    default:
        out[0] = pull_reduce_scatter(o, g);
        break;
    }
}

/* Of a group of one; tests/ranks/test_collectives.c has the derivatives over several ranks. */
CHECK(collective, SQUARE(wb_allreduce(SQUARE(x), WB_REDUCE_MEAN)), 1, {{1, {5}}}, -2, 2)
