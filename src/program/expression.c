/* Instructions as expressions of the dialect. */
#include <math.h>
#include <string.h>

#include "program/printer.h"

static const char *const suffixes[WB_R_COUNT] = {[WB_R_F32] = "f32",
                                                 [WB_R_F64] = "f64",
                                                 [WB_R_I32] = "i32",
                                                 [WB_R_I64] = "i64",
                                                 [WB_R_BOOL] = "i32"};

static const char *const dtypes[WB_DTYPE_COUNT] = {
#define X(NAME, name, bytes, type) [WB_##NAME] = #name,
    WB_DTYPE_LIST(X)
#undef X
};

/* The rows' text. */
static const char *const rows[WB_CODE_select] = {
#define WB_UNARY(name, class, text, ...)  [WB_CODE_##name] = #text,
#define WB_BINARY(name, class, text, ...) [WB_CODE_##name] = #text,
#include <weber/ops.def>
};

const char *wb_place_type(const wb_printer *p) { return p->layout.is_wide ? "wb_i64" : "wb_i32"; }

const char *wb_value_type(wb_register type) {
    static const char *const types[WB_R_COUNT] = {[WB_R_F32] = "wb_f32",
                                                  [WB_R_F64] = "wb_f64",
                                                  [WB_R_I32] = "wb_i32",
                                                  [WB_R_I64] = "wb_i64",
                                                  [WB_R_BOOL] = "wb_i32"};
    return types[type];
}

const char *wb_register_suffix(int type) { return suffixes[type]; }

/* ---- operands ---- */

static uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t bits_of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Values that do not fit become the smallest number, as in casts. */
static int64_t whole(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }

static int32_t short_whole(double x) {
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}

static void print_constant(wb_printer *p, const wb_instruction *i) {
    const uint64_t f64 = bits_of_double(i->constant), i64 = (uint64_t)whole(i->constant);
    switch ((wb_register)i->type) {
    case WB_R_F32:
        wb_print(p, "WB_F32(0x%08xu)", (unsigned)bits_of_float((float)i->constant));
        return;
    case WB_R_F64:
        wb_print(p, "WB_F64(WB_U64(0x%08xu, 0x%08xu))", (unsigned)(f64 >> 32), (unsigned)f64);
        return;
    case WB_R_I64:
        wb_print(p, "WB_I64(0x%08xu, 0x%08xu)", (unsigned)(i64 >> 32), (unsigned)i64);
        return;
    case WB_R_I32:
        wb_print(p, "(wb_i32)0x%08xu", (unsigned)short_whole(i->constant));
        return;
    default:
        wb_print(p, "%d", i->constant != 0);
        return;
    }
}

bool wb_is_literal(const wb_instruction *i) {
    enum { SMALL = 8, BYTE = 256 };
    const double c = i->constant;
    if (i->code != WB_CODE_constant) return false;
    if (i->type == WB_R_BOOL || !isfinite(c) || c == (double)BYTE) return true;
    return fabs(c) <= (double)SMALL && 2 * c == rint(2 * c);
}

void wb_print_value(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    if (wb_is_literal(i))
        print_constant(p, i);
    else if (i->code == WB_CODE_spread)
        wb_print_value(p, i->in[0]);
    else if (i->row && p->layout.walk == WB_WALK_TILES)
        wb_print(p, "v%d[j]", number);
    else
        wb_print(p, "v%d", number);
}

/* ---- elementwise ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void print_operand(wb_printer *p, const wb_instruction *i, int in, const char *cast) {
    wb_print(p, "%s", cast);
    wb_print_value(p, i->in[in]);
}

/* One word of a row's text: x, y, z are the operands, k_NAME has a form for each register. */
static void print_word(wb_printer *p, const wb_instruction *i, const char *word, int size,
                       const char *cast) {
    if (size == 1 && word[0] >= 'x' && word[0] <= 'z')
        print_operand(p, i, word[0] - 'x', cast);
    else if (size > 2 && word[0] == 'k' && word[1] == '_')
        wb_print(p, "%.*s_%s", size, word, suffixes[i->type]);
    else
        wb_print(p, "%.*s", size, word);
}

/* Compilers contract a product and a sum; a value has the same bits in every program instead. */
static bool is_product(const wb_instruction *i) {
    const bool is_float = i->type == WB_R_F32 || i->type == WB_R_F64;
    return is_float && (i->code == WB_CODE_mul || i->code == WB_CODE_square);
}

static void print_product(wb_printer *p, const wb_instruction *i) {
    wb_print(p, "k_product_%s(", suffixes[i->type]);
    wb_print_value(p, i->in[0]);
    wb_print(p, ", ");
    wb_print_value(p, i->in[i->code == WB_CODE_mul]);
    wb_print(p, ")");
}

/* Integers wrap, so they are computed as unsigned ones and converted back. */
static void print_row(wb_printer *p, const wb_instruction *i) {
    if (is_product(i)) {
        print_product(p, i);
        return;
    }
    const char *at = rows[i->code];
    const bool is_integer = i->type == WB_R_I32 || i->type == WB_R_I64;
    const bool wraps = is_integer && i->from != WB_R_BOOL && !strstr(at, "k_");
    const char *cast = !wraps ? "" : i->type == WB_R_I32 ? "(wb_u32)" : "(wb_u64)";
    const bool converts = wraps || i->from == WB_R_BOOL;
    if (converts) wb_print(p, "(%s)(", wb_value_type((wb_register)i->from));
    while (*at) {
        const char *word = at;
        while (is_word(*at)) at++;
        if (at == word) {
            wb_print(p, "%c", *at++);
            continue;
        }
        print_word(p, i, word, (int)(at - word), cast);
    }
    if (converts) wb_print(p, ")");
}

