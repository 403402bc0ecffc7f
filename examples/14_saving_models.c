/* Models in files: saved, made again from the file alone, loaded into a model that there is.
 *
 *     @save "model.bson" model                 wb_save("model.bson", model)
 *     @load "model.bson" model                 model = wb_load_model("model.bson", "model")
 *     Flux.loadmodel!(model, source)           wb_load_from(model, source)
 *     Flux.state(model)                        wb_state(model)
 *
 * | structure: Chain(Conv((3, 3), 1 => 4, relu, pad=1), flatten, Dense(144 => 3))
 * | weight of layer 3: (3, 144)
 * | Chain(
 * |   Conv((3, 3), 1 => 4, relu, pad=1),    # 40 parameters
 * |   flatten,
 * |   Dense(144 => 3),                      # 435 parameters
 * | )                   # Total: 4 arrays, 475 parameters, 1900 bytes.
 * | the same results: yes
 * | the same results: yes
 * | wb_load_from: layers.head.weight is (1, 2) in the source, (9, 2) in the model
 * | the encoder's weight: yes
 * | back as it was: yes
 */
#include <stdio.h>
#include <string.h>

#include <weber.h>

static const char *yes_if(bool so) { return so ? "yes" : "no"; }

static bool same(wb_layer *a, wb_layer *b, wb_array *x) {
    return wb_approx(wb_apply(a, x), wb_apply(b, x), 0, 0, NULL, 0);
}

/* The structure stands in the file as text; the arrays are a tree, with Flux's names. */
static void look_inside(const char *path) {
    wb_file *file = wb_open(path);
    const wb_record *root = wb_file_root(file);
    printf("structure: %s\n", wb_record_text(wb_record_get(root, "model_structure")));
    wb_array *weight = wb_record_array(file, wb_record_get(root, "model.layers.3.weight"));
    printf("weight of layer 3: (%lld, %lld)\n", (long long)wb_size(weight, 0),
           (long long)wb_size(weight, 1));
    wb_free(file);
}

static bool is_encoder(void *user, const char *path) {
    (void)user;
    return strncmp(path, "layers.encoder.", strlen("layers.encoder.")) == 0;
}

int main(void) {
    wb_scope_open();
    wb_array *x = wb_ones(WB_F32, 6, 6, 1, 2);
    wb_layer *model =
        wb_chain(wb_conv({3, 3}, 1, 4, wb_relu, .pad = {1, 1}), wb_flatten(), wb_dense(144, 3));

    wb_save("model.bson", model);
    look_inside("model.bson");

    wb_layer *again = wb_load_model("model.bson", "model"); /* from the file alone */
    wb_show(again);
    printf("the same results: %s\n", yes_if(same(model, again, x)));

    wb_layer *fresh =
        wb_chain(wb_conv({3, 3}, 1, 4, wb_relu, .pad = {1, 1}), wb_flatten(), wb_dense(144, 3));
    wb_load("model.bson", fresh); /* into a model of the same structure */
    printf("the same results: %s\n", yes_if(same(model, fresh, x)));

    /* one model's arrays into another's, all or only some */
    wb_layer *pair = wb_chain_named({"encoder", wb_dense(4, 2, wb_tanh)}, {"head", wb_dense(2, 1)});
    wb_layer *other = wb_chain_named({"encoder", wb_dense(4, 2)}, {"head", wb_dense(2, 9)});
    wb_load_from(other, pair);
    char message[256];
    wb_take_error(message, sizeof message);
    printf("%s\n", message);
    wb_load_from(other, pair, .filter = is_encoder);
    printf("the encoder's weight: %s\n",
           yes_if(wb_approx(wb_get(pair, "layers.encoder.weight"),
                            wb_get(other, "layers.encoder.weight"), 0, 0, NULL, 0)));

    /* the arrays of a model by name, kept while the model goes on */
    wb_file *state = wb_state(pair);
    wb_set(pair, "layers.head.weight", wb_zeros(WB_F32, 1, 2));
    wb_load_from(pair, state);
    const double sum = wb_item(wb_sum(wb_abs(wb_get(pair, "layers.head.weight"))));
    printf("back as it was: %s\n", yes_if(sum > 0));

    wb_free(state), wb_free(model), wb_free(again), wb_free(fresh), wb_free(pair), wb_free(other);
    wb_scope_close();
    remove("model.bson");
    return wb_report("14_saving_models");
}
