/* src/train/training.c: checkpoints that are damaged, that do not fit, that cannot be written, and
 * trainings that are killed. */
#include <signal.h>
#include <sys/wait.h>

#include "interrupted.h"
#include "platform/process.h"

/* ---- files that are damaged, that do not fit, that cannot be written ---- */

static int warnings;
static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context, (void)line;
    warnings += level == WB_LOG_WARN;
}

typedef enum damage { CUT_SHORT, EMPTY, FLIPPED } damage;

static void do_damage(const char *path, damage how) {
    size_t size = 0;
    unsigned char *bytes = read_file(path, &size);
    assert_non_null(bytes);
    for (size_t i = 0; i < 200 && how == FLIPPED; i++) bytes[size / 2 + i] ^= 4;
    write_file(path, bytes, how == CUT_SHORT ? size - size / 3 : how == EMPTY ? 0 : size);
    free(bytes);
}

static void a_damaged_file_is_passed_over(void **state) {
    (void)state;
    for (damage how = CUT_SHORT; how <= FLIPPED; how++) {
        const char *checkpoint = fresh_folder();
        char path[256];
        run r = begin(adam, 5);
        r.stop_at = 11;
        assert_int_equal(train(&r, checkpoint, 3, 3), WB_OK);
        end(&r);
        snprintf(path, sizeof path, "%scheckpoint-000000000011.npz", checkpoint);
        do_damage(path, how);
        r = begin(adam, 99);
        warnings = 0;
        wb_log_to(count_warnings, NULL);
        assert_int_equal(train(&r, checkpoint, 3, 3), WB_OK);
        wb_log_to(NULL, NULL);
        assert_int_equal(warnings, 1);
        assert_int_equal(r.calls, STEPS - 9);
        assert_true(has_file(checkpoint, "checkpoint-000000000011.npz.damaged"));
        assert_whole(&r);
        end(&r);
    }
}

/* As an older version wrote it, without two numbers: their names are others in the file. */
static void rename_in(const char *path, const char *name, const char *other) {
    size_t size = 0, length = strlen(name);
    unsigned char *bytes = read_file(path, &size);
    int found = 0;
    for (size_t i = 0; i + length < size; i++)
        if (memcmp(bytes + i, name, length + 1) == 0) memcpy(bytes + i, other, length), found++;
    assert_int_equal(found, 1);
    write_file(path, bytes, size);
    free(bytes);
}

static void a_file_of_an_older_version_goes_on(void **state) {
    (void)state;
    const char *folder = fresh_folder();
    char checkpoint[256], path[300];
    snprintf(checkpoint, sizeof checkpoint, "%sold.bson", folder);
    snprintf(path, sizeof path, "%sold-000000000005.bson", folder);
    run r = begin(&kinds[0], 5);
    r.stop_at = 5;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_OK);
    end(&r);
    rename_in(path, "total_weight", "what_is_else");
    r = begin(&kinds[0], 5);
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_OK);
    assert_int_equal(r.calls, STEPS - 5);
    assert_true(r.means[0] > 0 && r.means[0] < 2); /* that of the steps since */
    end(&r);
}

static char said[2][300];
static void keep_warnings(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level != WB_LOG_WARN) return;
    if (warnings < 2) snprintf(said[warnings], sizeof said[0], "%s", line);
    warnings++;
}

static void goes_on_and_says(run *r, const char *checkpoint, int wanted) {
    warnings = 0;
    wb_log_to(keep_warnings, NULL);
    assert_int_equal(train(r, checkpoint, 0, 0), WB_OK);
    wb_log_to(NULL, NULL);
    assert_int_equal(warnings, wanted);
    end(r);
}

static wb_rule faster(void) { return wb_adam(.eta = 0.5); }

static void another_rate_and_a_finished_run_are_told(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    kind other = *adam;
    run r = begin(adam, 5);
    other.rule = faster;
    r.stop_at = 5;
    goes_on_and_says(&r, checkpoint, 0);
    r = begin(&other, 5);
    r.stop_at = 1;
    goes_on_and_says(&r, checkpoint, 1);
    assert_non_null(
        strstr(said[0], "uses eta = 0.01 from the checkpoint, not the optimiser's 0.5"));
    r = begin(adam, 5);
    goes_on_and_says(&r, checkpoint, 0);
    r = begin(adam, 5);
    goes_on_and_says(&r, checkpoint, 1);
    assert_non_null(strstr(said[0], "nothing is trained: "));
    assert_non_null(strstr(said[0], " has trained 3 epochs, and .epochs is 3"));
}

