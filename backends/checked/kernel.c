/* Kernels: those of the CPU, with what has to be known to queue them. */
#include <string.h>

#include "checked.h"

static table kernels;

/* Late words that the program may read. */
static int late_words(const wb_program *program) {
    int most = 0;
    for (int32_t n = 0; program && n < program->ninstructions; n++) {
        const wb_instruction *i = &program->instructions[n];
        const bool is_random = i->code == WB_CODE_uniform || i->code == WB_CODE_normal;
        const int words = is_random                 ? (int)i->constant + 2
                          : i->code == WB_CODE_late ? i->index + 1
                                                    : 0;
        if (words > most) most = words;
    }
    return most;
}

static bool is_empty(const wb_program *program) {
    for (int32_t d = 0; d < program->ndim; d++)
        if (program->sizes[d] == 0) return true;
    return false;
}

static void drop(kernel *k) {
    wb_host_cpu()->release(k->inner);
    wb_host_release(k->offsets);
    wb_host_release(k);
}

static kernel *known_kernel(kernel *k) {
    if (k->inner) {
        wb_checked_put(&kernels, &k->known, k);
        return k;
    }
    wb_host_release(k->offsets);
    wb_host_release(k);
    return NULL;
}

void *wb_checked_kernel(device *d, const wb_program *program) {
    kernel *k = wb_host_alloc(sizeof *k);
    if (!k) return NULL;
    k->late_count = late_words(program);
    k->is_empty = is_empty(program);
    k->inner = wb_host_cpu()->kernel(d->cpu, program);
    return known_kernel(k);
}

static const int64_t *copy_list(int64_t **to, const int64_t *from, int64_t count) {
    if (!from) return NULL;
    const int64_t *copied = memcpy(*to, from, sizeof *from * (size_t)count);
    *to += count;
    return copied;
}

static bool copy_offsets(kernel *k, wb_matmul_call *m) {
    if (m->batch <= 1) return true;
    k->offsets = wb_host_alloc(sizeof *k->offsets * 3 * (size_t)m->batch);
    if (!k->offsets) return false;
    int64_t *to = k->offsets;
    m->offset_a = copy_list(&to, m->offset_a, m->batch);
    m->offset_b = copy_list(&to, m->offset_b, m->batch);
    m->offset_c = copy_list(&to, m->offset_c, m->batch);
    return true;
}

void *wb_checked_lower(device *d, const wb_call *call, const wb_program *epilogue, int split) {
    kernel *k = wb_host_alloc(sizeof *k);
    if (!k) return NULL;
    wb_call own = *call;
    k->late_count = late_words(epilogue);
    if (own.kind != WB_CALL_matmul || copy_offsets(k, &own.matmul))
        k->inner = wb_host_cpu()->lower(d->cpu, &own, epilogue, split);
    return known_kernel(k);
}

bool wb_checked_is_kernel(const void *any) { return wb_checked_find(&kernels, any) != NULL; }

/* Twice, or never made: no device is known here to keep the error, so the caller has it. */
void wb_checked_release(kernel *k) {
    if (!wb_checked_is_kernel(k)) {
        (void)wb_host_fail(WB_ERROR_DEVICE,
                           "checked: release: the kernel was released already, or never made");
        return;
    }
    wb_checked_take(&kernels, &k->known);
    k->is_released = true;
    if (k->uses == 0) drop(k);
}

void wb_checked_unuse_kernel(kernel *k) {
    if (k && --k->uses == 0 && k->is_released) drop(k);
}
