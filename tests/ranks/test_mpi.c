/* The transport "MPI" by both implementations: the same values, and the same bits as "local". Each
 * launcher runs this program again as a rank. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "base/clock.h"
#include "support/files.h"
#include "support/mpi.h"
#include "support/ranks.h"
#include "support/stage.h"

enum { MIXED = 50001, STEPS = 20 };

/* ---- a rank ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Magnitudes over 2^8: another order of adding is seen in the last bits. */
static wb_array *mixed(int64_t count) {
    wb_array *i = wb_iota_make(WB_F32, 0, 1, &count);
    wb_array *power = wb_mod(wb_add(i, wb_number(3 * wb_rank())), wb_number(8));
    wb_array *size = wb_exp(wb_mul(power, wb_number(0.6931471805599453)));
    return wb_mul(size, wb_sin(wb_mul(i, wb_number(0.37 + wb_rank()))));
}

static void put(FILE *file, wb_array *x) {
    const int64_t count = wb_count(x);
    float *numbers = malloc(sizeof *numbers * (size_t)count);
    CHECK(numbers && wb_read_f32(x, numbers, count) == WB_OK);
    if (file) CHECK(fwrite(numbers, sizeof *numbers, (size_t)count, file) == (size_t)count);
    free(numbers);
}

static void collectives(FILE *file) {
    wb_scope_open();
    wb_array *x = mixed(MIXED);
    put(file, wb_allreduce(x, WB_REDUCE_SUM));
    put(file, wb_allreduce(x, WB_REDUCE_MAX));
    put(file, wb_bcast(x, wb_total_workers() - 1));
    put(file, wb_reduce_to(x, WB_REDUCE_MEAN, 0));
    put(file, wb_allgather(wb_slice(x, 0, 0, 1000, 1)));
    put(file, wb_allgather(wb_reduce_scatter(wb_slice(x, 0, 0, 12 * 1000, 1), WB_REDUCE_SUM)));
    CHECK(wb_barrier() == WB_OK && wb_scope_close() == WB_OK);
}

static void training(FILE *file) {
    wb_scope_open();
    wb_seed(3);
    wb_array *x = wb_uniform(WB_F32, 4, 77), *y = wb_sin(x);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 5, .shuffle = true, .shard = true);
    wb_layer *model = wb_chain(wb_dense(4, 9, wb_tanh), wb_batchnorm(9), wb_dense(9, 4));
    wb_optimiser *adam = wb_setup(wb_adam(), model, .distributed = true, .clip_total_norm = 0.5);
    wb_batch batch = {0};
    for (int i = 0; i < STEPS;)
        while (i < STEPS && wb_next(data, &batch)) {
            CHECK(wb_train_step(loss, model, &batch, NULL, adam));
            i++;
        }
    (void)wb_batch_end(&batch);
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) put(file, p.array);
    wb_free(adam), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

static int be_a_rank(const char *transport, const char *path) {
    CHECK(wb_distributed_initialize(NULL) == WB_OK);
    CHECK(strcmp(wb_get_distributed_backend(NULL), transport) == 0);
    FILE *file = wb_rank() == 0 ? fopen(path, "wb") : NULL;
    collectives(file);
    training(file);
    if (file) fclose(file);
    return wb_failed() ? wb_report("rank") : 0;
}

/* One rank makes another collective: all fail, which is success here. */
static int be_different(void) {
    const int64_t count = wb_rank() == 1 ? 5 : 4;
    wb_scope_open();
    wb_array *x = wb_full_make(WB_F32, 1, 1, &count);
    CHECK(wb_barrier() == WB_OK);
    const double begin = wb_clock();
    const bool failed = wb_eval(wb_allreduce(x, WB_REDUCE_SUM)) != WB_OK &&
                        strstr(wb_error_message(), "is allreduce of 5 f32") != NULL;
    wb_clear_error();
    return failed && wb_clock() - begin < 1 ? 0 : 1;
}

static int warnings;

