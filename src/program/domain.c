/* A dimension of size 1 can be removed, and two neighbouring ones can be joined if every access
 * steps through them as through one. Fewer dimensions mean less index arithmetic in a kernel. */
#include "program/domain.h"

void wb_drop_dim(wb_program *p, int d) {
    const uint32_t low = (1u << d) - 1;
    p->reduced = (p->reduced & low) | (p->reduced >> 1 & ~low);
    for (int i = d; i + 1 < p->ndim; i++) p->sizes[i] = p->sizes[i + 1];
    p->ndim--;
    for (int a = 0; a < p->naccesses; a++) {
        int64_t *strides = p->accesses[a].strides;
        for (int i = d; i < p->ndim; i++) strides[i] = strides[i + 1];
        strides[p->ndim] = 0;
    }
}

bool wb_join_dim(wb_program *p, int d) {
    if ((p->reduced >> d & 1) != (p->reduced >> (d + 1) & 1)) return false;
    for (int a = 0; a < p->naccesses; a++) {
        const int64_t *strides = p->accesses[a].strides;
        if (strides[d + 1] != strides[d] * p->sizes[d]) return false;
    }
    for (int a = 0; a < p->naccesses; a++)
        p->accesses[a].strides[d + 1] = p->accesses[a].strides[d];
    p->sizes[d + 1] *= p->sizes[d];
    wb_drop_dim(p, d);
    return true;
}
