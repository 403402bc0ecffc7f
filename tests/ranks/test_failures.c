/* Ranks that differ, fail, die, stop or leave: the others say so, and no parameter changes. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include <weber.h>

#include "base/clock.h"
#include "base/memory.h"
#include "models/tree.h"
#include "platform/files.h"
#include "support/ranks.h"
#include "support/support.h"

static void expect(wb_status status, const char *text) {
    if (status != WB_OK && strstr(wb_error_message(), text)) {
        wb_clear_error();
        return;
    }
    (void)fprintf(stderr, "rank %d: expected \"%s\", got %d \"%s\"\n", wb_rank(), text, (int)status,
                  wb_error_message());
    exit(1);
}

/* ---- one rank does something else ---- */

static wb_array *x_of(int64_t count) { return wb_full_make(WB_F32, wb_rank() + 1, 1, &count); }

static void other_count(void) {
    wb_scope_open();
    wb_array *x = x_of(wb_rank() == 1 ? 11 : 10);
    expect(wb_eval(wb_allreduce(x, WB_REDUCE_SUM)), "number 0 of rank 0 is allreduce of 10 f32, "
                                                    "sum, number 0 of rank 1 is allreduce of 11");
    expect(wb_eval(wb_allreduce(x, WB_REDUCE_SUM)), "the group of ranks was given up");
    wb_array *unread = wb_allreduce(x, WB_REDUCE_SUM); /* concerns nobody else */
    CHECK(wb_item(wb_sum(x)) == (double)wb_count(x) * (wb_rank() + 1));
    expect(wb_eval(unread), "the group of ranks was given up");
}

static void other_type(void) {
    wb_scope_open();
    wb_array *x = wb_cast(x_of(10), wb_rank() == 1 ? WB_F64 : WB_F32);
    expect(wb_eval(wb_allreduce(x, WB_REDUCE_SUM)), "allreduce of 10 f64");
}

static void other_reduction(void) {
    wb_scope_open();
    const wb_reduction reduction = wb_rank() == 2 ? WB_REDUCE_MAX : WB_REDUCE_SUM;
    expect(wb_eval(wb_allreduce(x_of(4), reduction)),
           "number 0 of rank 2 is allreduce of 4 f32, max");
}

static void other_order(void) {
    wb_scope_open();
    wb_array *a, *b;
    if (wb_rank() == 0)
        a = wb_allgather(x_of(2)), b = wb_bcast(x_of(2), 0);
    else
        b = wb_bcast(x_of(2), 0), a = wb_allgather(x_of(2));
    expect(wb_eval(a, b),
           "of rank 0 is allgather of 2 f32, number 0 of rank 1 is bcast of 2 f32, root 0");
}

/* What was refused counts, so that later ones of another meaning are not added up. */
static void one_refused(void) {
    wb_scope_open();
    wb_array *none = wb_allreduce(wb_rank() == 1 ? NULL : x_of(4), WB_REDUCE_SUM);
    CHECK((none == NULL) == (wb_rank() == 1));
    wb_clear_error();
    expect(wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)),
           "number 0 of rank 0 is allreduce of 4 f32, sum, number 1 of rank 1 is allreduce of 4");
}

static void all_refused(void) {
    wb_scope_open();
    CHECK(!wb_allreduce(wb_zeros(WB_BOOL, 2), WB_REDUCE_SUM) && !wb_bcast(x_of(2), 3));
    CHECK(!wb_reduce_scatter(x_of(4), WB_REDUCE_SUM) && !wb_allgather(NULL));
    wb_clear_error();
    CHECK(wb_item(wb_sum(wb_allreduce(x_of(4), WB_REDUCE_SUM))) == 4 * 6);
}

static void late_call(void) {
    wb_scope_open();
    if (wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)) == WB_OK ||
        !strstr(wb_error_message(), "is ending and has left the group"))
        _exit(1);
    wb_clear_error();
}