static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context;
    warnings += level == WB_LOG_WARN && strstr(line, ": rank 1 (host ") != NULL &&
                strstr(line, ") has not entered a collective for 11 s so far") != NULL;
}

/* One rank does not come for longer than the others wait without a word. */
static int pause_once(void) {
    enum { PAUSE_SECONDS = 15 };
    wb_log_to(count_warnings, NULL);
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    if (wb_rank() == 1) (void)sleep(PAUSE_SECONDS);
    CHECK(wb_item(wb_allreduce(wb_scalar(WB_F32, wb_rank() + 1), WB_REDUCE_SUM)) == 6);
    CHECK(warnings == (wb_rank() != 1));
    return 0;
}

/* The first one to end may end the others: waits, for a while, until all have come here. */
static void gather_at(const char *path) {
    char name[512];
    for (int r = 0, tries = 0; r < wb_total_workers() && tries < 2000; tries++) {
        (void)snprintf(name, sizeof name, "%s%d", path, tries ? r : wb_rank());
        if (tries == 0) {
            FILE *file = fopen(name, "w");
            if (file) fclose(file);
        } else if (access(name, F_OK) == 0)
            r++;
        else
            (void)usleep(10000);
    }
}

/* Two of four do not come in time; the others know which, though MPI does not tell. */
static int come_too_late(const char *path) {
    char host[64] = "", line[256];
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(line, sizeof line,
                   "ranks 1 (host %s), 2 (host %s) have not entered the collective in which rank "
                   "%d has waited for 3 s (WEBER_TIMEOUT)",
                   host, host, wb_rank());
    wb_scope_open();
    CHECK(wb_barrier() == WB_OK);
    const bool is_late = wb_rank() == 1 || wb_rank() == 2;
    if (!is_late) {
        CHECK(wb_barrier() != WB_OK);
        (void)printf("rank %d %s: %s\n", wb_rank(),
                     strstr(wb_error_message(), line) ? "heard" : "did not hear",
                     wb_error_message());
    } else
        (void)printf("rank %d heard: nothing, it came too late\n", wb_rank());
    (void)fflush(stdout);
    gather_at(path); /* where those that are late wait for the others */
    return 1;
}

static wb_array *bad_loss(wb_layer *model, const wb_batch *batch, void *user) {
    if (wb_rank() == 1) return wb_matmul(batch->x, batch->x);
    return loss(model, batch, user);
}

/* One rank's step fails: the others hear of it, long before they would stop waiting. */
static int fail_in_a_step(const char *path) {
    wb_scope_open();
    wb_layer *model = wb_dense(4, 3);
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 4, 5), .y = wb_ones(WB_F32, 3, 5)};
    CHECK(wb_train_step(loss, model, &batch, NULL, o));
    CHECK(!wb_train_step(bad_loss, model, &batch, NULL, o));
    const bool is_said =
        strstr(wb_error_message(), wb_rank() == 1 ? "matmul" : "rank 1 has failed: matmul") != NULL;
    (void)printf("rank %d %s: %s\n", wb_rank(), is_said ? "heard" : "did not hear",
                 wb_error_message());
    (void)fflush(stdout);
    gather_at(path);
    return 1;
}

/* ---- the launchers ---- */

static const char *self;

static int launch(const char *launcher, int ranks, const char *arguments) {
    char command[1024];
    (void)snprintf(command, sizeof command, "timeout 120 %s -n %d %s %s >%s 2>&1", launcher, ranks,
                   self, arguments, path_of("printed"));
    const int status = system(command);
    if (status) {
        size_t size;
        unsigned char *text = read_file(path_of("printed"), &size);
        (void)fprintf(stderr, "%s\n%.*s\n", command, text ? (int)size : 0, (const char *)text);
        free(text);
    }
    return status;
}

/* Beside the other tests, since most of the time nothing happens. Open MPI's launchers remove each
 * other's folders unless each has its own. */
