/* What users do by mistake, each in a process of its own: it ends by itself, and what it says names
 * the mistake. Nothing here is a crash, in release and debug builds and under the sanitizers. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weber.h>

#include "base/switch.h"
#include "support/support.h"

typedef struct ActorCritic {
    wb_layer layer;
    wb_layer *actor;
    wb_array *critic;
} ActorCritic;

static wb_array *act(wb_layer *layer, wb_array *x) {
    ActorCritic *m = (ActorCritic *)(void *)layer;
    return wb_mul(wb_apply(m->actor, x), m->critic);
}

WB_FUNCTOR(ActorCritic, act, WB_CHILD_FIELD(ActorCritic, actor),
           WB_ARRAY_FIELD(ActorCritic, critic));

static ActorCritic *actor_critic(wb_array *critic) {
    ActorCritic *m = wb_new(ActorCritic);
    m->actor = wb_dense(2, 2);
    m->critic = critic;
    return m;
}

static wb_array *sum_of(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_apply(model, batch->x));
}

/* An array whose scope has closed. */
static wb_array *stale(void) {
    wb_scope_open();
    wb_array *x = wb_exp(wb_vector(1, 2));
    (void)wb_scope_close();
    return x;
}

/* ---- layers ---- */

static void shared_twice(void) {
    wb_layer *d = wb_dense(2, 2), *chain = wb_chain(d, d);
    printf("%lld parameters\n", (long long)wb_parameter_count(chain));
    wb_free(chain);
}

static void in_a_tree_twice(void) {
    wb_layer *d = wb_dense(2, 2), *tree = wb_tree(d, d);
    printf("%lld parameters\n", (long long)wb_parameter_count(tree));
    wb_free(tree);
}

static void in_two_chains(void) {
    wb_layer *d = wb_dense(2, 2), *first = wb_chain(d), *second = wb_chain(wb_dense(2, 2), d);
    printf("%s\n", second ? "made" : "refused");
    wb_free(first);
}

static void part_freed_before_the_chain(void) {
    wb_layer *d = wb_dense(2, 2), *chain = wb_chain(d, wb_fn(wb_tanh));
    wb_free(d);
    wb_free(chain);
}

static void part_freed_before_the_struct(void) {
    ActorCritic *m = actor_critic(wb_keep(wb_ones(WB_F32, 2)));
    wb_free(m->actor);
    wb_free(m);
}

static void freed_twice(void) {
    wb_layer *chain = wb_chain(wb_dense(2, 2));
    wb_free(chain);
    wb_free(chain);
}

static void applied_after_it_was_freed(void) {
    wb_layer *chain = wb_chain(wb_dense(2, 2));
    wb_free(chain);
    (void)wb_apply(chain, wb_vector(1, 2));
}

static void struct_used_after_its_child_was_freed(void) {
    ActorCritic *m = actor_critic(wb_keep(wb_ones(WB_F32, 2)));
    wb_free(m->actor);
    (void)wb_parameter_count(&m->layer);
    (void)wb_report("counting");
    (void)wb_apply(&m->layer, wb_vector(1, 2));
}

static wb_array *nothing(wb_layer *layer, wb_array *x) {
    (void)layer, (void)x;
    return NULL;
}
typedef struct Nothing {
    wb_layer layer;
    int number;
} Nothing;
WB_FUNCTOR(Nothing, nothing, WB_VALUE_FIELD(Nothing, number));

static void forward_without_a_result(void) {
    wb_layer *chain = wb_chain(wb_fn(wb_tanh), &wb_new(Nothing)->layer);
    (void)wb_apply(chain, wb_vector(1, 2));
    wb_free(chain);
}

/* ---- arrays that were not kept ---- */

#define NOT_KEPT                                                                                   \
    " must hold an array by wb_keep, got one that is not held; call wb_keep once for each field"

typedef struct Couple {
    wb_layer layer;
    wb_array *a, *b;
} Couple;
WB_FUNCTOR(Couple, NULL, WB_ARRAY_FIELD(Couple, a), WB_ARRAY_FIELD(Couple, b));

static void not_kept_then_set_up(void) {
    wb_scope_open();
    ActorCritic *m = actor_critic(wb_ones(WB_F32, 2));
    (void)wb_scope_close();
    (void)wb_setup(wb_adam(), &m->layer);
}

