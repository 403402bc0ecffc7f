/* y = x^3 learnt by several processes: the guide's program for DistributedUtils.
 *
 * $ mpiexec -n 3 ./30_distributed    prints the same, "by MPI" and without [0]
 * $ weber run -n 3 ./30_distributed
 * | [0] 3 ranks by local, 769 parameters
 * | [0] the loss fell to a fifth or less: yes
 *
 * Each process trains on its share of the data; the steps are those of one process over all of it.
 * The guide has it in Julia, with Flux 0.14; here on the CPU:
 *
 *     using Flux, MPI, Optimisers, Statistics, Zygote
 *     DistributedUtils.initialize(MPIBackend)
 *     backend = DistributedUtils.get_distributed_backend(MPIBackend)
 *     model = Chain(Dense(1 => 256, tanh), Dense(256 => 1))
 *     x = rand(Float32, 1, 16)
 *     y = x .^ 3
 *     data = DistributedUtils.DistributedDataContainer(backend, x)
 *     model = DistributedUtils.synchronize!!(backend, DistributedUtils.FluxDistributedModel(model);
 *                                            root=0)
 *     opt = DistributedUtils.DistributedOptimizer(backend, Optimisers.Adam(0.001f0))
 *     st_opt = Optimisers.setup(opt, model)
 *     st_opt = DistributedUtils.synchronize!!(backend, st_opt; root=0)
 *     loss(model) = mean((model(x) .- y).^2)
 *     for epoch in 1:100
 *         global model, st_opt
 *         l, grad = Zygote.withgradient(loss, model)
 *         println("Epoch $epoch: Loss $l")
 *         st_opt, model = Optimisers.update(st_opt, model, grad[1])
 *     end */
#include <stdio.h>
#include <weber.h>

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

int main(void) {
    const int ranks = wb_total_workers();
    wb_seed(1); /* the same data on all ranks, of which each takes its share */
    wb_array *x = wb_uniform(WB_F32, 1, 16 * ranks), *y = wb_mul(x, wb_square(x));
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 16, .shard = true);
    wb_layer *model = wb_chain(wb_dense(1, 256, wb_tanh), wb_dense(256, 1));
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-3), model, .distributed = true);
    if (wb_rank() == 0)
        printf("%d ranks by %s, %lld parameters\n", ranks, wb_get_distributed_backend(NULL),
               (long long)wb_parameter_count(model));
    double first = 0, last = 0;
    for (int epoch = 1; epoch <= 100; epoch++) {
        wb_batch batch = {0};
        while (wb_next(data, &batch))
            last = wb_item(wb_train_step(loss, model, &batch, NULL, adam));
        if (epoch == 1) first = last;
    }
    if (wb_rank() == 0)
        printf("the loss fell to a fifth or less: %s\n", last <= first / 5 ? "yes" : "no");
    wb_free(adam), wb_free(model), wb_free(data);
    return wb_report("distributed");
}
