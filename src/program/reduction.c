/* Sums and maxima. The maximum of floats is found by comparing integers with the same order, in
 * which NaN is the largest, so that the loop needs no branch. */
#include <stdio.h>
#include <string.h>

#include "program/printer.h"

static bool is_sum(const wb_instruction *i) { return i->code == WB_CODE_sum; }

static bool is_float_sum(const wb_instruction *i) {
    return is_sum(i) && (i->type == WB_R_F32 || i->type == WB_R_F64);
}

bool wb_has_blocks(const wb_instruction *i) { return is_sum(i) && i->type == WB_R_F32; }

const char *wb_accumulator_type(const wb_instruction *i) {
    static const char *const sums[WB_R_COUNT] = {[WB_R_F32] = "wb_f32",
                                                 [WB_R_F64] = "wb_f64",
                                                 [WB_R_I32] = "wb_u32",
                                                 [WB_R_I64] = "wb_u64",
                                                 [WB_R_BOOL] = "wb_u32"};
    static const char *const orders[WB_R_COUNT] = {[WB_R_F32] = "wb_i32",
                                                   [WB_R_F64] = "wb_i64",
                                                   [WB_R_I32] = "wb_i32",
                                                   [WB_R_I64] = "wb_i64",
                                                   [WB_R_BOOL] = "wb_i32"};
    return is_sum(i) ? sums[i->type] : orders[i->type];
}

const char *wb_total_type(const wb_printer *p, const wb_instruction *i) {
    return is_float_sum(i) && p->dialect->has_f64 ? "wb_f64" : wb_accumulator_type(i);
}

void wb_print_start(wb_printer *p, const wb_instruction *i) {
    static const char *const smallest[WB_R_COUNT] = {
        [WB_R_F32] = "k_order_f32(WB_F32(0xff800000u))",
        [WB_R_F64] = "k_order_f64(WB_F64(WB_U64(0xfff00000u, 0)))",
        [WB_R_I32] = "(wb_i32)0x80000000u",
        [WB_R_I64] = "WB_I64(0x80000000u, 0)",
        [WB_R_BOOL] = "(wb_i32)0x80000000u"};
    wb_print(p, "%s", is_sum(i) ? "0" : smallest[i->type]);
}

static const char *element(const wb_printer *p) {
    return p->layout.walk == WB_WALK_TILES ? "[j]" : "";
}

void wb_print_result(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    if (is_sum(i))
        wb_print(p, "(%s)(", wb_value_type((wb_register)i->type));
    else
        wb_print(p, "k_from_order_%s(", wb_register_suffix(i->type));
    wb_print(p, "t%d%s)", number, element(p));
}

static void print_max(wb_printer *p, const wb_instruction *i, const char *to) {
    const bool is_short = strcmp(wb_accumulator_type(i), "wb_i32") == 0;
    wb_print(p, "%s = k_max_%s(%s, ", to, is_short ? "i32" : "i64", to);
}

void wb_print_step(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    char to[32];
    const bool has_blocks = wb_has_blocks(i);
    (void)snprintf(to, sizeof to, "%c%d%s", has_blocks ? 'a' : 't', number, element(p));
    if (is_float_sum(i)) {
        wb_print(p, "WB_SUM(%s, (%s)", to,
                 has_blocks ? wb_accumulator_type(i) : wb_total_type(p, i));
    } else if (is_sum(i)) {
        wb_print(p, "%s += (%s)(", to, wb_accumulator_type(i));
    } else {
        print_max(p, i, to);
        wb_print(p, "k_order_%s(", wb_register_suffix(i->type));
    }
    wb_print_value(p, i->in[0]);
    wb_print(p, is_sum(i) ? ");\n" : "));\n");
}

void wb_print_merge(wb_printer *p, const wb_instruction *i, const char *to, const char *from) {
    if (is_sum(i)) {
        wb_print(p, "%s += %s;\n", to, from);
        return;
    }
    print_max(p, i, to);
    wb_print(p, "%s);\n", from);
}

/* ---- among the items that share a row ---- */

/* The reductions that end with the phase, each with what `print` prints for it. */
static void print_each(wb_printer *p, int phase, void (*print)(wb_printer *p, int i)) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (wb_is_total(wb_instruction_at(p, i), phase)) print(p, i);
}

/* Of totals t7 and g7[...]. */
static void merge_shared(wb_printer *p, int i, char to, const char *to_index, const char *from) {
    char name[64], other[64];
    (void)snprintf(name, sizeof name, "%c%d%s", to, i, to_index);
    (void)snprintf(other, sizeof other, "g%d%s", i, from);
    wb_print_merge(p, wb_instruction_at(p, i), name, other);
}

/* Every item of a warp gets the warp's total, the same bits in each. */
static void print_exchange(wb_printer *p, int i) {
    const wb_instruction *reduction = wb_instruction_at(p, i);
    char total[32];
    (void)snprintf(total, sizeof total, "t%d", i);
    wb_print(p, "for (wb_i32 h = %d; h > 0; h /= 2) {\nconst %s other = WB_SHUFFLE_XOR(%s, h);\n",
             p->dialect->warp / 2, wb_total_type(p, reduction), total);
    wb_print_merge(p, reduction, total, "other");
    wb_print(p, "}\n");
}

static void print_total_of_warp(wb_printer *p, int i) {
    wb_print(p, "if (WB_LANE %% %d == 0) g%d[WB_LANE / %d] = t%d;\n", p->dialect->warp, i,
             p->dialect->warp, i);
}

static void print_total_of_warps(wb_printer *p, int i) {
    wb_print(p, "t%d = g%d[0];\nfor (wb_i32 h = 1; h < %d; h++) ", i, i,
             wb_shared_totals(&p->layout, p->dialect));
    merge_shared(p, i, 't', "", "[h]");
}

static void print_total_of_item(wb_printer *p, int i) {
    wb_print(p, "g%d[WB_LANE] = t%d;\n", i, i);
}

static void print_fold(wb_printer *p, int i) {
    merge_shared(p, i, 'g', "[WB_LANE]", "[WB_LANE + h]");
}

static void print_total(wb_printer *p, int i) { wb_print(p, "t%d = g%d[0];\n", i, i); }

static void share_by_warps(wb_printer *p, int phase) {
    print_each(p, phase, print_exchange);
    if (p->layout.walk == WB_WALK_WARPS) return;
    print_each(p, phase, print_total_of_warp);
    wb_print(p, "WB_BARRIER();\n");
    print_each(p, phase, print_total_of_warps);
}

static void share_by_items(wb_printer *p, int phase) {
    print_each(p, phase, print_total_of_item);
    wb_print(p, "for (wb_u32 h = %d; h > 0; h /= 2) {\nWB_BARRIER();\nif (WB_LANE < h) {\n",
             p->layout.group / 2);
    print_each(p, phase, print_fold);
    wb_print(p, "}\n}\nWB_BARRIER();\n");
    print_each(p, phase, print_total);
}

void wb_print_shared_totals(wb_printer *p, int phase) {
    if (p->dialect->warp)
        share_by_warps(p, phase);
    else
        share_by_items(p, phase);
}