static pid_t pause_begins(const char *launcher, const char *command, const char *plugin) {
    char line[1024];
    if (!has_mpi(command, plugin)) return 0;
    (void)snprintf(line, sizeof line, "mkdir -p %s && TMPDIR=%s timeout 60 %s -n 3 %s --pause",
                   path_of("pausing"), path_of("pausing"), launcher, self);
    (void)fflush(NULL);
    const pid_t started = fork();
    if (started == 0) _exit(system(line) != 0);
    return started;
}

static pid_t pausing[2];

static void a_pause_is_a_warning(pid_t started) {
    int status = 1;
    assert_int_equal(waitpid(started, &status, 0), started);
    assert_int_equal(status, 0);
}

static void need(const char *command, const char *plugin) {
    if (!has_mpi(command, plugin)) skip();
}

static void same_as_local(const char *launcher) {
    char arguments[256], local[512];
    (void)snprintf(local, sizeof local, "'%s' run", stage_build("bin/weber"));
    for (int n = 2; n <= 4; n++) {
        (void)snprintf(arguments, sizeof arguments, "--rank local %s", path_of("local"));
        assert_int_equal(launch(local, n, arguments), 0);
        (void)snprintf(arguments, sizeof arguments, "--rank MPI %s", path_of("mpi"));
        assert_int_equal(launch(launcher, n, arguments), 0);
        assert_same_files(path_of("local"), path_of("mpi"));
    }
    assert_int_equal(launch(launcher, 3, "--differ"), 0);
}

static void hears(const char *launcher, const char *settings, int ranks, const char *what) {
    char command[1024];
    char at[256];
    (void)snprintf(at, sizeof at, "%s%s", path_of(strcmp(launcher, MPICH) == 0 ? "hydra" : "open"),
                   what);
    (void)snprintf(command, sizeof command, "%s timeout 60 %s -n %d %s %s %s >%s 2>&1", settings,
                   launcher, ranks, self, what, at, path_of("printed"));
    assert_int_not_equal(system(command), 0);
    size_t size = 0;
    char *text = (char *)read_file(path_of("printed"), &size);
    if (!text || size == 0) fail_msg("%s: nothing printed", command);
    text[size - 1] = 0;
    for (int r = 0; r < ranks; r++) {
        char line[32];
        (void)snprintf(line, sizeof line, "rank %d heard", r);
        if (!strstr(text, line)) fail_msg("%s\n%s", command, text);
    }
    free(text);
}

static void by_open_mpi(void **state) {
    (void)state;
    need("mpirun.openmpi", "openmpi");
    same_as_local(OPEN_MPI);
    hears(OPEN_MPI, "", 3, "--fail");
    hears(OPEN_MPI, "WEBER_TIMEOUT=3", 4, "--late");
    a_pause_is_a_warning(pausing[0]);
}

static void by_mpich(void **state) {
    (void)state;
    need("mpirun.mpich", "mpich");
    same_as_local(MPICH);
    hears(MPICH, "", 3, "--fail");
    hears(MPICH, "WEBER_TIMEOUT=3", 4, "--late");
    a_pause_is_a_warning(pausing[1]);
}

static int begin(void **state) {
    const int status = make_folder(state);
    pausing[0] = pause_begins(OPEN_MPI, "mpirun.openmpi", "openmpi");
    pausing[1] = pause_begins(MPICH, "mpirun.mpich", "mpich");
    return status;
}

int main(int count, char **arguments) {
    if (count == 4 && strcmp(arguments[1], "--rank") == 0)
        return be_a_rank(arguments[2], arguments[3]);
    if (count == 2 && strcmp(arguments[1], "--differ") == 0) return be_different();
    if (count == 2 && strcmp(arguments[1], "--pause") == 0) return pause_once();
    if (count == 3 && strcmp(arguments[1], "--fail") == 0) return fail_in_a_step(arguments[2]);
    if (count == 3 && strcmp(arguments[1], "--late") == 0) return come_too_late(arguments[2]);
    self = arguments[0];
    set_mpi_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_open_mpi),
        cmocka_unit_test(by_mpich),
    };
    return cmocka_run_group_tests(tests, begin, drop_folder);
}
