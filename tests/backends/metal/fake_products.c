/* Matrix products of MetalPerformanceShaders: row-major, in f32 and f16. */
#include <stdlib.h>
#include <string.h>

#include "fake_metal.h"

mtl_id send_matrix_descriptor(mtl_id self, mtl_selector selector, mtl_uint rows, mtl_uint columns,
                              mtl_uint matrices, mtl_uint row_bytes, mtl_uint matrix_bytes,
                              uint32_t type) {
    FAKE_ENTER();
    (void)self;
    if (fake_fails(selector, NULL)) return NULL;
    const size_t size = type == MPS_FLOAT16 ? 2 : 4;
    if ((type != MPS_FLOAT32 && type != MPS_FLOAT16) || rows == 0 || columns == 0 ||
        matrices == 0 || row_bytes < columns * size || row_bytes % size ||
        (matrices > 1 && matrix_bytes < (rows - 1) * row_bytes + columns * size))
        fake_abort("MPSMatrixDescriptor: %lu matrices of %lu by %lu, rows of %lu bytes, matrices "
                   "of %lu bytes, type %x",
                   matrices, rows, columns, row_bytes, matrix_bytes, type);
    fake_matrix_shape *s = fake_new(FAKE_MPSMatrixDescriptor);
    if (!s) abort();
    s->rows = rows, s->columns = columns, s->matrices = matrices;
    s->row_bytes = row_bytes, s->matrix_bytes = matrix_bytes, s->type = type;
    return (mtl_id)fake_autorelease(s);
}

/* What alloc gave is consumed, and given back. */
mtl_id send_init_matrix(mtl_id self, mtl_selector selector, mtl_id buffer, mtl_uint offset,
                        mtl_id shape) {
    FAKE_ENTER();
    fake_matrix *m = (void *)self;
    fake_buffer *b = fake_argument(buffer, FAKE_MTLBuffer, selector, false);
    const fake_matrix_shape *s = fake_argument(shape, FAKE_MPSMatrixDescriptor, selector, false);
    if (fake_fails(selector, NULL)) {
        fake_drop(m);
        return NULL;
    }
    const size_t size = s->type == MPS_FLOAT16 ? 2 : 4;
    const size_t bytes = (s->matrices - 1) * s->matrix_bytes + s->rows * s->row_bytes;
    if (offset % size || offset > b->bytes || bytes > b->bytes - offset)
        fake_abort("MPSMatrix: %zu bytes at %lu of a buffer of %zu", bytes, offset, b->bytes);
    m->buffer = fake_keep(b), m->offset = offset, m->shape = *s;
    return self;
}

void fake_end_matrix(void *object) { fake_drop(((fake_matrix *)object)->buffer); }

mtl_id send_init_product(mtl_id self, mtl_selector selector, mtl_id device, bool transpose_left,
                         bool transpose_right, mtl_uint rows, mtl_uint columns, mtl_uint inner,
                         double alpha, double beta) {
    FAKE_ENTER();
    fake_product *p = (void *)self;
    (void)fake_argument(device, FAKE_MTLDevice, selector, false);
    if (fake_fails(selector, NULL)) {
        fake_drop(p);
        return NULL;
    }
    p->transpose_left = transpose_left, p->transpose_right = transpose_right;
    p->rows = rows, p->columns = columns, p->inner = inner;
    p->alpha = alpha, p->beta = beta;
    return self;
}

static void check_operand(const fake_matrix *m, size_t rows, size_t columns, bool is_transposed,
                          const char *name) {
    const size_t wanted_rows = is_transposed ? columns : rows;
    const size_t wanted_columns = is_transposed ? rows : columns;
    if (m->shape.rows < wanted_rows || m->shape.columns < wanted_columns)
        fake_abort("the %s matrix of a product is %zu by %zu, not %zu by %zu", name, m->shape.rows,
                   m->shape.columns, wanted_rows, wanted_columns);
}

void fake_check_product(const fake_multiply *m) {
    const fake_product *p = m->product;
    check_operand(m->left, p->rows, p->inner, p->transpose_left, "left");
    check_operand(m->right, p->inner, p->columns, p->transpose_right, "right");
    check_operand(m->result, p->rows, p->columns, false, "result");
    const size_t count = m->result->shape.matrices;
    if (m->left->shape.matrices != count || m->right->shape.matrices != count)
        fake_abort("a product of %zu and %zu matrices gives %zu", m->left->shape.matrices,
                   m->right->shape.matrices, count);
    if (p->inner >= 32767)
        fake_complain("MPS reads past the operands of a product with an inner size of %zu",
                      p->inner);
}

/* ---- running ---- */

static float half_to_float(uint16_t h) {
    const uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, rest = h & 1023;
    uint32_t bits = sign | (exponent + 112) << 23 | rest << 13;
    float x;
    if (exponent == 31) bits = sign | 0x7f800000u | rest << 13;
    memcpy(&x, &bits, sizeof x);
    return exponent ? x : (sign ? -1.0f : 1.0f) * (float)rest / 16777216.0f;
}

static uint16_t float_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00;
    if (bits >= 0x477ff000) return sign | 0x7c00;
    if (bits < 0x38800000) { /* below the normal ones: in steps of 2^-24, ties to even */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        return sign | (uint16_t)__builtin_rintf(magnitude * 16777216.0f);
    }
    bits += 0xfff + (bits >> 13 & 1);
    return sign | (uint16_t)((bits >> 13) - (112u << 10));
}

static char *element_of(const fake_matrix *m, size_t matrix, size_t row, size_t column) {
    const size_t size = m->shape.type == MPS_FLOAT16 ? 2 : 4;
    return m->buffer->memory + m->offset + matrix * m->shape.matrix_bytes +
           row * m->shape.row_bytes + column * size;
}

static float read_element(const fake_matrix *m, size_t matrix, size_t row, size_t column) {
    const char *at = element_of(m, matrix, row, column);
    float x;
    uint16_t h;
    if (m->shape.type == MPS_FLOAT32) {
        memcpy(&x, at, sizeof x);
        return x;
    }
    memcpy(&h, at, sizeof h);
    return half_to_float(h);
}

static void write_element(const fake_matrix *m, size_t matrix, size_t row, size_t column, float x) {
    char *at = element_of(m, matrix, row, column);
    const uint16_t h = float_to_half(x);
    if (m->shape.type == MPS_FLOAT32)
        memcpy(at, &x, sizeof x);
    else
        memcpy(at, &h, sizeof h);
}

static float one_product(const fake_multiply *m, size_t matrix, size_t row, size_t column) {
    const fake_product *p = m->product;
    float sum = 0;
    for (size_t k = 0; k < p->inner; k++)
        sum += (p->transpose_left ? read_element(m->left, matrix, k, row)
                                  : read_element(m->left, matrix, row, k)) *
               (p->transpose_right ? read_element(m->right, matrix, column, k)
                                   : read_element(m->right, matrix, k, column));
    return sum;
}

void fake_run_product(const fake_multiply *m) {
    const fake_product *p = m->product;
    fake_count.products++;
    for (size_t matrix = 0; matrix < m->result->shape.matrices; matrix++)
        for (size_t i = 0; i < p->rows; i++)
            for (size_t j = 0; j < p->columns; j++) {
                const float old = p->beta != 0 ? read_element(m->result, matrix, i, j) : 0;
                const double sum = p->alpha * (double)one_product(m, matrix, i, j);
                write_element(m->result, matrix, i, j, (float)(sum + p->beta * (double)old));
            }
}
