/* Models on a device: Dense, Chain, a struct of one's own, with one field that is left out.
 *
 *     d = fmap(cu, Dense(10 => 5, σ))          d = wb_gpu(cpu_d)      a new model; cpu_d stays
 *     m = Chain(...) |> gpu                    wb_move(device, m)     in place
 *     d.weight                                 wb_get(d, "weight")
 *     Flux.@functor ActorCritic                WB_FUNCTOR(ActorCritic, act, fields)
 *     Flux.@functor ActorCritic (actor,)       the others: WB_FIXED_FIELD, neither moved nor
 *                                              trained
 *     trainable(m) = (; m.actor)               the others: WB_STATE_FIELD, moved but not trained
 *
 * | Dense(10 => 5, sigmoid)  # 55 parameters
 * | weight and result are on the device: yes
 * | the first model is on the CPU: yes
 * | Chain, moved in place: on the device: yes
 * | probabilities sum to one: yes
 * | actor and critic are on the device: yes, scale on the CPU: yes
 * | 2×2 Array{f32} on CPU:
 * |  3.0  4.0
 * |  3.0  4.0
 * | wb_gradients_get: "critic" is not trainable
 * */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

typedef struct ActorCritic {
    wb_layer layer;
    wb_array *actor;
    wb_array *critic; /* left out of `trainable`: moved, not trained */
    wb_array *scale;  /* left out of the functor: stays where it is */
} ActorCritic;

static wb_array *act(wb_layer *layer, wb_array *x) {
    const ActorCritic *m = (const ActorCritic *)layer;
    return wb_add(wb_matmul(m->actor, x), m->critic);
}

WB_FUNCTOR(ActorCritic, act, WB_ARRAY_FIELD(ActorCritic, actor),
           WB_STATE_FIELD(ActorCritic, critic), WB_FIXED_FIELD(ActorCritic, scale));

static const char *yes(bool is_so) { return is_so ? "yes" : "no"; }

int main(void) {
    setenv("WEBER_DEVICE", "checked", 0); /* leave this out to take the GPU */
    const wb_device *device = wb_get_device(), *cpu = wb_cpu_device();
    wb_scope_open();

    wb_layer *cpu_d = wb_dense(10, 5, wb_sigmoid), *d = wb_to(device, cpu_d);
    wb_array *y = wb_apply(d, wb_to(device, wb_uniform(WB_F32, 10)));
    wb_show(cpu_d); /* wb_show(d) works as well, and says where it is */
    printf("weight and result are on the device: %s\n",
           yes(wb_device_of(wb_get(d, "weight")) == device && wb_device_of(y) == device));
    printf("the first model is on the CPU: %s\n", yes(wb_device_of(cpu_d) == cpu));
    wb_free(cpu_d), wb_free(d);

    wb_layer *m = wb_chain(wb_dense(10, 5, wb_sigmoid), wb_dense(5, 2), wb_fn(wb_softmax));
    wb_move(device, m);
    y = wb_apply(m, wb_to(device, wb_uniform(WB_F32, 10, 64)));
    printf("Chain, moved in place: on the device: %s\n", yes(wb_device_of(m) == device));
    printf("probabilities sum to one: %s\n",
           yes(wb_approx(wb_cpu(wb_sum_dims(y, 0)), wb_ones(WB_F32, 1, 64), 1e-5, 0, NULL, 0)));
    wb_free(m);

    ActorCritic *ac = wb_new(ActorCritic);
    ac->actor = wb_keep(wb_ones(WB_F32, 2, 2));
    ac->critic = wb_keep(wb_ones(WB_F32, 2));
    ac->scale = wb_keep(wb_ones(WB_F32, 2));
    wb_move(device, ac);
    printf("actor and critic are on the device: %s, scale on the CPU: %s\n",
           yes(wb_device_of(ac) == device), yes(wb_device_of(ac->scale) == cpu));
    wb_array *l = wb_sum(wb_apply(&ac->layer, wb_to(device, wb_vector(3, 4))));
    wb_gradients *grads = wb_gradient(l, &ac->layer);
    wb_show(wb_cpu(wb_gradients_get(grads, "actor")));
    char message[128];
    wb_gradients_get(grads, "critic");
    wb_take_error(message, sizeof message);
    printf("%s\n", message);
    wb_free(ac);
    wb_scope_close();
    return wb_report("08_gpu_model");
}