/* Of a function that atexit calls after the group's. */
static void after_the_end(void) {
    wb_scope_open();
    CHECK(atexit(late_call) == 0);
    CHECK(wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)) == WB_OK);
}

/* Memory that the machine does not have is noticed when it is reserved, not by SIGBUS. */
static void no_room(void) {
    const struct rlimit most = {1 << 20, 1 << 20};
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &most) == 0);
    char text[96];
    (void)snprintf(text, sizeof text, "3 ranks need 7 MiB of shared memory in %s",
                   wb_platform_shared_place);
    expect(wb_barrier(), text);
}

static void one_less(void) {
    wb_scope_open();
    if (wb_rank() == 1) exit(0);
    expect(wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)), "rank 1 has ended");
}

/* ---- what is no rank's part ---- */

static void *collective_of_another(void *unused) {
    (void)unused;
    wb_scope_open();
    if (wb_allreduce(x_of(4), WB_REDUCE_SUM)) exit(1);
    expect(wb_error_status(), "collectives must be made by one thread");
    if (wb_barrier() == WB_OK) exit(1);
    expect(wb_error_status(), "collectives must be made by one thread");
    (void)wb_scope_close();
    wb_clear_error();
    return NULL;
}

/* It concerns the others when they wait for this rank's next one: which is refused everywhere. */
static void other_thread(void) {
    pthread_t thread;
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    if (wb_rank() == 1) {
        CHECK(pthread_create(&thread, NULL, collective_of_another, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    const wb_status status = wb_barrier();
    expect(status,
           wb_rank() == 1 ? "given up" : "rank 1 has failed: distributed: collectives must");
}

/* A child is no rank; the rank goes on. */
static void forked(void) {
    int raw = 0;
    wb_scope_open();
    CHECK(wb_item(wb_sum(wb_allreduce(x_of(2), WB_REDUCE_SUM))) == 12);
    const pid_t child = fork();
    if (child == 0) {
        const bool is_refused =
            wb_barrier() != WB_OK && strstr(wb_error_message(), "this process is a child of rank");
        _exit(is_refused ? 7 : 1);
    }
    CHECK(waitpid(child, &raw, 0) == child && WIFEXITED(raw) && WEXITSTATUS(raw) == 7);
    CHECK(wb_barrier() == WB_OK);
}

/* ---- in a step ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    if (user && wb_rank() == *(const int *)user) return wb_matmul(batch->x, batch->x);
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static double sum_of(wb_layer *model) {
    double sum = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) sum += wb_item(wb_sum(p.array));
    return sum;
}

/* wb_train_step, or its parts by hand. */
static wb_array *step(wb_layer *model, const wb_batch *batch, int *bad, wb_optimiser *o,
                      bool whole) {
    if (whole) return wb_train_step(loss, model, batch, bad, o);
    wb_gradients *g;
    wb_array *l = wb_withgradient(loss, model, batch, bad, &g);
    return wb_update(o, model, g) == WB_OK ? l : NULL;
}

static void failing_step(const char *text, double eta, int bad, bool whole) {
    wb_scope_open();
    wb_layer *model = wb_chain(wb_dense(3, 8, wb_tanh), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    CHECK(wb_train_step(loss, model, &batch, NULL, o));
    const double before = sum_of(model);
    if (eta > 0) CHECK(wb_adjust(o, eta) == WB_OK);
    wb_array *l = step(model, &batch, &bad, o, whole);
    expect(l ? WB_OK : wb_error_status(), text);
    CHECK(sum_of(model) == before && before == before);
    wb_free(o), wb_free(model);
}

static void other_rate(void) {
    failing_step("eta of Adam is 0.25 on ranks 0, 2, 0.5 on rank 1", wb_rank() == 1 ? 0.5 : 0.25,
                 -1, true);
}

static void bad_loss(void) { failing_step("matmul", 0, 1, true); }
static void by_hand(void) { failing_step("matmul", 0, 1, false); }

/* Rules with the same settings. */
static void other_rule(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o =
        wb_setup(wb_rank() == 1 ? wb_adamax() : wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    wb_array *l = wb_train_step(loss, model, &batch, NULL, o);
    expect(l ? WB_OK : wb_error_status(), "the rule is Adam on ranks 0, 2, AdaMax on rank 1");
    wb_free(o), wb_free(model);
}

/* As many numbers on all ranks, but those of other arrays. */
static void other_frozen(void) {
    wb_scope_open();
    wb_layer *model = wb_chain(wb_dense(2, 2), wb_dense(2, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    CHECK(wb_freeze(o, wb_rank() == 1 ? "layers.1" : "layers.2") == WB_OK);
    const wb_batch batch = {.x = wb_ones(WB_F32, 2, 5), .y = wb_ones(WB_F32, 2, 5)};
    wb_array *l = wb_train_step(loss, model, &batch, NULL, o);
    expect(l ? WB_OK : wb_error_status(),
           "layers.1.weight is f32 (2, 2) on ranks 0, 2, f32 (2, 2), frozen on rank 1");
    wb_free(o), wb_free(model);
}

static void other_compute(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true,
                               .compute = wb_rank() == 1 ? WB_BF16 : WB_F32);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    wb_array *l = wb_train_step(loss, model, &batch, NULL, o);
    expect(l ? WB_OK : wb_error_status(), ".compute is f32 on ranks 0, 2, bf16 on rank 1");
    wb_free(o), wb_free(model);
}

/* ---- in an evaluation ---- */

static wb_array *answer(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_rank() == 1 ? wb_matmul(batch->x, batch->x) : wb_apply(model, batch->x);
}

static void bad_answer(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 3, 12), .y = wb_ones(WB_F32, 2, 12),
                                    .batchsize = 4, .shard = true);
    const wb_evaluation e = wb_evaluate(model, data, .predict = answer);
    expect(e.status, wb_rank() == 1 ? "matmul" : "rank 1 has failed");
    wb_free(data), wb_free(model);
}

/* ---- without memory ---- */

/* The failing-th allocation of rank 1 and all later ones fail while it makes its second step. */
static int failing;
enum { SUCCEEDED = 7 };

static void no_memory(void) {
    wb_scope_open();
    wb_layer *model = wb_chain(wb_dense(3, 8, wb_tanh), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    const wb_batch other = {.x = wb_ones(WB_F32, 3, 6), .y = wb_ones(WB_F32, 2, 6)};
    CHECK(wb_train_step(loss, model, &batch, NULL, o));
    const double before = sum_of(model);
    if (wb_rank() == 1) (void)wb_fail_allocation(failing);
    wb_array *l = wb_train_step(loss, model, &other, NULL, o);
    (void)wb_fail_allocation(0);
    if (l) exit(SUCCEEDED);
    if (wb_rank() != 1) CHECK(strstr(wb_error_message(), "rank 1 has failed"));
    wb_clear_error();
    CHECK(sum_of(model) == before);
    wb_free(o), wb_free(model);
}

/* While it begins its first one; later failures are those of the second. */
static void no_memory_at_first(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    if (wb_rank() == 1) (void)wb_fail_allocation(failing);
    wb_array *l = wb_train_step(loss, model, &batch, NULL, o);
    (void)wb_fail_allocation(0);
    CHECK(!l && (wb_rank() == 1 || strstr(wb_error_message(), "rank 1 has failed")));
    wb_clear_error();
    wb_free(o), wb_free(model);
}

/* While states that are divided become whole. */
static void no_memory_for_states(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true, .zero = 1);
    const wb_named objects[] = {{"o", o}};
    if (wb_rank() == 1) (void)wb_fail_allocation(failing);
    const wb_status status = wb_gather_objects(1, objects);
    (void)wb_fail_allocation(0);
    if (status == WB_OK) exit(SUCCEEDED);
    if (wb_rank() != 1) CHECK(strstr(wb_error_message(), "rank 1 has failed"));
    wb_clear_error();
    wb_free(o), wb_free(model);
}

static void fail_each(void (*body)(void)) {
    int status = 0;
    for (failing = 1; failing < 2000 && status == 0; failing += 1 + failing / 16) {
        status = ranks_run(2, body);
        if (status != 0 && status != SUCCEEDED) fail_msg("allocation %d: %d", failing, status);
    }
    assert_int_equal(status, SUCCEEDED);
}

static void each_allocation_fails(void **state) {
    (void)state;
    fail_each(no_memory);
    fail_each(no_memory_for_states);
    for (failing = 1; failing < 8; failing++) assert_int_equal(ranks_run(2, no_memory_at_first), 0);
}

/* ---- one rank is gone ---- */

static int ending = SIGKILL; /* by which signal */

static void one_is_killed(void) {
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    if (wb_rank() == 1) (void)signal(ending, SIG_DFL), (void)raise(ending);
    const double begin = wb_clock();
    expect(wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)), "rank 1 has died");
    CHECK(wb_clock() - begin < 2);
}

static void one_is_stopped(void) {
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    while (wb_rank() == 1) (void)raise(SIGSTOP); /* whoever wakes it */
    const double begin = wb_clock();
    expect(wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)), "rank 1 has stopped");
    CHECK(wb_clock() - begin < 10);
}

