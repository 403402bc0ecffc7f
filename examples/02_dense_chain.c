/* Dense layers and chains: making, applying, looking inside, messages.
 *
 * | Dense(10 => 5, sigmoid)  # 55 parameters
 * | weight is (5, 10)
 * | Chain(
 * |   Dense(10 => 5, sigmoid),              # 55 parameters
 * |   Dense(5 => 2),                        # 12 parameters
 * |   softmax,
 * | )                   # Total: 4 arrays, 67 parameters, 268 bytes.
 * | 67 parameters
 * | y is (2, 64)
 * | probabilities sum to one: yes
 * | 2-element Array{f32} on CPU:
 * |  100.0
 * |    0.0
 * | the first class wins everywhere: yes
 * | Dense(10 => 5), layer 1 of Chain: input has 9 features in (9, 64), expected 10
 * | wb_get: no "layers.2.slope" in Chain; it has layers.1.weight, layers.1.bias, layers.2.weight, layers.2.bias
 * */
#include <stdio.h>

#include <weber.h>

static void print_sizes(const char *name, const wb_array *x) {
    printf("%s is (", name);
    for (int d = 0; d < wb_ndim(x); d++) printf(d ? ", %lld" : "%lld", (long long)wb_size(x, d));
    printf(")\n");
}

int main(void) {
    wb_scope_open();
    wb_seed(1);

    wb_layer *d = wb_dense(10, 5, wb_sigmoid);
    wb_show(d);
    print_sizes("weight", wb_get(d, "weight"));
    wb_free(d);

    /* a maker that takes layers owns them: one wb_free for the whole model */
    wb_layer *m = wb_chain(wb_dense(10, 5, wb_sigmoid), wb_dense(5, 2), wb_fn(wb_softmax));
    wb_show(m);
    printf("%lld parameters\n", (long long)wb_parameter_count(m));

    /* a batch of 64: the last dimension counts observations */
    wb_array *y = wb_apply(m, wb_uniform(WB_F32, 10, 64));
    print_sizes("y", y);
    printf("probabilities sum to one: %s\n",
           wb_approx(wb_sum_dims(y, 0), wb_ones(WB_F32, 1, 64), 1e-5, 0, NULL, 0) ? "yes" : "no");

    /* one parameter by its path, replaced by numbers of our own */
    wb_set(m, "layers.2.bias", wb_vector(100, 0));
    wb_show(wb_get(m, "layers.2.bias"));
    printf("the first class wins everywhere: %s\n",
           wb_item(wb_sum(wb_onecold(wb_apply(m, wb_uniform(WB_F32, 10, 64))))) == 0 ? "yes"
                                                                                     : "no");

    /* messages name the layer, its place, and the sizes */
    char message[512];
    wb_apply(m, wb_zeros(WB_F32, 9, 64));
    wb_take_error(message, sizeof message);
    printf("%s\n", message);
    wb_get(m, "layers.2.slope");
    wb_take_error(message, sizeof message);
    printf("%s\n", message);

    wb_free(m);
    wb_scope_close();
    return wb_report("02_dense_chain");
}
