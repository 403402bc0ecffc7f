/* What a tile reads and writes: memory, numbers of elements, random numbers, constants. */
#include "tile.h"

#include <string.h>

/* ---- loads and stores of rows ---- */

#define STRIDED(T, R)                                                                              \
    for (int64_t i = 0; i < n; i++) ((R *)to)[i] = (R)((const T *)from)[i * stride];               \
    break

/* n elements of memory, `stride` apart, into a register. */
static void load_strided(int dtype, int64_t n, const char *from, int64_t stride, char *to,
                         const wb_loops *loops) {
    switch (dtype) {
    case WB_F32:
    case WB_I32:
        STRIDED(uint32_t, uint32_t);
    case WB_F64:
    case WB_I64:
        STRIDED(uint64_t, uint64_t);
    case WB_U8:
        STRIDED(uint8_t, int32_t);
    case WB_BOOL:
        for (int64_t i = 0; i < n; i++) ((int32_t *)(void *)to)[i] = from[i * stride] != 0;
        break;
    default:
        for (int64_t i = 0; i < n; i++) loops->load[dtype](1, from + 2 * i * stride, to + 4 * i);
        break;
    }
}

static int64_t width_of(int dtype) { return wb_register_bytes(wb_register_of((wb_dtype)dtype)); }

static void store_strided(int dtype, int64_t n, const char *from, char *to, int64_t stride,
                          const wb_loops *loops) {
    const int64_t size = (int64_t)wb_storage_size(dtype), width = width_of(dtype);
    for (int64_t i = 0; i < n; i++)
        loops->store[dtype](1, from + i * width, to + i * stride * size);
}

void wb_load_row(const wb_tile *t, const wb_access *a, int64_t n, int64_t stride, const char *from,
                 char *to) {
    const wb_loops *loops = t->job->k->loops;
    if (stride == 1)
        loops->load[a->dtype](n, from, to);
    else if (stride == 0) {
        loops->load[a->dtype](1, from, to);
        loops->repeat[width_of(a->dtype) == 8](n, to, to);
    } else
        load_strided(a->dtype, n, from, stride, to, loops);
}

void wb_store_row(const wb_tile *t, const wb_access *a, int64_t n, int64_t stride, const char *from,
                  char *to) {
    const wb_loops *loops = t->job->k->loops;
    if (stride == 1)
        loops->store[a->dtype](n, from, to);
    else
        store_strided(a->dtype, n, from, to, stride, loops);
}

void wb_load_tile(const wb_tile *t, const wb_access *a, char *to) {
    const char *from = wb_address(t, a);
    if (wb_lies_flat(t, a)) {
        t->job->k->loops->load[a->dtype](t->inner * t->outer, from, to);
        return;
    }
    const int64_t size = (int64_t)wb_storage_size(a->dtype), width = width_of(a->dtype);
    if (t->inner == 1) {
        wb_load_row(t, a, t->outer, a->strides[1], from, to);
        return;
    }
    if (a->strides[0] == 0 && a->strides[1] != 0) {
        _Alignas(8) char column[8 * WB_WHOLE_ROW]; /* room for all elements, or rows, of a tile */
        wb_load_row(t, a, t->outer, a->strides[1], from, column);
        t->job->k->loops->repeat_rows[width == 8](t->inner, t->outer, column, to);
        return;
    }
    for (int64_t o = 0; o < t->outer; o++) {
        if (o > 0 && a->strides[1] == 0)
            memcpy(to + o * t->inner * width, to, (size_t)(t->inner * width));
        else
            wb_load_row(t, a, t->inner, a->strides[0], from + o * a->strides[1] * size,
                        to + o * t->inner * width);
    }
}

void wb_store_tile(const wb_tile *t, const wb_access *a, const char *from) {
    char *to = wb_address(t, a);
    if (wb_lies_flat(t, a)) {
        t->job->k->loops->store[a->dtype](t->inner * t->outer, from, to);
        return;
    }
    const int64_t size = (int64_t)wb_storage_size(a->dtype), width = width_of(a->dtype);
    if (t->inner == 1) {
        wb_store_row(t, a, t->outer, a->strides[1], from, to);
        return;
    }
    for (int64_t o = 0; o < t->outer; o++)
        wb_store_row(t, a, t->inner, a->strides[0], from + o * t->inner * width,
                     to + o * a->strides[1] * size);
}

int64_t wb_row_stride(const wb_tile *t, const wb_access *a) {
    switch (t->job->k->shape) {
    case WB_ROWS:
        return a->strides[1];
    case WB_COLUMNS:
        return a->strides[0];
    default:
        return 0;
    }
}

/* ---- sources ---- */

#define COUNT_UP(T)                                                                                \
    for (int64_t o = 0; o < outer; o++)                                                            \
        for (int64_t i = 0; i < inner; i++)                                                        \
    ((T *)to)[o * inner + i] = (T)(first + o * down + i * across)

static void iota(wb_register type, int64_t inner, int64_t outer, int64_t first, int64_t across,
                 int64_t down, void *to) {
    switch (type) {
    case WB_R_F32:
        COUNT_UP(float);
        break;
    case WB_R_F64:
        COUNT_UP(double);
        break;
    case WB_R_I64:
        COUNT_UP(int64_t);
        break;
    default:
        COUNT_UP(int32_t);
        break;
    }
}

/* Random numbers of elements first, first + across ...: one call where they follow each other. */
static void random_tile(const wb_tile *t, const wb_instruction *i, int64_t inner, int64_t outer,
                        int64_t first, int64_t across, int64_t down, char *to) {
    const wb_loops *loops = t->job->k->loops;
    const int type = i->type == WB_R_F64;
    wb_fill_loop *fill = i->code == WB_CODE_normal ? loops->normal[type] : loops->uniform[type];
    const uint64_t key = t->job->late[(int)i->constant],
                   counter = t->job->late[(int)i->constant + 1];
    const int64_t width = type ? 8 : 4;
    if ((across == 1 || inner == 1) && (outer == 1 || down == inner)) {
        fill(to, first, inner * outer, key, counter);
        return;
    }
    for (int64_t o = 0; o < outer; o++) {
        if (across == 1)
            fill(to + o * inner * width, first + o * down, inner, key, counter);
        else
            for (int64_t x = 0; x < inner; x++)
                fill(to + (o * inner + x) * width, first + o * down + x * across, 1, key, counter);
    }
}

void wb_source_tile(const wb_tile *t, const wb_instruction *i, int64_t inner, int64_t outer,
                    int64_t across, int64_t down, char *to) {
    const int64_t first = wb_first_element(t, &t->job->k->program.accesses[i->index]);
    if (i->code == WB_CODE_iota)
        iota((wb_register)i->type, inner, outer, first, across, down, to);
    else
        random_tile(t, i, inner, outer, first, across, down, to);
}

void wb_fill_constant(const wb_loops *loops, const wb_instruction *i, double number, int64_t n,
                      void *to) {
    const double lanes[WB_LANES] = {number};
    switch ((wb_register)i->type) {
    case WB_R_F32:
        ((float *)to)[0] = (float)number;
        break;
    case WB_R_F64:
        ((double *)to)[0] = number;
        break;
    default: /* as casts have it: some numbers fit into no integer */
        loops->cast[WB_R_F64][i->type](WB_LANES, to, lanes, lanes, lanes);
        break;
    }
    if (n > 1) loops->repeat[wb_register_bytes((wb_register)i->type) == 8](n, to, to);
}