static void one_is_late(void) {
    wb_scope_open();
    if (wb_rank() == 1) sleep(2);
    CHECK(wb_item(wb_sum(wb_allreduce(x_of(2), WB_REDUCE_SUM))) == 2 * 6);
}

/* ---- a rank that pauses ---- */

enum { PAUSE_SECONDS = 12 };

static int warnings;

static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context;
    warnings += level == WB_LOG_WARN && strstr(line, "waiting for rank 1") != NULL;
}

static void one_pauses(void) {
    wb_log_to(count_warnings, NULL);
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    if (wb_rank() == 1) (void)usleep(PAUSE_SECONDS * 1000000);
    CHECK(wb_item(wb_sum(wb_allreduce(x_of(2), WB_REDUCE_SUM))) == 2 * 6);
    CHECK(warnings == (wb_rank() != 1));
}

/* Beside the other tests, since most of the time nothing happens. */
static pid_t pausing;

static void pause_begins(void) {
    (void)fflush(NULL);
    pausing = fork();
    if (pausing == 0) _exit(ranks_run(3, one_pauses));
}

static void a_pause_is_a_warning(void **state) {
    (void)state;
    int status = 1;
    assert_int_equal(waitpid(pausing, &status, 0), pausing);
    assert_int_equal(status, 0);
}

