/* Rule 20: a forked child begins threads of its own, whatever its parent's threads were doing. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "support/files.h"
#include "support/sanitized.h"
#include "support/support.h"

/* tsan allows no new threads in a forked child, and in asan's allocator it finds locks that threads
 * of its parent's hold for ever. */
#if defined(__SANITIZE_THREAD__)
#define CAN_FORK 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAN_FORK 0
#endif
#endif
#ifndef CAN_FORK
#define CAN_FORK !SANITIZED
#endif

enum { SERVERS = 4, FORKS = 60, MOST_SECONDS = 60 };

typedef struct server {
    wb_layer *model;
    char path[192];
    int failures;
} server;

static atomic_bool stop;

/* All that takes a lock: arrays, memory, devices, errors, files, reading. */
static void serve_once(const server *s) {
    wb_array *y = wb_apply(s->model, wb_uniform(WB_F32, 6, 5));
    float numbers[5];
    (void)wb_read_f32(y, numbers, 5);
    (void)wb_live();
    (void)wb_memory_status(wb_cpu_device());
    wb_memory_reclaim(wb_cpu_device());
    (void)wb_functional("OpenCL");
    (void)wb_save(s->path, s->model);
    wb_free(wb_load_model(s->path, NULL));
    wb_free(wb_clone(s->model));
}

static void *serve(void *context) {
    server *s = context;
    while (!atomic_load(&stop)) {
        (void)wb_scope_open();
        serve_once(s);
        (void)wb_scope_close();
        s->failures += wb_report("server");
    }
    wb_free(s->model);
    return NULL;
}

static wb_status draw(const wb_observation *o, void *user) {
    (void)user;
    wb_array *x = wb_normal(WB_F32, 6);
    return wb_read_f32(x, o->data[0], 6);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_square(wb_apply(model, batch->x)));
}

/* What the parent does too. */
static int train_and_save(wb_layer *model, wb_loader *data, wb_optimiser *o, const char *path) {
    (void)wb_train(.loss = loss, .model = model, .loader = data, .optimiser = o);
    (void)wb_item(wb_sum(wb_apply(model, wb_ones(WB_F32, 6, 300))));
    (void)wb_save(path, model);
    return wb_report("training");
}

static void children_of_serving_processes_train(void **state) {
    server servers[SERVERS] = {{.failures = 0}};
    pthread_t threads[SERVERS];
    (void)state;
    if (!CAN_FORK || wb_default_device() != wb_cpu_device()) skip(); /* a fork has no devices */
    wb_layer *model = wb_chain(wb_dense(6, 16, wb_relu), wb_dense(16, 1));
    wb_loader *data = wb_loader_new(.x = wb_zeros(WB_F32, 6, 1), .numobs = 64, .getobs = draw,
                                    .threads = 3, .batchsize = 8);
    wb_optimiser *o = wb_setup(wb_adam(), model);
    for (int i = 0; i < SERVERS; i++) {
        servers[i].model = wb_share(model);
        snprintf(servers[i].path, sizeof servers[i].path, "%s%d.npz", path_of("server"), i);
        assert_int_equal(pthread_create(&threads[i], NULL, serve, &servers[i]), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        assert_int_equal(train_and_save(model, data, o, path_of("parent.npz")), 0);
        const pid_t child = fork();
        if (child == 0) {
            (void)alarm(MOST_SECONDS);
            _exit(train_and_save(model, data, o, path_of("child.npz")));
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(servers[i].failures, 0);
    }
    wb_free(o), wb_free(data), wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(children_of_serving_processes_train)};
    return cmocka_run_group_tests_name("values/test_20_fork", tests, make_folder, drop_folder);
}
