/* src/device/registry.c: many threads ask at once, and all get the same. */
#include <pthread.h>

#include "device/plugin.h"
#include "support/stage.h"

enum { THREADS = 8 };

typedef struct answers {
    pthread_t thread;
    const wb_device *first, *second, *chosen;
    const wb_device *const *all;
    const char *const *names;
    int failures;
} answers;

static pthread_barrier_t start;

static void *ask(void *context) {
    answers *a = context;
    (void)pthread_barrier_wait(&start);
    for (int i = 0; i < 50; i++) {
        a->failures += wb_use("OpenCL") != WB_OK;
        a->second = wb_get_device("CUDA", 1);
        a->chosen = wb_get_device();
        a->first = wb_get_device("CUDA", 0);
        a->names = wb_supported_devices();
        a->all = wb_devices("CUDA");
        a->failures += wb_functional("Metal") || !wb_reason()[0] || wb_device_count("CUDA") != 2;
        a->failures += !a->all || a->all[0] != a->first || a->all[1] != a->second || a->all[2];
    }
    return NULL;
}

static void all_threads_get_the_same_devices(void) {
    answers threads[THREADS] = {{.failures = 0}};
    stage_install("cuda", "plugins/libweber_cuda.so");
    stage_install("opencl", "plugins/libweber_opencl.so");
    (void)setenv("FAKE_CUDA_COUNT", "2", 1);
    expect(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i].thread, NULL, ask, &threads[i]) == 0);
    for (int i = 0; i < THREADS; i++) expect(pthread_join(threads[i].thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        expect(threads[i].failures == 0);
        expect(threads[i].first == threads[0].first && threads[i].second == threads[0].second);
        expect(threads[i].chosen == threads[0].first && threads[i].all == threads[0].all);
    }
    expect(wb_plugins_opened() == 2);
}

static void *reset_and_ask(void *context) {
    answers *a = context;
    (void)pthread_barrier_wait(&start);
    for (int i = 0; i < 20; i++) {
        wb_reset_gpu_device();
        a->first = wb_get_device();
        a->failures += wb_gpu_backend_set(i % 2 ? "CUDA" : "OpenCL") != WB_OK;
        a->failures += wb_gpu_backend() == NULL || a->first == NULL;
    }
    return NULL;
}

static void resets_and_preferences_at_once(void) {
    answers threads[THREADS] = {{.failures = 0}};
    stage_install("cuda", "plugins/libweber_cuda.so");
    stage_install("opencl", "plugins/libweber_opencl.so");
    expect(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i].thread, NULL, reset_and_ask, &threads[i]) == 0);
    for (int i = 0; i < THREADS; i++) expect(pthread_join(threads[i].thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++) expect(threads[i].failures == 0);
    expect_part(stage_read("preferences.toml"), "[Weber]\ngpu_backend = \"");
    expect_log("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(all_threads_get_the_same_devices),
        SCENE(resets_and_preferences_at_once),
    };
    return cmocka_run_group_tests_name("device/test_registry_threads", tests, NULL, NULL);
}
