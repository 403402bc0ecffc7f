/* Positions in the dimensions of rows and columns, and the places of accesses at them. */
#include "program/printer.h"

void wb_print_positions(wb_printer *p, uint32_t dims, const char *from, char name) {
    const char *type = wb_place_type(p);
    const bool several = (dims & (dims - 1)) != 0;
    if (several) wb_print(p, "%s %c_rest = %s;\n", type, name, from);
    for (int d = 0; d < p->layout.program.ndim; d++) {
        if (!(dims >> d & 1)) continue;
        if (!several)
            wb_print(p, "const %s %c%d = %s;\n", type, name, d, from);
        else if (dims >> d == 1)
            wb_print(p, "const %s %c%d = %c_rest;\n", type, name, d, name);
        else
            wb_print(p, "const %s %c%d = %c_rest %% n%d; %c_rest /= n%d;\n", type, name, d, name, d,
                     name, d);
    }
}

/* x3 = i0 + i2 * s3_2; y3 = x3 + c1 * s3_1; */
static void print_base(wb_printer *p, int a, bool along_columns) {
    const wb_access *access = &p->layout.program.accesses[a];
    const char *plus = "";
    wb_print(p, "const %s %c%d = ", wb_place_type(p), along_columns ? 'y' : 'x', a);
    if (along_columns && wb_access_varies(&p->layout, access, false)) {
        wb_print(p, "x%d", a);
        plus = " + ";
    }
    for (int d = 0; d < p->layout.program.ndim; d++) {
        if (wb_is_column(&p->layout, d) != along_columns || access->strides[d] == 0) continue;
        wb_print(p, "%s%c%d", plus, along_columns ? 'c' : 'i', d);
        if (access->strides[d] != 1) wb_print(p, " * s%d_%d", a, d);
        plus = " + ";
    }
    wb_print(p, ";\n");
}

void wb_print_row_bases(wb_printer *p) {
    const wb_layout *l = &p->layout;
    for (int a = 0; a < l->program.naccesses; a++)
        if (wb_access_varies(l, &l->program.accesses[a], false)) print_base(p, a, false);
}

static bool has_access(const wb_instruction *i) {
    return i->code == WB_CODE_load || i->code == WB_CODE_store || i->code == WB_CODE_iota ||
           i->code == WB_CODE_uniform || i->code == WB_CODE_normal;
}

/* Access number a is needed in the phase, and moves along the columns by positions. */
static bool is_walked(const wb_printer *p, const bool *needed, int i) {
    const wb_layout *l = &p->layout;
    const wb_instruction *instruction = wb_instruction_at(p, i);
    if (!needed[i] || p->is_uniform[i] || !has_access(instruction)) return false;
    const int a = instruction->index;
    return !l->is_linear[a] && wb_access_varies(l, &l->program.accesses[a], true);
}

bool wb_is_positioned(const wb_printer *p, const bool *needed) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_walked(p, needed, i)) return true;
    return false;
}

void wb_print_column_bases(wb_printer *p, const bool *needed) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_walked(p, needed, i)) print_base(p, wb_instruction_at(p, i)->index, true);
}

void wb_print_column(wb_printer *p, const bool *needed) {
    if (wb_is_positioned(p, needed)) wb_print_positions(p, p->layout.column_dims, "c", 'c');
    wb_print_column_bases(p, needed);
}