static void one_never_comes(void) {
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    if (wb_rank() == 1) sleep(4);
    if (wb_rank() != 1)
        expect(wb_eval(wb_allreduce(x_of(4), WB_REDUCE_SUM)),
               "rank 1 is alive, but has not entered");
}

/* ---- the table ---- */

static void differ(void **state) {
    (void)state;
    void (*const rows[])(void) = {
        other_count,   other_type, other_reduction, other_order, one_refused,   all_refused,
        after_the_end, one_less,   other_rate,      other_rule,  other_frozen,  bad_loss,
        by_hand,       no_room,    other_thread,    forked,      other_compute, bad_answer,
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double begin = wb_clock();
        if (ranks_run(3, rows[i])) fail_msg("row %zu", i);
        assert_true(wb_clock() - begin < 1); /* all of it, from fork on */
    }
}

static void are_gone(void **state) {
    (void)state;
    const char *run = ranks_start(3, one_is_killed);
    assert_int_equal(ranks_wait(0) | ranks_wait(2), 0);
    assert_int_equal(ranks_wait(1), 128 + SIGKILL);
    wb_platform_unlink_shared(run);
    ending = SIGSEGV;
    run = ranks_start(3, one_is_killed);
    assert_int_equal(ranks_wait(0) | ranks_wait(2), 0);
    assert_int_equal(ranks_wait(1), 128 + SIGSEGV);
    wb_platform_unlink_shared(run);
    run = ranks_start(3, one_is_stopped);
    assert_int_equal(ranks_wait(0) | ranks_wait(2), 0);
    (void)kill(ranks_started[1], SIGKILL);
    assert_int_equal(ranks_wait(1), 128 + SIGKILL);
    wb_platform_unlink_shared(run);
    assert_int_equal(ranks_run(3, one_is_late), 0);
    (void)setenv("WEBER_TIMEOUT", "1", 1);
    assert_int_equal(ranks_run(3, one_never_comes), 0);
    (void)unsetenv("WEBER_TIMEOUT");
}

