/* Models taken apart and put together: the arrays of a trained model go into a longer one, all
 * parameters become one vector, and parameters and states stand beside the model.
 *
 * | layers.1  Dense 2080
 * | layers.2  BatchNorm 64
 * | layers.3  Dropout 0
 * | layers.4  Dense 330
 * | the same results: yes
 * | 2474 numbers, halved: the norm is 0.500 of what it was
 * | running mean: 0.0000 in the model, 0.0000 in st, 0.1000 in the next states
 */
#include <stdio.h>
#include <string.h>

#include <weber.h>

/* What is new in the longer model takes no part: the others meet in order. */
static bool was_there(void *user, const wb_load_layer *layer) {
    (void)user;
    return !layer->type || strcmp(layer->type, "Dropout") != 0;
}

static double first(wb_layer *model, const char *path) { return wb_at(wb_get(model, path), 0); }

int main(void) {
    wb_scope_open();
    wb_layer *trained = wb_chain(wb_dense(64, 32), wb_batchnorm(32), wb_dense(32, 10));
    wb_layer *longer =
        wb_chain(wb_dense(64, 32), wb_batchnorm(32), wb_dropout(0.5), wb_dense(32, 10));
    (void)wb_load_from(longer, trained, .layers = was_there);
    for (wb_module m = {0}; wb_next_module(longer, &m);)
        if (*m.path)
            printf("%s  %s %lld\n", m.path, m.type, (long long)wb_parameter_count(m.layer));

    wb_array *x = wb_normal(WB_F32, 64, 5);
    wb_array *apart = wb_sub(wb_apply(longer, x), wb_apply(trained, x));
    printf("the same results: %s\n", wb_item(wb_maximum(wb_abs(apart))) == 0 ? "yes" : "no");

    wb_array *flat = wb_destructure(longer);
    wb_layer *half = wb_rebuild(longer, wb_mul_number(flat, 0.5));
    const double share = wb_item(wb_norm(wb_destructure(half), 2)) / wb_item(wb_norm(flat, 2));
    printf("%lld numbers, halved: the norm is %.3f of what it was\n", (long long)wb_count(flat),
           share);

    /* the model as a function of its arrays: nothing in it changes */
    wb_layer *ps = wb_parameter_tree(longer), *st = wb_state_tree(longer), *next;
    (void)wb_set(ps, "layers.1.bias", wb_ones(WB_F32, 32));
    (void)wb_training(true);
    (void)wb_apply_tree(longer, wb_zeros(WB_F32, 64, 5), ps, st, &next);
    (void)wb_training(false);
    printf("running mean: %.4f in the model, %.4f in st, %.4f in the next states\n",
           first(longer, "layers.2.μ"), first(st, "layers.2.μ"), first(next, "layers.2.μ"));

    (void)wb_draw_model("longer.dot", longer, {{64, 5}}); /* longer.svg, where Graphviz is */
    wb_free(ps), wb_free(st), wb_free(next);
    wb_free(trained), wb_free(longer), wb_free(half);
    wb_scope_close();
    return wb_report("surgery");
}
