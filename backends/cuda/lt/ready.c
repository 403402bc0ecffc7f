/* A product with its descriptors and algorithms, and its running. */
#include "lt.h"

/* TF32 is only allowed: if the library has no algorithm for it, there may be one for f32. */
static wb_gpu_outcome choose(wb_lt_ready *r) {
    wb_gpu_outcome o = wb_lt_product_make(&r->shape, &r->product);
    if (!o.error) o = wb_lt_choose(r->device, &r->shape, &r->product, &r->choices);
    wb_lt_choices *c = &r->choices;
    if (!o.error && r->is_aligned && c->has_aligned) c->any = c->aligned, c->has_any = true;
    if (!r->shape.fast || (!o.error && c->has_any)) return o;
    wb_lt_product_release(&r->product);
    r->shape.fast = false;
    return choose(r);
}

wb_gpu_outcome wb_lt_make_ready(wb_gpu_device *device, wb_lt_ready *r) {
    wb_gpu_outcome o;
    r->device = wb_lt_device_of(device, &o);
    wb_gpu_pause_graphs(device);
    if (!o.error) o = choose(r);
    wb_gpu_resume_graphs(device);
    return o;
}

void wb_lt_unready(wb_lt_ready *r) { wb_lt_product_release(&r->product); }

size_t wb_lt_workspace_bytes(const wb_lt_ready *r) {
    const size_t any = r->choices.has_any ? r->choices.any.workspace_bytes : 0;
    const size_t aligned = r->choices.has_aligned ? r->choices.aligned.workspace_bytes : 0;
    return any > aligned ? any : aligned;
}

/* One and zero in the type in which products are scaled. */
wb_gpu_outcome wb_lt_run(const wb_lt_ready *r, const gpu_pointer at[3], gpu_pointer bias,
                         gpu_pointer workspace, gpu_stream stream) {
    static const double one = 1, zero = 0;
    static const float one_f32 = 1, zero_f32 = 0;
    const bool is_f64 = r->shape.dtype == WB_F64;
    const bool is_aligned =
        r->choices.has_aligned && (at[0] | at[1] | at[2] | bias) % WB_LT_ALIGNED_BYTES == 0;
    const lt_choice *choice = is_aligned ? &r->choices.aligned : &r->choices.any;
    return LT_TRY(Matmul, wb_lt_handle(r->device), r->product.desc,
                  is_f64 ? (const void *)&one : &one_f32, (const void *)at[0], r->product.a,
                  (const void *)at[1], r->product.b, is_f64 ? (const void *)&zero : &zero_f32,
                  (const void *)at[2], r->product.c, (void *)at[2], r->product.c,
                  &choice->algorithm, (void *)workspace, choice->workspace_bytes, stream);
}