static void nothing_starts_over_damaged_files(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    char path[256];
    run r = begin(adam, 5);
    r.stop_at = 1;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%scheckpoint-00000000000%d.npz", checkpoint, i);
        do_damage(path, CUT_SHORT);
    }
    wb_log_to(count_warnings, NULL);
    r.calls = 0;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_ERROR_FORMAT);
    wb_log_to(NULL, NULL);
    assert_error(WB_ERROR_FORMAT, "none of 2 checkpoints can be read");
    assert_int_equal(r.calls, 0);
    assert_true(has_file(checkpoint, "checkpoint-000000000001.npz"));
    end(&r);
}

static void another_model_is_refused(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    run r = begin(adam, 5);
    r.stop_at = 2;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_OK);
    end(&r);
    r = begin(&kinds[3], 5); /* tied, and AdamW */
    leave(&r, path_of("before.bson"));
    assert_true(train(&r, checkpoint, 0, 0) != WB_OK);
    assert_int_equal(r.calls, 0);
    char message[1024];
    (void)wb_take_error(message, sizeof message);
    assert_non_null(strstr(message, "checkpoint-000000000002.npz"));
    leave(&r, path_of("after.bson"));
    assert_same_files(path_of("before.bson"), path_of("after.bson"));
    end(&r);
}

static void a_folder_that_cannot_be_is_told_first(void **state) {
    (void)state;
    write_file(path_of("file"), "x", 1);
    run r = begin(adam, 5);
    assert_int_equal(train(&r, path_of("file/run/"), 0, 0), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "file/run/");
    assert_int_equal(r.calls, 0);
    assert_int_equal(train(&r, path_of("run.npy"), 0, 0), WB_ERROR_ARGUMENT); /* one array each */
    wb_clear_error();
    assert_int_equal(r.calls, 0);
    assert_int_equal(wb_train(loss, r.model, r.loader, r.optimiser, .checkpoint = path_of("r/"),
                              .more = {{"x", wb_ones(WB_F32, 2)}}),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "\"x\" is an array, which keeps its numbers");
    assert_int_equal(wb_train(loss, r.model, r.loader, r.optimiser, .checkpoint = path_of("r/"),
                              .more = {{"model", r.model}}),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "two objects are named \"model\"");
    assert_int_equal(train(&r, path_of("r/"), -1, 0), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "every must not be negative and keep must be positive, got -1 and");
    end(&r);
}

/* From one step to another files cannot grow beyond some bytes, as on a full disk. */
typedef struct full_disk {
    run *run;
    int from, to;
    rlim_t limit;
} full_disk;

static bool fill_disk(const wb_train_event *event) {
    full_disk *d = event->user;
    const int step = ++d->run->calls;
    if (step == d->from) d->limit = files_may_have(700);
    if (step == d->to) (void)files_may_have(d->limit);
    return true;
}

static void a_full_disk_costs_no_training(void **state) {
    (void)state;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN); /* an error of write instead */
    const char *checkpoint = fresh_folder();
    run r = begin(adam, 5);
    full_disk d = {.run = &r, .from = 4, .to = 8};
    warnings = 0;
    wb_log_to(count_warnings, NULL);
    assert_int_equal(wb_train(loss, r.model, r.loader, r.optimiser, .epochs = EPOCHS,
                              .on_step = fill_disk, .user = &d, .checkpoint = checkpoint,
                              .every = 1),
                     WB_OK);
    assert_int_equal(warnings, 4);
    assert_int_equal(count_files(checkpoint), 3); /* no halves */
    assert_whole(&r);
    end(&r);

    r = begin(adam, 5);
    d = (full_disk){.run = &r, .from = STEPS - 1, .to = -1};
    const wb_status status =
        wb_train(loss, r.model, r.loader, r.optimiser, .epochs = EPOCHS, .on_step = fill_disk,
                 .user = &d, .checkpoint = fresh_folder(), .every = 1);
    (void)files_may_have(d.limit);
    wb_log_to(NULL, NULL);
    assert_int_equal(status, WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "the training is complete, but its last checkpoint was not saved");
    assert_whole(&r);
    end(&r);
    signal(SIGXFSZ, before);
}

/* ---- killed ---- */

static char self[256];

/* What a child does: trains in the folder, one checkpoint per step, and leaves path; from step `at`
 * on files end at `bytes`. */
