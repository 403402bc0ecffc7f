/* Updates that may run at once, and have the same text, are jobs of one launch: of the plugin, on
 * the fake driver, which counts launches. */
#include "gpu.h"

#include "backends/host.h"
#include "support/program_maker.h"
#include "support/support.h"

enum { MANY = 100, GAP = 3, ROUNDS = 5, MOST_ELEMENTS = MANY * 1100 };

typedef struct job {
    char kind;
    int64_t first, size; /* of its elements in both arrays */
    void *kernel;
    wb_argument arguments[3];
} job;

typedef struct row {
    /* A command for each letter. u: p - late g, an update that may run at once with those before
     * it; U: one that may not; o: p + late g, another update; e: one of no elements; p: as u, but
     * no update. */
    const char *kinds;
    long launches;
} row;

/* ---- kernels ---- */

/* Made of g, argument 0, and of p, argument 1, which it writes over. */
static void *kernel_of(char kind, int64_t size) {
    const wb_instruction late = {
        .code = WB_CODE_late, .type = WB_R_F32, .in = {WB_NO_VALUE, WB_NO_VALUE, WB_NO_VALUE}};
    const int64_t strides[8] = {1};
    program_maker *m = malloc(sizeof *m);
    program_start(m, 0, 1, &size);
    const uint16_t g = program_load(m, WB_F32), p = program_load(m, WB_F32);
    const uint16_t step = program_op(m, WB_CODE_mul, WB_R_F32, g, program_add(m, late));
    const wb_code code = kind == 'o' ? WB_CODE_add : WB_CODE_sub;
    program_store_at(m, 1, program_op(m, code, WB_R_F32, p, step), 0, strides, false);
    m->program.is_update = kind != 'p';
    void *kernel = backend->kernel(device, &m->program);
    free(m);
    assert_non_null(kernel);
    return kernel;
}

static int64_t jobs_new(const row *r, job *jobs) {
    int64_t first = 0;
    for (int i = 0; r->kinds[i]; i++) {
        job *j = &jobs[i];
        *j = (job){.kind = r->kinds[i], .first = first, .size = 2 + i * 37 % 1000};
        if (j->kind == 'e') j->size = 0;
        j->kernel = kernel_of(j->kind, j->size);
        j->arguments[0] = (wb_argument){0, 4 * first};
        j->arguments[1] = (wb_argument){1, 4 * first};
        j->arguments[2] = (wb_argument){2, 0};
        first += j->size + GAP;
    }
    return first;
}

/* ---- running ---- */

static double late_of(int round) { return (round + 1) / 4.0; }

static void run_rounds(const row *r, const job *jobs, const wb_memory *memory) {
    wb_command commands[MANY];
    int count = 0;
    for (; r->kinds[count]; count++)
        commands[count] = (wb_command){.kernel = jobs[count].kernel,
                                       .narguments = 3,
                                       .arguments = jobs[count].arguments,
                                       .what = "update",
                                       .is_concurrent = strchr("uoep", jobs[count].kind) != NULL};
    for (int round = 0; round < ROUNDS; round++) {
        const double number = late_of(round);
        uint64_t late;
        memcpy(&late, &number, sizeof late);
        const long before = fake_count_now().launches;
        assert_ok(backend->run(device, NULL, commands, count, memory, &late));
        assert_ok(backend->sync(device, NULL));
        assert_int_equal(fake_count_now().launches - before, r->launches);
    }
}

/* All these numbers are exact in f32. */
static void expect(const job *jobs, int64_t elements, const float *g, const float *p) {
    for (int64_t k = 0; k < elements; k++) {
        float want = (float)k;
        while (jobs[1].kind && k >= jobs[1].first) jobs++;
        const bool is_inside = k - jobs->first < jobs->size;
        for (int round = 0; is_inside && round < ROUNDS; round++)
            want += (jobs->kind == 'o' ? 1 : -1) * (float)late_of(round) * g[k];
        if (p[k] != want)
            fail_msg("p[%lld] is %g, not %g", (long long)k, (double)p[k], (double)want);
    }
}

static void check(const row *r) {
    static float g[MOST_ELEMENTS], p[MOST_ELEMENTS];
    job jobs[MANY + 2] = {{.kind = 0}};
    const int64_t elements = jobs_new(r, jobs);
    const size_t bytes = (size_t)elements * sizeof *g;
    for (int64_t k = 0; k < elements; k++) g[k] = (float)(k % 7), p[k] = (float)k;
    const wb_memory memory[] = {at(upload(g, bytes), 0), at(upload(p, bytes), 0), at(NULL, 0)};
    run_rounds(r, jobs, memory);
    download(p, memory[1].handle, 0, bytes);
    expect(jobs, elements, g, p);
    for (int i = 0; r->kinds[i]; i++) backend->release(jobs[i].kernel);
    for (int i = 0; i < 2; i++) backend->free(device, memory[i].handle, bytes);
}

/* ---- tests ---- */

static void alike_updates_are_one_launch(void **state) {
    (void)state;
    static const row rows[] = {
        {"U", 1},    {"Uuuuu", 1}, {"uuu", 1},  {"UUU", 3}, {"UuuUuu", 2},
        {"Uoou", 3}, {"ppp", 3},   {"Uupu", 3}, {"Ueu", 2}, {"eee", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check(&rows[i]);
}

static void a_launch_has_room_for_some(void **state) {
    (void)state;
    enum { ROOM = 46 /* eleven words each, and one for their number, of 512 */ };
    static const int counts[] = {ROOM, ROOM + 1, MANY};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char kinds[MANY + 1] = "";
        memset(kinds, 'u', (size_t)counts[i]);
        check(&(row){kinds, (counts[i] + ROOM - 1) / ROOM});
    }
}

static int run_all(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alike_updates_are_one_launch, need_device, leave),
        cmocka_unit_test_setup_teardown(a_launch_has_room_for_some, need_device, leave)};
    use_fake_driver();
    if (!open_device(0)) return 1;
    host.render = wb_builtin_host.render, host.release_source = wb_builtin_host.release_source;
    const int failed = cmocka_run_group_tests_name("updates", tests, NULL, NULL);
    backend->close(device);
    return failed;
}

int main(void) {
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    return run_with("WEBER_GRAPHS", "1", run_all) + run_with("WEBER_GRAPHS", "0", run_all);
}
