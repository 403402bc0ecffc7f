#include "attention.h"

#include <stdio.h>
#include <string.h>

enum { QUERIES = BENCH_ATTENTION_QUERIES };

bool bench_attention_parse(const char *text, bench_attention *attention) {
    char rest[16] = "";
    long long length = 0;
    const int read = sscanf(text, "%lld,%15s", &length, rest);
    const bool has_gradient = read == 2;
    if (read < 1 || length < 1 || length > QUERIES || QUERIES % length != 0 ||
        (has_gradient && strcmp(rest, "gradient") != 0))
        return false;
    *attention = (bench_attention){length, QUERIES / length, has_gradient};
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