typedef struct child {
    run run;
    int at;
    rlim_t bytes;
} child;

static bool limit_files(const wb_train_event *event) {
    const child *c = event->user;
    if (wb_step_count(event->optimiser) == c->at) (void)files_may_have(c->bytes);
    return true;
}

static int be_a_child(char **words) {
    if (open_scope(NULL)) return 2;
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    child c = {begin(adam, (uint64_t)atoi(words[2])), atoi(words[3]), (rlim_t)atoll(words[4])};
    const wb_status status =
        wb_train(loss, c.run.model, c.run.loader, c.run.optimiser, .epochs = EPOCHS,
                 .on_step = limit_files, .user = &c, .checkpoint = words[0], .every = 1, .keep = 2);
    if (status == WB_OK) leave(&c.run, words[1]);
    end(&c.run);
    return status == WB_OK ? close_scope(NULL) : wb_report("a child");
}

static bool has_checkpoint(const char *checkpoint) {
    DIR *open = opendir(checkpoint);
    bool found = false;
    for (const struct dirent *e; open && (e = readdir(open));)
        found = found || (strlen(e->d_name) > 4 && !strcmp(strrchr(e->d_name, '.'), ".npz"));
    if (open) closedir(open);
    return found;
}

/* Who goes on has another seed: all comes from the file. */
static pid_t start_child(const char *checkpoint, const char *path, int at, long long bytes) {
    char numbers[3][24];
    snprintf(numbers[0], sizeof numbers[0], "%d", has_checkpoint(checkpoint) ? 99 : 5);
    snprintf(numbers[1], sizeof numbers[1], "%d", at);
    snprintf(numbers[2], sizeof numbers[2], "%lld", bytes);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(self, self, "--child", checkpoint, path, numbers[0], numbers[1], numbers[2],
              (char *)NULL);
        _exit(3);
    }
    return pid;
}

static int wait_for(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* After the n-th byte of the file that follows a step, for many steps and bytes. */
static void killed_within_a_file_it_goes_on(void **state) {
    (void)state;
    static const struct {
        int at;
        long long bytes;
    } deaths[] = {{1, 0}, {2, 1}, {3, 64}, {6, 200}, {7, 1000}, {9, 2000}, {12, 2900}, {18, 0}};
    const char *checkpoint = fresh_folder(), *left = path_of("left.npz");
    (void)whole();
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        const int status = wait_for(start_child(checkpoint, left, deaths[i].at, deaths[i].bytes));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
        assert_true(count_files(checkpoint) <= 4); /* two, the half, and one that was to go */
    }
    assert_int_equal(wait_for(start_child(checkpoint, left, 0, 0)), 0);
    assert_int_equal(count_files(checkpoint), 2);
    assert_same_files(path_of("whole.npz"), left);
}

/* After some microseconds, again and again and ever later, until it comes to its end. */
static void killed_at_any_instant_it_goes_on(void **state) {
    (void)state;
    const char *left = path_of("left.npz");
    double life = 2000;
    int kills = 0;
    (void)whole();
    for (int round = 0; round < (compiles_kernels() ? 1 : 6); round++, life /= 5) {
        const char *checkpoint = fresh_folder();
        int status = -1;
        (void)unlink(left);
        for (; status != 0; life *= 1.2) {
            const pid_t pid = start_child(checkpoint, left, 0, 0);
            usleep((useconds_t)life);
            (void)kill(pid, SIGKILL);
            status = wait_for(pid);
            assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
            kills += status != 0;
        }
        assert_same_files(path_of("whole.npz"), left);
    }
    assert_true(kills > 0);
}

int main(int count, char **words) {
    if (count == 7 && strcmp(words[1], "--child") == 0) return be_a_child(words + 2);
    if (!wb_platform_program(self, sizeof self)) return 1;
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(a_damaged_file_is_passed_over),      TEST(nothing_starts_over_damaged_files),
        TEST(a_file_of_an_older_version_goes_on), TEST(another_rate_and_a_finished_run_are_told),
        TEST(another_model_is_refused),           TEST(a_folder_that_cannot_be_is_told_first),
        TEST(a_full_disk_costs_no_training),      TEST(killed_within_a_file_it_goes_on),
        TEST(killed_at_any_instant_it_goes_on),
    };
    ADD_TESTS(&tests, all);
    return run_test_list("train/test_checkpoints", &tests, make_folder, drop_folder);
}