static void print_cast(wb_printer *p, const wb_instruction *i) {
    if (i->index) { /* halves: there and back */
        const char *half = dtypes[i->index];
        wb_print(p, "k_%s_to_f32(k_f32_to_%s(", half, half);
        wb_print_value(p, i->in[0]);
        wb_print(p, "))");
        return;
    }
    const char *from = suffixes[i->from], *to = suffixes[i->type];
    const bool to_bool = i->type == WB_R_BOOL;
    if (to_bool)
        wb_print(p, "(wb_i32)(");
    else if (strcmp(from, to) != 0)
        wb_print(p, "k_cast_%s_%s(", from, to);
    wb_print_value(p, i->in[0]);
    if (to_bool)
        wb_print(p, " != 0)");
    else if (strcmp(from, to) != 0)
        wb_print(p, ")");
}

/* ---- places ---- */

/* The dimension of the innermost loop, whose position is j; -1: none. */
static int inner_dim(const wb_layout *l, bool is_row) {
    if (l->walk == WB_WALK_TILES) return 0;
    return l->walk == WB_WALK_RUNS && !is_row ? l->first_column : -1;
}

/* The place of access a, for instructions of rows or of columns. */
void wb_print_place(wb_printer *p, int a, bool is_row) {
    const wb_layout *l = &p->layout;
    const wb_access *access = &l->program.accesses[a];
    const bool in_columns = !is_row && wb_access_varies(l, access, true);
    if (l->is_linear[a]) {
        wb_print(p, l->walk == WB_WALK_RUNS || l->walk == WB_WALK_BLOCKS ? "c + j" : "c");
        return;
    }
    if (!in_columns && !wb_access_varies(l, access, false)) {
        wb_print(p, "0");
        return;
    }
    wb_print(p, "%c%d", in_columns ? 'y' : 'x', a);
    const int d = inner_dim(l, is_row);
    if (d < 0 || access->strides[d] == 0) return;
    if (access->strides[d] == 1)
        wb_print(p, " + j");
    else
        wb_print(p, " + (j ^ none) * s%d_%d", a, d);
}

/* ---- sources ---- */

static void print_number(wb_printer *p, const wb_instruction *i) {
    wb_print(p, "o%d + ", i->index);
    wb_print_place(p, i->index, i->row);
}

static void print_random(wb_printer *p, const wb_instruction *i) {
    const int key = (int)i->constant;
    wb_print(p, "k_%s_%s((wb_i64)(", i->code == WB_CODE_normal ? "normal" : "uniform",
             suffixes[i->type]);
    print_number(p, i);
    wb_print(p, "), WB_LATE(w, %d), WB_LATE(w, %d))", wb_late_word(p, key),
             wb_late_word(p, key + 1));
}

static void print_load(wb_printer *p, const wb_instruction *i) {
    wb_print(p, "wb_load_%s(p%d, ", dtypes[p->layout.program.accesses[i->index].dtype], i->index);
    wb_print_place(p, i->index, i->row);
    wb_print(p, ")");
}

const char *wb_memory_type(const wb_printer *p, uint16_t number) {
    return dtypes[p->layout.program.accesses[wb_instruction_at(p, number)->index].dtype];
}

void wb_print_batch(wb_printer *p, uint16_t load, int count) {
    wb_print(p, "wb_%s l%d[%d];\n", wb_memory_type(p, load), load, count);
}

void wb_print_batch_load(wb_printer *p, uint16_t load) {
    const wb_instruction *i = wb_instruction_at(p, load);
    wb_print(p, "l%d[j] = p%d[", load, i->index);
    wb_print_place(p, i->index, i->row);
    wb_print(p, "];\n");
}

void wb_print_batch_value(wb_printer *p, uint16_t load) {
    wb_print(p, "const %s v%d = wb_load_%s(l%d, j);\n",
             wb_value_type(wb_result_register(wb_instruction_at(p, load))), load,
             wb_memory_type(p, load), load);
}

/* ---- the whole ---- */

void wb_print_expression(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    switch (i->code) {
    case WB_CODE_select:
        wb_print_value(p, i->in[0]);
        wb_print(p, " ? ");
        wb_print_value(p, i->in[1]);
        wb_print(p, " : ");
        wb_print_value(p, i->in[2]);
        return;
    case WB_CODE_cast:
        print_cast(p, i);
        return;
    case WB_CODE_load:
        print_load(p, i);
        return;
    case WB_CODE_constant:
        wb_print(p, "k_late_%s(u%d)", i->type == WB_R_BOOL ? "bool" : suffixes[i->type], number);
        return;
    case WB_CODE_late:
        wb_print(p, "k_late_%s(WB_LATE(w, %d))", i->type == WB_R_BOOL ? "bool" : suffixes[i->type],
                 wb_late_word(p, i->index));
        return;
    case WB_CODE_iota:
        wb_print(p, "(%s)(", wb_value_type((wb_register)i->type));
        print_number(p, i);
        wb_print(p, ")");
        return;
    case WB_CODE_uniform:
    case WB_CODE_normal:
        print_random(p, i);
        return;
    case WB_CODE_sum:
    case WB_CODE_max_reduce:
        wb_print_result(p, number);
        return;
    default:
        print_row(p, i);
        return;
    }
}

void wb_print_store(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    wb_print(p, "wb_store_%s(p%d, ", dtypes[p->layout.program.accesses[i->index].dtype], i->index);
    wb_print_place(p, i->index, i->row);
    wb_print(p, ", ");
    wb_print_value(p, i->in[0]);
    wb_print(p, ");\n");
}