/* ---- calls that are refused ---- */

static void not_initialized(void **state) { /* N8 */
    (void)state;
    assert_null(wb_get_distributed_backend("MPI"));
    assert_string_equal(wb_error_message(), "Backend `MPI` is not initialized. Call "
                                            "`wb_distributed_initialize(\"MPI\")` first.");
    wb_clear_error();
    assert_int_equal(wb_distributed_initialize("gloo"), WB_ERROR_ARGUMENT);
    wb_clear_error();
    assert_int_equal(wb_distributed_initialize("MPI"), WB_OK); /* one process needs no transport */
    assert_int_equal(wb_distributed_initialize("mpi"), WB_OK);
    assert_string_equal(wb_get_distributed_backend("Mpi"), "none");
    assert_string_equal(wb_get_distributed_backend("MPI"), "none");
}

/* Environments that no starter makes; each process is alone. */
typedef struct surroundings {
    const char *variables[4][2], *text;
} surroundings;

static const surroundings *around;

static void join_there(void) {
    (void)unsetenv("WEBER_RANK"), (void)unsetenv("WEBER_SIZE"), (void)unsetenv("WEBER_RUN");
    (void)unsetenv("WEBER_LOCAL_RANK"), (void)unsetenv("WEBER_LOCAL_SIZE");
    for (int i = 0; i < 4 && around->variables[i][0]; i++)
        (void)setenv(around->variables[i][0], around->variables[i][1], 1);
    expect(wb_distributed_initialize(NULL), around->text);
}