static void not_kept_then_applied(void) {
    wb_scope_open();
    ActorCritic *m = actor_critic(wb_ones(WB_F32, 2));
    (void)wb_scope_close();
    (void)wb_apply(&m->layer, wb_vector(1, 2));
}

static void not_kept_and_used_at_once(void) {
    ActorCritic *m = actor_critic(wb_ones(WB_F32, 2));
    (void)wb_apply(&m->layer, wb_vector(1, 2));
}

static void not_kept_then_freed(void) {
    wb_scope_open();
    ActorCritic *m = actor_critic(wb_ones(WB_F32, 2));
    wb_free(m);
    (void)wb_scope_close();
}

static void not_kept_then_freed_after_its_scope(void) {
    wb_scope_open();
    ActorCritic *m = actor_critic(wb_ones(WB_F32, 2));
    (void)wb_scope_close();
    wb_free(m);
}

static void kept_once_for_two_fields(void) {
    wb_scope_open();
    Couple *m = wb_new(Couple);
    m->a = m->b = wb_keep(wb_ones(WB_F32, 2));
    wb_free(m);
    (void)wb_scope_close();
}

static void used_after_its_scope(void) { (void)wb_add(wb_vector(1, 2), stale()); }
static void kept_after_its_scope(void) { (void)wb_keep(stale()); }
static void shown_after_its_scope(void) { (void)wb_show(stale()); }
static void freed_after_its_scope(void) { wb_free(stale()); }
static void read_end_after_a_failure(void) {
    wb_array *x = wb_keep(wb_vector(1, 2));
    wb_read_end(x), wb_read_end(x), wb_read_end(NULL);
    const float *numbers = wb_read_begin(x);
    printf("%g", (double)numbers[1]);
    wb_read_end(x), wb_read_end(x);
    printf(" %g\n", wb_item(wb_sum(x)));
    wb_free(x);
}

static void set_after_its_scope(void) {
    ActorCritic *m = actor_critic(wb_keep(wb_ones(WB_F32, 2)));
    (void)wb_set(&m->layer, "critic", stale());
    wb_free(m);
}

/* ---- other objects ---- */

