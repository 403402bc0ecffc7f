// Headers and library are found and belong together, in C++17: a model is trained
// through the functions that C's macros stand for.
#include <weber.h>

#include <cstdint>
#include <iostream>

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *) {
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_layer *make_model() {
    wb_dense_desc wide{}, last{};
    wide.in = 1, wide.out = 8, wide.activation = wb_tanh;
    last.in = 8, last.out = 1;
    wb_layer *layers[] = {wb_dense_make(wide), wb_dense_make(last)};
    return wb_chain_make(2, layers);
}

static wb_status train(wb_layer *model, wb_array *x) {
    wb_loader_desc data{};
    data.x = x, data.y = wb_sin(x), data.batchsize = 16;
    wb_setup_desc setup{};
    setup.rule = wb_adam_make(wb_adam_desc{}), setup.model = model;
    wb_train_desc training{};
    training.loss = loss, training.model = model, training.epochs = 3;
    training.loader = wb_loader_make(data);
    training.optimiser = wb_setup_make(setup);
    const wb_status status = wb_train_make(training);
    wb_free(training.optimiser), wb_free(training.loader);
    return status;
}

int main() {
    wb_scope_open();
    const int64_t sizes[] = {1, 64};
    wb_layer *model = make_model();
    const wb_status status = train(model, wb_normal_make(WB_F32, 2, sizes));
    std::cout << "trained from C++: " << wb_status_text(status) << "\n";
    wb_free(model);
    wb_scope_close();
    return wb_report("uses_weber.cpp");
}
