#include "rows.h"

#include <stdio.h>
#include <string.h>

bool bench_rows_parse(const char *text, bench_rows *rows) {
    char name[16] = "", rest[16] = "";
    long long length = 0, count = 0;
    const int read = sscanf(text, "%15[a-z],%lld,%lld,%15s", name, &length, &count, rest);
    const bool is_norm = strcmp(name, "layernorm") == 0, has_gradient = read == 4;
    if (read < 3 || length < 1 || count < 1 || (!is_norm && strcmp(name, "softmax") != 0) ||
        (has_gradient && strcmp(rest, "gradient") != 0))
        return false;
    *rows = (bench_rows){length, count, is_norm, has_gradient};
    return true;
}

bench_values_of_step bench_rows_step(const bench_rows *rows, wb_array *x, wb_array *d) {
    wb_array *of[3] = {x}, *gradients[3] = {NULL};
    wb_array *y;
    if (rows->is_norm) {
        of[1] = wb_ones(WB_F32, rows->length), of[2] = wb_zeros(WB_F32, rows->length);
        wb_eval(of[1], of[2]);
        y = wb_add(wb_mul(wb_normalise(x, 1e-5, 0), of[1]), of[2]);
    } else {
        y = wb_softmax(x);
    }
    if (!rows->has_gradient) {
        wb_eval(y);
        return (bench_values_of_step){y, NULL};
    }
    wb_array *loss = wb_sum(wb_mul(y, d));
    wb_gradient_of(loss, rows->is_norm ? 3 : 1, of, gradients);
    if (rows->is_norm)
        wb_eval(loss, gradients[0], gradients[1], gradients[2]);
    else
        wb_eval(loss, gradients[0]);
    return (bench_values_of_step){loss, gradients[0]};
}