static void gradients_after_their_scope(void) {
    wb_layer *model = wb_chain(wb_dense(2, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = {.x = wb_keep(wb_vector(1, 2))};
    wb_gradients *g;
    wb_scope_open();
    (void)wb_withgradient(sum_of, model, &batch, NULL, &g);
    (void)wb_scope_close();
    (void)wb_update(o, model, g);
    (void)wb_report("update");
    (void)wb_gradients_get(g, "layers.1.weight");
}

static void optimiser_after_it_was_freed(void) {
    wb_layer *model = wb_chain(wb_dense(2, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = {.x = wb_vector(1, 2)};
    wb_free(o);
    (void)wb_train_step(sum_of, model, &batch, NULL, o);
}

static void loader_after_it_was_freed(void) {
    wb_loader *loader = wb_loader_new(.x = wb_vector(1, 2));
    wb_batch batch = {0};
    wb_free(loader);
    (void)wb_next(loader, &batch);
}

static void loader_over_released_arrays(void) { (void)wb_loader_new(.x = stale()); }

static void one_object_for_another(void) {
    wb_layer *model = wb_chain(wb_dense(2, 2));
    wb_loader *loader = wb_loader_new(.x = wb_vector(1, 2));
    const wb_batch batch = {.x = wb_vector(1, 2)};
    (void)wb_train_step(sum_of, model, &batch, NULL, (wb_optimiser *)(void *)loader);
}

/* ---- numbers that mean something else ---- */

static void show_sizes(wb_array *x) {
    printf("(");
    for (int d = 0; x && d < wb_ndim(x); d++)
        printf("%s%lld", d ? " " : "", (long long)wb_size(x, d));
    printf(")\n");
}

static void one_number_for_two_dimensions(void) {
    wb_array *image = wb_ones(WB_F32, 9, 9, 1, 1);
    wb_layer *stride = wb_conv({3, 3}, 1, 1, .stride = {2}),
             *dilation = wb_conv({3, 3}, 1, 1, .dilation = {2});
    show_sizes(wb_apply(stride, image));
    show_sizes(wb_apply(dilation, image));
    show_sizes(wb_maxpool_op(image, .kernel = {3}));
    wb_free(stride), wb_free(dilation);
}

static void padding_for_one_dimension(void) {
    (void)wb_conv({3, 3}, 1, 1, .pad = {1});
    (void)wb_report("conv");
    (void)wb_maxpool({2, 2, 2}, .pad = {1});
    (void)wb_report("pool");
    wb_array *image = wb_ones(WB_F32, 9, 9, 1, 1);
    show_sizes(wb_maxpool_op(image, .kernel = {3}, .stride = {1}, .pad = WB_EACH(1, 0)));
    (void)wb_maxpool_op(image, .kernel = {3}, .pad = {1});
}

static void rates_of_zero(void) {
    wb_layer *model = wb_tree(wb_ones(WB_F32, 2));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0, .beta1 = 0), model);
    (void)wb_show(o);
    wb_free(o), wb_free(model);
}

/* ---- errors that were never read ---- */

static void error_at_the_end(void) {
    (void)wb_add(wb_vector(1, 2), wb_vector(1, 2, 3));
    exit(0);
}

static void *fail_in_a_thread(void *unused) {
    (void)wb_add(wb_vector(1, 2), wb_vector(1, 2, 3));
    return unused;
}

static void error_at_the_end_of_a_thread(void) {
    pthread_t thread;
    (void)pthread_create(&thread, NULL, fail_in_a_thread, NULL);
    (void)pthread_join(thread, NULL);
}

static void error_that_was_read(void) {
    (void)wb_add(wb_vector(1, 2), wb_vector(1, 2, 3));
    printf("read: %s\n", wb_error_message());
    (void)fflush(stdout);
    exit(0);
}

static void training_with_an_error_pending(void) {
    wb_layer *model = wb_chain(wb_dense(2, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_loader *loader = wb_loader_new(.x = wb_ones(WB_F32, 2, 4));
    (void)wb_add(wb_vector(1, 2), wb_vector(1, 2, 3));
    (void)wb_train(.loss = sum_of, .model = model, .loader = loader, .optimiser = o);
}

static void a_file_that_need_not_be_there(void) {
    wb_layer *model = wb_chain(wb_dense(2, 2));
    printf("%s, ", wb_try(wb_load("/no/such/file.bson", model)) ? "loaded" : "begun anew");
    printf("%s\n", wb_failed() ? "failed" : "nothing pending");
    wb_free(model);
}

/* ---- threads ---- */

typedef struct shared {
    wb_layer *model;
    wb_array *x;
    wb_optimiser *optimiser;
    wb_loader *loader;
    double result;
} shared;

static void on_a_thread(void *(*work)(void *), shared *s) {
    pthread_t thread;
    (void)pthread_create(&thread, NULL, work, s);
    (void)pthread_join(thread, NULL);
}

static void *apply_on_a_thread(void *context) {
    shared *s = context;
    (void)wb_apply(s->model, wb_vector(1, 2));
    (void)wb_report("apply");
    (void)wb_add(wb_vector(1, 2), s->x);
    (void)wb_report("add");
    wb_batch batch = {0};
    (void)wb_next(s->loader, &batch);
    (void)wb_report("next");
    return NULL;
}

static void used_by_two_threads(void) {
    shared s = {.model = wb_chain(wb_dense(2, 2)),
                .x = wb_keep(wb_vector(1, 2)),
                .loader = wb_loader_new(.x = wb_ones(WB_F32, 2, 4))};
    on_a_thread(apply_on_a_thread, &s);
    wb_free(s.model), wb_free(s.x), wb_free(s.loader);
}

static void *free_on_a_thread(void *context) {
    shared *s = context;
    wb_free(s->model), wb_free(s->x);
    return NULL;
}

static void freed_by_another_thread(void) {
    const wb_live_counts before = wb_live();
    shared s = {.model = wb_chain(wb_dense(2, 2)), .x = wb_keep(wb_ones(WB_F32, 3))};
    (void)wb_eval(s.x);
    on_a_thread(free_on_a_thread, &s);
    wb_scope_open(); /* the next call of the owner */
    (void)wb_scope_close();
    printf("%lld objects left\n", (long long)(wb_live().objects - before.objects));
}

static void *train_on_a_thread(void *context) {
    shared *s = context;
    (void)wb_train(.loss = sum_of, .model = s->model, .loader = s->loader,
                   .optimiser = s->optimiser, .epochs = 2);
    s->result = wb_item(wb_sum(wb_get(s->model, "layers.1.bias")));
    wb_free(s->optimiser), wb_free(s->loader), wb_free(s->model);
    (void)wb_report("training");
    return NULL;
}

/* Built and begun in one thread, trained on in another: as if it had been one. */
static void handed_over(void) {
    double results[2];
    for (int pass = 0; pass < 2; pass++) {
        wb_seed(3);
        shared s = {.model = wb_chain(wb_dense(2, 2))};
        s.loader = wb_loader_new(.x = wb_ones(WB_F32, 2, 4), .batchsize = 2);
        s.optimiser = wb_setup(wb_adam(.eta = 0.1), s.model);
        (void)wb_train(.loss = sum_of, .model = s.model, .loader = s.loader,
                       .optimiser = s.optimiser);
        if (pass == 0)
            (void)train_on_a_thread(&s);
        else if (wb_hand_over(s.optimiser) == WB_OK && wb_hand_over(s.loader) == WB_OK)
            on_a_thread(train_on_a_thread, &s);
        results[pass] = s.result;
    }
    printf("%s\n", results[0] == results[1] && results[0] < 0 ? "the same" : "another result");
}

static void *apply_shared(void *context) {
    shared *s = context;
    s->result = wb_item(wb_sum(wb_apply(s->model, wb_ones(WB_F32, 2))));
    wb_free(s->model);
    (void)wb_report("apply");
    return NULL;
}

static void shared_model(void) {
    wb_layer *model = wb_chain(wb_dense(2, 2));
    const double here = wb_item(wb_sum(wb_apply(model, wb_ones(WB_F32, 2))));
    shared s = {.model = wb_share(model)};
    on_a_thread(apply_shared, &s);
    printf("%s\n", s.result == here ? "the same" : "another result");
    wb_free(model);
}

/* A process that has computed forks: the child trains, too, and saves. */
static void forked_after_computing(void) {
    wb_layer *model = wb_chain(wb_dense(200, 300), wb_dense(300, 1));
    wb_loader *loader = wb_loader_new(.x = wb_ones(WB_F32, 200, 256), .batchsize = 64);
    wb_optimiser *o = wb_setup(wb_adam(), model);
    (void)wb_train(.loss = sum_of, .model = model, .loader = loader, .optimiser = o);
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/weber-forked-%d.bson", (int)getpid());
    (void)fflush(stdout);
    const pid_t child = fork();
    const wb_status status =
        wb_train(.loss = sum_of, .model = model, .loader = loader, .optimiser = o);
    if (child == 0) {
        const bool saved = status == WB_OK && wb_save(path, model) == WB_OK;
        _exit(saved ? 0 : 1 + wb_report("child"));
    }
    int ended;
    (void)waitpid(child, &ended, 0);
    const bool same = WIFEXITED(ended) && WEXITSTATUS(ended) == 0 && status == WB_OK;
    printf("%s\n", same && wb_load(path, model) == WB_OK ? "both ended" : "one failed");
    (void)unlink(path);
}

static void device_in_a_forked_process(void) {
    (void)setenv("WEBER_DEVICE", "checked", 1);
    wb_array *x = wb_keep(wb_to(wb_get_device(), wb_ones(WB_F32, 3)));
    (void)wb_eval(x);
    if (fork() == 0) {
        (void)wb_item(wb_sum(x));
        (void)wb_report("child");
        _exit(0);
    }
    (void)wait(NULL);
    printf("%g\n", wb_item(wb_sum(x)));
    wb_free(x);
}

/* ---- what was never freed ---- */

static void nothing_is_freed(void) {
    (void)setenv("WEBER_DEBUG", "leak", 1);
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_dense(3, 1));
    (void)wb_setup(wb_adam(), model);
    (void)wb_keep(wb_matmul(wb_ones(WB_F32, 4, 2), wb_ones(WB_F32, 2, 5)));
    exit(0);
}

static wb_array *sum_of_model(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_apply(model, batch->x));
}

/* The gradients are the thread's, and hold the model. */
static void all_is_freed_but_gradients(void) {
    (void)setenv("WEBER_DEBUG", "leak", 1);
    wb_layer *model = wb_dense(2, 3);
    wb_gradients *gradients;
    const wb_batch batch = {.x = wb_ones(WB_F32, 2)};
    (void)wb_withgradient(sum_of_model, model, &batch, NULL, &gradients);
    wb_free(model);
    exit(0);
}

/* The message ends with the command that prints the lines of the calls; it is run. */
static void a_mistake_with_a_place(void) {
    (void)setenv("WEBER_DEBUG", "where", 1);
    (void)wb_add(wb_vector(1, 2), wb_vector(1, 2, 3));
    const char *message = wb_error_message(), *command = strstr(message, "called at: ");
    printf("%s\n", command ? message : "no place");
    (void)fflush(stdout);
    if (command &&
        system(command + strlen("called at: ")) != 0) /* no addr2line, or for another machine */
        printf("a_mistake_with_a_place at\n");
    wb_clear_error();
}

static void unknown_words(void) {
    (void)setenv("WEBER_DEBUG", "nan,leaks", 1);
    (void)setenv("WEBER_NUM_THREADS", "-4", 1);
    wb_check_variables();
}

static void all_is_freed(void) {
    (void)setenv("WEBER_DEBUG", "leak", 1);
    ActorCritic *m = actor_critic(wb_keep(wb_ones(WB_F32, 2)));
    wb_array *x = wb_keep(wb_ones(WB_F32, 2));
    (void)wb_apply(&m->layer, x);
    wb_free(m), wb_free(x);
    exit(0);
}

static const struct row {
    const char *name;
    void (*make)(void);
    const char *said[2]; /* on stdout or stderr; NULL: no more */
} rows[] = {
    {"a layer stands twice in a chain", shared_twice, {"6 parameters"}},
    {"a layer stands twice in a tree", in_a_tree_twice, {"6 parameters"}},
    {"a layer of one chain is put into another",
     in_two_chains,
     {"refused", "wb_chain: layer 2, Dense(2 => 2), belongs to another container already: "
                 "wb_keep_layer(layer) shares it"}},
    {"a layer is freed before the chain that owns it",
     part_freed_before_the_chain,
     {"wb_free: Dense(2 => 2) belongs to a container, an optimiser or gradients"}},
    {"a layer is freed before the struct that owns it",
     part_freed_before_the_struct,
     {"wb_free: ActorCritic.actor was freed before the ActorCritic that owns it"}},
    {"a model is freed twice", freed_twice, {"wb_free: the Chain was released already"}},
    {"a model is applied after it was freed",
     applied_after_it_was_freed,
     {"wb_apply: the layer was released already"}},
    {"a struct is used after its layer was freed",
     struct_used_after_its_child_was_freed,
     {"ActorCritic: the layer was released already", "wb_apply: the layer was released already"}},
    {"a forward function returns NULL and no error",
     forward_without_a_result,
     {"Nothing, layer 2 of Chain: the forward function returned NULL without an error"}},
    {"a struct's array was not kept: setup", not_kept_then_set_up, {"ActorCritic.critic" NOT_KEPT}},
    {"a struct's array was not kept: apply",
     not_kept_then_applied,
     {"ActorCritic.critic" NOT_KEPT}},
    {"a struct's array was not kept: within its scope",
     not_kept_and_used_at_once,
     {"ActorCritic.critic" NOT_KEPT}},
    {"a struct's array was not kept: freed", not_kept_then_freed, {"ActorCritic.critic" NOT_KEPT}},
    {"a struct's array was not kept: freed after its scope",
     not_kept_then_freed_after_its_scope,
     {"ActorCritic.critic" NOT_KEPT}},
    {"an array is kept once for two fields", kept_once_for_two_fields, {"Couple.b" NOT_KEPT}},
    {"an array is used after its scope",
     used_after_its_scope,
     {"add: an array was released: its scope was closed"}},
    {"an array is kept after its scope",
     kept_after_its_scope,
     {"wb_keep: an array was released: its scope was closed"}},
    {"an array is shown after its scope",
     shown_after_its_scope,
     {"wb_show: the array was released already"}},
    {"an array is freed after its scope",
     freed_after_its_scope,
     {"wb_free: the array was released already"}},
    {"a reading is ended that did not begin", read_end_after_a_failure, {"2 3"}},
    {"an array is put into a model after its scope",
     set_after_its_scope,
     {"wb_set: an array was released: its scope was closed"}},
    {"gradients are used after their scope",
     gradients_after_their_scope,
     {"wb_update: the gradients object was released already",
      "wb_gradients_get: the gradients object was released already"}},
    {"an optimiser is used after it was freed",
     optimiser_after_it_was_freed,
     {"wb_train_step: the optimiser was released already"}},
    {"a loader is used after it was freed",
     loader_after_it_was_freed,
     {"wb_next: the loader was released already"}},
    {"a loader is made of an array that was released",
     loader_over_released_arrays,
     {"loader: an array was released: its scope was closed"}},
    {"an error is pending when the process ends",
     error_at_the_end,
     {"weber error: an error was never read: add: "}},
    {"an error is pending when its thread ends",
     error_at_the_end_of_a_thread,
     {"weber error: an error was never read: add: "}},
    {"an error that was read is not told again", error_that_was_read, {"read: add: "}},
    {"training begins while an error is pending",
     training_with_an_error_pending,
     {"wb_train: not run: an earlier error is pending: add: "}},
    {"a file may be missing", a_file_that_need_not_be_there, {"begun anew, nothing pending"}},
    {"nothing is freed, and WEBER_DEBUG=leak asks what",
     nothing_is_freed,
     {"leak: array (4, 5) of f32, made by matmul, was kept and never freed",
      "leak: optimiser, made by wb_setup, was never freed"}},
    {"all is freed, and WEBER_DEBUG=leak asks what", all_is_freed, {""}},
    {"all but gradients is freed, and WEBER_DEBUG=leak asks what",
     all_is_freed_but_gradients,
     {""}},
    {"WEBER_DEBUG=where asks where it was called",
     a_mistake_with_a_place,
     {"do not broadcast; called at: ", "a_mistake_with_a_place at"}},
    {"variables have words that nobody knows",
     unknown_words,
     {"WEBER_DEBUG: unknown word \"leaks\"; expected check, leak, mem, nan, plan, where",
      "WEBER_NUM_THREADS must be a positive number, got \"-4\""}},
    {"a model, an array and a loader are used by two threads",
     used_by_two_threads,
     {"wb_apply: the Chain belongs to another thread: call wb_share",
      "(2) belongs to another thread"}},
    {"what belongs to one thread is freed by another", freed_by_another_thread, {"0 objects left"}},
    {"what one thread built another one trains", handed_over, {"the same"}},
    {"a shared model is used by another thread", shared_model, {"the same"}},
    {"a process forks after it has computed", forked_after_computing, {"both ended"}},
    {"a forked process uses a device of its parent's",
     device_in_a_forked_process,
     {"checked(0) failed", "this process is a fork of the one that opened it"}},
    {"one number stands for two dimensions",
     one_number_for_two_dimensions,
     {"(4 4 1 1)\n(5 5 1 1)\n(3 3 1 1)"}},
    {"a padding is given for one of two dimensions",
     padding_for_one_dimension,
     {"Conv: pad is given for 1 of 2 dimensions: write WB_ALL(1) or WB_EACH(1, 0)",
      "MaxPool: pad is given for 1 of 3 dimensions: write WB_ALL(1) or WB_EACH(1, 0, 0)"}},
    {"a rate and a momentum of zero", rates_of_zero, {"eta=0", "beta"}},
    {"a loader stands where an optimiser belongs",
     one_object_for_another,
     {"wb_train_step: the optimiser is a loader"}},
};

/* The mistake in a process of its own, whose output goes to the pipe. */
static void run_child(const struct row *row, int output) {
    (void)dup2(output, STDOUT_FILENO);
    (void)dup2(output, STDERR_FILENO);
    row->make();
    const int status = wb_report("mistake");
    (void)fflush(stdout);
    _exit(status);
}

static void ends_by_itself_and_says_so(void **state) {
    const struct row *row = *state;
    int ends[2], status;
    char said[4096];
    size_t used = 0;
    assert_int_equal(pipe(ends), 0);
    (void)fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) run_child(row, ends[1]);
    (void)close(ends[1]);
    for (ssize_t more = 1; more > 0; used += (size_t)more)
        if ((more = read(ends[0], said + used, sizeof said - 1 - used)) < 0) more = 0;
    said[used] = 0;
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("signal %d; said: %s", WTERMSIG(status), said);
    if (WEXITSTATUS(status) > 1) fail_msg("status %d: %s", WEXITSTATUS(status), said);
    for (int i = 0; i < 2 && row->said[i]; i++)
        if (!strstr(said, row->said[i])) fail_msg("\"%s\" is not in: %s", row->said[i], said);
    const bool is_freed = row->make == all_is_freed || row->make == all_is_freed_but_gradients;
    if (is_freed && strstr(said, "leak")) fail_msg("told: %s", said);
    if (row->make == error_that_was_read && strstr(said, "never read")) fail_msg("told: %s", said);
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS];
    for (int i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, ends_by_itself_and_says_so, NULL, NULL,
                                       (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests_name("mistakes", tests, NULL, NULL);
}
