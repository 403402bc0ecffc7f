#include "attention.h"

#include <stdio.h>
#include <string.h>

enum { QUERIES = BENCH_ATTENTION_QUERIES };

static bool parse_type(const char *name, wb_dtype *type) {
    for (int i = 0; i < WB_DTYPE_COUNT; i++)
        if (strcmp(name, wb_dtype_name((wb_dtype)i)) == 0) *type = (wb_dtype)i;
    return *name == '\0' || strcmp(name, wb_dtype_name(*type)) == 0;
}

bool bench_attention_parse(const char *text, bench_attention *attention) {
    static const char gradient[] = "gradient";
    char first[16] = "", second[8] = "";
    long long length = 0;
    wb_dtype type = WB_F32;
    const int read = sscanf(text, "%lld,%15[^,],%7s", &length, first, second);
    const bool has_gradient = strcmp(first, gradient) == 0;
    if (read < 1 || length < 1 || length > QUERIES || QUERIES % length != 0 ||
        (read == 3 && !has_gradient) || !parse_type(has_gradient ? second : first, &type))
        return false;
    *attention = (bench_attention){length, QUERIES / length, has_gradient, type};
    return true;
}

bench_values_of_step bench_attention_step(const bench_attention *attention, wb_array *x,
                                          wb_array *d) {
    wb_array *of[3] = {NULL}, *gradients[3] = {NULL};
    for (int i = 0; i < 3; i++)
        of[i] = wb_reshape(wb_slice(x, 3, i, i + 1, 1), BENCH_ATTENTION_FEATURES, attention->length,
                           attention->heads);
    wb_array *y = wb_attention(of[0], of[1], of[2], .causal = true);
    if (!attention->has_gradient) {
        wb_eval(y);
        return (bench_values_of_step){y, NULL};
    }
    wb_array *loss = wb_sum(wb_mul(y, d));
    wb_gradient_of(loss, 3, of, gradients);
    wb_eval(loss, gradients[0], gradients[1], gradients[2]);
    return (bench_values_of_step){loss, gradients[1]};
}
