/* A whole program for tests/formats/same_bytes: writes files of each format, whose bytes may not
 * depend on the machine. What is in them is exact everywhere: whole numbers, bits, random numbers
 * that no sum has gone over. */
#include <math.h>
#include <stdio.h>

#include <weber.h>

static wb_array *numbers(wb_dtype dtype) { return (wb_cast)(wb_iota(WB_F32, 1, 3, 4, 2), dtype); }

/* each type of array but bf16, which Julia has not, and numbers whose bits are easily lost */
static wb_layer *arrays(void) {
    static const float odd[] = {0.0f, -0.0f, 1e-45f,   -1.17549435e-38f, 3.40282347e+38f,
                                1.0f, -0.1f, INFINITY, -INFINITY,        NAN};
    return wb_tree_named({"f32", numbers(WB_F32)}, {"f64", numbers(WB_F64)},
                         {"f16", numbers(WB_F16)}, {"i32", numbers(WB_I32)},
                         {"i64", numbers(WB_I64)}, {"u8", numbers(WB_U8)},
                         {"bool", numbers(WB_BOOL)}, {"odd", wb_from(WB_F32, odd, 10)},
                         {"random", wb_uniform(WB_F32, 1000)});
}

static wb_layer *model(void) {
    return wb_chain(wb_conv({3, 3}, 1, 4, wb_relu, .pad = {1, 1}), wb_batchnorm(4), wb_flatten(),
                    wb_dense(64, 10, wb_tanh), wb_dropout(.p = 0.3));
}

static const char *in(const char *folder, const char *file) {
    static char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    return path;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : ".";
    wb_seed(1);
    (void)wb_scope_open();
    wb_layer *tree = arrays(), *net = model();
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.01), net);
    wb_loader *data =
        wb_loader_new(.x = wb_uniform(WB_F32, 4, 20), .batchsize = 3, .shuffle = true);
    (void)wb_save(in(folder, "model.safetensors"), net);
    (void)wb_save(in(folder, "arrays.safetensors"), tree);
    (void)wb_save_named(in(folder, "bf16.safetensors"), {"bf16", numbers(WB_BF16)});
    (void)wb_save(in(folder, "arrays.npz"), tree);
    (void)wb_save(in(folder, "array.npy"), wb_get(tree, "odd"));
    (void)wb_save_named(in(folder, "all.bson"), {"model", net}, {"arrays", tree}, {"adam", adam},
                        {"data", data}, {"random", wb_random_state()});
    (void)wb_save_named(in(folder, "all.npz"), {"model", net}, {"adam", adam}, {"data", data});
    wb_free(data), wb_free(adam), wb_free(net), wb_free(tree);
    const int failed = wb_report("write_files");
    (void)wb_scope_close();
    return failed;
}