static void wrong_environments(void **state) {
    (void)state;
    const surroundings rows[] = {
        {{{"WEBER_RANK", "x"}, {"WEBER_SIZE", "2"}}, "WEBER_RANK must be a whole number"},
        {{{"WEBER_RANK", "2000000"}, {"WEBER_SIZE", "2"}},
         "must be a whole number from 0 to 1048575, got \"2000000\""},
        {{{"WEBER_RANK", "1"}, {"WEBER_SIZE", "2"}}, "but WEBER_RUN is not set"},
        {{{"WEBER_RUN", "/x"}, {"WEBER_SIZE", "2"}}, "but WEBER_RANK is not set"},
        {{{"WEBER_RUN", "/x"}, {"WEBER_SIZE", "2"}, {"WEBER_RANK", "2"}}, "says rank 2 of 2"},
        {{{"WEBER_RUN", "/x"}, {"WEBER_SIZE", "5000"}, {"WEBER_RANK", "2"}}, "at most 1024 ranks"},
        {{{"WEBER_RUN", "a/b"}, {"WEBER_SIZE", "2"}, {"WEBER_RANK", "0"}}, "a/b: Invalid argument"},
        {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}},
         "srun started 4 tasks without MPI, which would be 4 groups of one; use srun --mpi=pmix"},
        {{{"PMIX_RANK", "5"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"}},
         "the environment of Open MPI says rank 5 of 4, and 1 of 4 on this machine"},
        {{{"PMI_RANK", "5"},
          {"PMI_SIZE", "8"},
          {"SLURM_LOCALID", "3"},
          {"SLURM_NTASKS_PER_NODE", "2"}},
         "the environment of MPICH says rank 5 of 8, and 3 of 2 on this machine"},
        {{{"WEBER_TIMEOUT", "10 m"}}, "WEBER_TIMEOUT must be a number of seconds above 0"},
        {{{"WEBER_RUN", "/weber-test-pace"},
          {"WEBER_SIZE", "2"},
          {"WEBER_RANK", "0"},
          {"WEBER_PACE", "1000us,100"}},
         "WEBER_PACE must be the time of a message (us, ms or s) and the rate of its bytes (kB/s, "
         "MB/s or GB/s), each from 1e-6 to 1e6 of its unit, as in 1000us,100MB/s, got "
         "\"1000us,100\""},
        {{{"WEBER_RUN", "/weber-test-pace"},
          {"WEBER_SIZE", "2"},
          {"WEBER_RANK", "0"},
          {"WEBER_PACE", "infs,100MB/s"}},
         "got \"infs,100MB/s\""},
        {{{"WEBER_RUN", "/weber-test-pace"},
          {"WEBER_SIZE", "2"},
          {"WEBER_RANK", "0"},
          {"WEBER_PACE", "1s,1e-300MB/s"}},
         "got \"1s,1e-300MB/s\""},
        {{{"WEBER_RUN", "/weber-test-alone"},
          {"WEBER_SIZE", "2"},
          {"WEBER_RANK", "0"},
          {"WEBER_TIMEOUT", "0.1"}},
         "rank 1 of 2 has not joined the group within 0.1 s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        around = &rows[i];
        if (ranks_run(1, join_there)) fail_msg("row %zu", i);
    }
    assert_int_equal(wb_platform_open_shared("/weber-test-alone", O_RDWR), -1);
}

/* The shell of a batch script has the numbers of the job, and is no task of it. */
static void join_in_batch_shell(void) {
    static const char *const variables[][2] = {
        {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
    for (size_t i = 0; i < 3; i++) (void)setenv(variables[i][0], variables[i][1], 1);
    (void)unsetenv("WEBER_RANK"), (void)unsetenv("WEBER_SIZE"), (void)unsetenv("WEBER_RUN");
    CHECK(wb_distributed_initialize(NULL) == WB_OK && wb_total_workers() == 1);
}

static void a_batch_shell_is_alone(void **state) {
    (void)state;
    assert_int_equal(ranks_run(1, join_in_batch_shell), 0);
}

typedef struct bad_call {
    const char *text;
    wb_array *(*call)(void);
} bad_call;

static wb_array *null(void) { return wb_allreduce(NULL, WB_REDUCE_SUM); }
static wb_array *sum_of_bool(void) { return wb_allreduce(wb_zeros(WB_BOOL, 2), WB_REDUCE_SUM); }
static wb_array *mean_of_int(void) { return wb_reduce_to(wb_zeros(WB_I32, 2), WB_REDUCE_MEAN, 0); }
static wb_array *no_reduction(void) { return wb_allreduce(wb_zeros(WB_F32, 2), (wb_reduction)7); }
static wb_array *no_root(void) { return wb_bcast(wb_zeros(WB_F32, 2), 1); }

static void refuses(void **state) {
    (void)state;
    const bad_call rows[] = {
        {"allreduce: x is NULL", null},
        {"allreduce: a sum of bool is not defined; cast x to another type", sum_of_bool},
        {"reduce: a mean needs a floating type, got i32", mean_of_int},
        {"allreduce: the reduction must be WB_REDUCE_SUM, MEAN, MAX or MIN, got 7", no_reduction},
        {"bcast: the root must be a rank from 0 to 0, got 1", no_root},
    };
    wb_scope_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(rows[i].call());
        assert_string_equal(wb_error_message(), rows[i].text);
        wb_clear_error();
    }
    assert_int_equal(wb_scope_close(), WB_OK);
}

int main(void) {
    pause_begins();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differ),
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(are_gone),
        cmocka_unit_test(wrong_environments),
        cmocka_unit_test(a_batch_shell_is_alone),
        cmocka_unit_test(a_pause_is_a_warning),
        cmocka_unit_test(refuses),
        cmocka_unit_test(not_initialized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
