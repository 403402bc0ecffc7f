/* The calls that gemm.c, conv.c, window.c and index.c compute, as commands. */
#include "calls.h"

#include <string.h>

#include "attention.h"
#include "host.h"
#include "index.h"

static wb_gemm gemm_of(const wb_call *call) {
    const wb_matmul_call *m = &call->matmul;
    return (wb_gemm){.dtype = call->dtype,
                     .may_round = call->may_round_to_bf16,
                     .keeps_a = call->is_fixed,
                     .transpose_a = m->transpose_a,
                     .transpose_b = m->transpose_b,
                     .m = m->m,
                     .n = m->n,
                     .k = m->k,
                     .lda = m->lda,
                     .ldb = m->ldb,
                     .ldc = m->ldc,
                     .batch = m->batch,
                     .offset_a = m->offset_a,
                     .offset_b = m->offset_b,
                     .offset_c = m->offset_c};
}

static wb_window window_of(const wb_call *call) {
    return (wb_window){.call = call->window, .dtype = call->dtype, .keeps = call->is_fixed};
}

/* ---- products ---- */

static bool is_conv(const wb_call *call, wb_conv_kind *kind) {
    *kind = call->kind == WB_CALL_conv_forward ? WB_CONV_FORWARD
            : call->kind == WB_CALL_conv_data  ? WB_CONV_DATA
                                               : WB_CONV_FILTER;
    return *kind != WB_CONV_FILTER || call->kind == WB_CALL_conv_filter;
}

int64_t wb_cpu_call_scratch(const wb_call *call) {
    const wb_gemm gemm = gemm_of(call);
    const wb_window window = window_of(call);
    wb_conv_kind kind;
    if (call->kind == WB_CALL_matmul) return wb_cpu_gemm_scratch(&gemm);
    if (wb_call_row_of(call->kind).shape == WB_SHAPE_attention)
        return wb_cpu_attention_scratch(call);
    return is_conv(call, &kind) ? wb_cpu_conv_scratch(kind, &window) : 0;
}

wb_status wb_cpu_call_matmul(const wb_cpu_call *c) {
    wb_gemm gemm = gemm_of(c->call);
    gemm.kept_a = c->kept;
    wb_cpu_gemm(&gemm, c->a[0], c->a[1], c->a[2], c->scratch, c->done, c->context);
    return WB_OK;
}

int64_t wb_cpu_call_kept(const wb_call *call) {
    const wb_gemm gemm = gemm_of(call);
    const wb_window window = window_of(call);
    wb_conv_kind kind;
    if (call->kind == WB_CALL_matmul) return wb_cpu_gemm_kept(&gemm);
    return is_conv(call, &kind) ? wb_cpu_conv_kept(kind, &window) : 0;
}

void wb_cpu_call_keep(const wb_call *call, char *const *a, void *kept) {
    wb_gemm gemm = gemm_of(call);
    wb_window window = window_of(call);
    wb_conv_kind kind;
    gemm.kept_a = window.kept = kept;
    if (is_conv(call, &kind))
        wb_cpu_conv_keep(kind, &window, a[1]);
    else
        wb_cpu_gemm_keep(&gemm, a[0]);
}

static wb_status conv(const wb_cpu_call *c) {
    wb_window window = window_of(c->call);
    wb_conv_kind kind;
    (void)is_conv(c->call, &kind);
    window.kept = c->kept;
    wb_cpu_conv(kind, &window, c->a[0], c->a[1], c->a[2], c->scratch, c->done, c->context);
    return WB_OK;
}

wb_status wb_cpu_call_conv_forward(const wb_cpu_call *c) { return conv(c); }
wb_status wb_cpu_call_conv_data(const wb_cpu_call *c) { return conv(c); }
wb_status wb_cpu_call_conv_filter(const wb_cpu_call *c) { return conv(c); }

/* ---- windows ---- */

#define WINDOW_CALL(name, ...)                                                                     \
    wb_status wb_cpu_call_##name(const wb_cpu_call *c) {                                           \
        const wb_window window = window_of(c->call);                                               \
        wb_cpu_##name(&window, __VA_ARGS__);                                                       \
        return WB_OK;                                                                              \
    }

WINDOW_CALL(maxpool, c->a[0], c->a[1], (int32_t *)(void *)c->a[2])
WINDOW_CALL(pool_scatter, c->a[0], (const int32_t *)(const void *)c->a[1], c->a[2])
WINDOW_CALL(pool_gather, c->a[0], (const int32_t *)(const void *)c->a[1], c->a[2])
WINDOW_CALL(meanpool, c->a[0], c->a[1])
WINDOW_CALL(meanpool_data, c->a[0], c->a[1])
WINDOW_CALL(unfold, c->a[0], c->a[1])
WINDOW_CALL(fold, c->a[0], c->a[1])

/* ---- indices ---- */

static wb_status check_index(const wb_cpu_call *c, const void *index) {
    const wb_index_call *i = &c->call->index;
    const int64_t bad = wb_cpu_find_bad_index(i, index);
    if (bad < 0) return WB_OK;
    return wb_host_fail(WB_ERROR_ARGUMENT, "%s: index %lld at place %lld is not in 0 .. %lld",
                        c->what, (long long)wb_cpu_index_at(i, index, bad), (long long)bad,
                        (long long)i->size - 1);
}

wb_status wb_cpu_call_gather(const wb_cpu_call *c) {
    const wb_status status = check_index(c, c->a[1]);
    if (status == WB_OK) wb_cpu_gather(&c->call->index, c->call->dtype, c->a[0], c->a[1], c->a[2]);
    return status;
}

wb_status wb_cpu_call_scatter_add(const wb_cpu_call *c) {
    const wb_status status = check_index(c, c->a[0]);
    if (status == WB_OK)
        wb_cpu_scatter_add(&c->call->index, c->call->dtype, c->a[0], c->a[1], c->a[2]);
    return status;
}
