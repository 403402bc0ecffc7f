/* Large dense matrix products by MPSMatrixMultiplication; all others are computed by Weber's own
 * text. MPS is row-major and Weber column-major, so what MPS computes is the transpose: C' = op(B)'
 * op(A)'. */
#include "mps.h"

#include <stdio.h>
#include <strings.h>

/* ---- whether it is there ---- */

/* Matrices that begin within a buffer came with macOS 13: where there is no such message, sending
 * it would end the process. */
static bool has_offsets(void) {
    const mtl_id matrix = wb_metal_class("MPSMatrix");
    return matrix && mtl.class_respondsToSelector(matrix, mtl_selector_of.init_matrix);
}

static bool works_on(mtl_id device, char *reason, size_t reason_bytes) {
    if (!wb_metal_load_mps(reason, reason_bytes)) return false;
    const char *why = !mtl.MPSSupportsMTLDevice(device) ? "does not support the device"
                      : !has_offsets()                  ? "needs macOS 13 or later here"
                                                        : NULL;
    if (why) (void)snprintf(reason, reason_bytes, "MetalPerformanceShaders %s", why);
    return !why;
}

bool wb_metal_part(const char *part, char *reason, size_t reason_bytes) {
    if (strcasecmp(part, "MPS") != 0) {
        (void)snprintf(reason, reason_bytes, "Metal has no part \"%s\", only MPS", part);
        return false;
    }
    if (wb_metal_count(reason, reason_bytes) == 0) return false;
    WB_METAL_POOL(pool);
    return works_on(wb_metal_find(0), reason, reason_bytes);
}

/* ---- which products ---- */

/* MPS is row-major: C = op(A) op(B) by columns is C' = op(B)' op(A)' by rows, and a matrix by
 * columns is by rows its transpose. */
struct wb_metal_product {
    mtl_id product;     /* an MPSMatrixMultiplication */
    mtl_id matrices[3]; /* MPSMatrixDescriptors of A, B, C */
    int64_t offsets[3]; /* bytes from where the arguments begin */
};

/* An MPSMatrix needs whole rows in the buffer. If the matrix is part of a larger one, the buffer
 * may end before its last row does. */
static bool is_dense(const wb_matmul_call *p) {
    return p->lda == (p->transpose_a ? p->k : p->m) && p->ldb == (p->transpose_b ? p->n : p->k) &&
           p->ldc == p->m;
}

/* Smaller ones are not worth the objects; from K = 32767 on wrong results are known (pytorch issue
 * 183535). */
static bool suits(const wb_matmul_call *p, wb_dtype dtype) {
    enum { LEAST = 256, MOST_DEPTH = 32766 };
    return (dtype == WB_F32 || dtype == WB_F16) && p->batch == 1 && p->m >= LEAST &&
           p->n >= LEAST && p->k >= LEAST && p->k <= MOST_DEPTH && is_dense(p);
}

static int64_t element_bytes(const wb_call *call) { return call->dtype == WB_F32 ? 4 : 2; }

static mtl_id new_matrix(const wb_call *call, int64_t rows, int64_t columns, int64_t pitch) {
    const mtl_uint bytes = (mtl_uint)(pitch * element_bytes(call));
    return mtl_retain(mtl_matrix_descriptor(wb_metal_class("MPSMatrixDescriptor"), (mtl_uint)rows,
                                            (mtl_uint)columns, 1, bytes, bytes * (mtl_uint)rows,
                                            call->dtype == WB_F32 ? MPS_FLOAT32 : MPS_FLOAT16));
}

static void set_matrices(wb_metal_product *made, const wb_call *call) {
    const wb_matmul_call *p = &call->matmul;
    const int64_t *offsets[] = {p->offset_a, p->offset_b, p->offset_c};
    for (int i = 0; i < 3; i++)
        made->offsets[i] = offsets[i] ? offsets[i][0] * element_bytes(call) : 0;
    made->matrices[0] =
        new_matrix(call, p->transpose_a ? p->m : p->k, p->transpose_a ? p->k : p->m, p->lda);
    made->matrices[1] =
        new_matrix(call, p->transpose_b ? p->k : p->n, p->transpose_b ? p->n : p->k, p->ldb);
    made->matrices[2] = new_matrix(call, p->n, p->m, p->ldc);
}

static mtl_id new_product(const wb_metal_device *device, const wb_matmul_call *p) {
    const mtl_id empty = mtl_alloc(wb_metal_class("MPSMatrixMultiplication"));
    return mtl_init_product(empty, device->id, p->transpose_b, p->transpose_a, (mtl_uint)p->n,
                            (mtl_uint)p->m, (mtl_uint)p->k, 1.0, 0.0);
}

wb_metal_product *wb_metal_product_new(wb_metal_device *device, const wb_call *call) {
    char reason[256];
    const wb_matmul_call *p = &call->matmul;
    if (call->kind != WB_CALL_matmul || !suits(p, call->dtype)) return NULL;
    if (!works_on(device->id, reason, sizeof reason)) return NULL;
    wb_metal_product *made = wb_metal_host->alloc(sizeof *made);
    if (!made) return NULL;
    made->product = new_product(device, p);
    set_matrices(made, call);
    if (made->product && made->matrices[0] && made->matrices[1] && made->matrices[2]) return made;
    wb_metal_product_release(made);
    return NULL;
}

void wb_metal_product_release(wb_metal_product *product) {
    if (!product) return;
    for (int i = 0; i < 3; i++) mtl_release(product->matrices[i]);
    mtl_release(product->product);
    wb_metal_host->release(product);
}

/* ---- running ---- */

wb_status wb_metal_product_encode(const wb_metal_product *product, wb_metal_queue *queue,
                                  const wb_command *command, const wb_memory *memory,
                                  int64_t cost) {
    mtl_id of[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        const wb_argument *a = &command->arguments[i];
        const wb_memory *m = &memory[a->memory];
        const int64_t offset = m->offset_bytes + a->offset_bytes + product->offsets[i];
        of[i] = mtl_init_matrix(mtl_alloc(wb_metal_class("MPSMatrix")), m->handle, (mtl_uint)offset,
                                product->matrices[i]);
    }
    const bool are_made = of[0] && of[1] && of[2];
    const mtl_id commands = are_made ? wb_metal_commands(queue, command->what, cost) : NULL;
    if (commands) mtl_encode_product(product->product, commands, of[1], of[0], of[2]);
    for (int i = 0; i < 3; i++) mtl_release(of[i]);
    if (!are_made)
        return wb_metal_host->fail(WB_ERROR_DEVICE, "%s: MPSMatrix: none", command->what);
    return commands ? WB_OK : WB_ERROR_DEVICE;
}
