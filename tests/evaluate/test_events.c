/* WEBER_TRACE and weber profile. The program that is looked at is this one with an argument. */
#include <signal.h>
#include <unistd.h>

#include "platform/process.h"
#include "support/tool.h"

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Ten steps in batches of a loader. */
static void train(const wb_device *device) {
    wb_scope_open();
    wb_layer *host = wb_chain(wb_dense(4, 8, wb_relu), wb_dense(8, 2));
    wb_layer *model = wb_to(device, host);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1e-3), model);
    wb_loader *loader = wb_loader_new(.x = wb_ones(WB_F32, 4, 20), .y = wb_ones(WB_F32, 2, 20),
                                      .batchsize = 2, .device = device);
    for (wb_batch batch = {.x = NULL}; wb_next(loader, &batch);)
        (void)wb_item(wb_train_step(loss, model, &batch, NULL, o));
    wb_free(loader), wb_free(o), wb_free(model), wb_free(host);
    wb_scope_close();
}

static int work(const char *how) {
    if (strcmp(how, "elsewhere") == 0) {
        train(wb_get_device("checked", 0));
        return 0;
    }
    train(wb_cpu_device());
    if (strcmp(how, "killed") == 0) {
        (void)usleep(300000);
        train(wb_cpu_device()); /* a later event writes what is there */
        (void)raise(SIGKILL);
    }
    if (strcmp(how, "forked") == 0 && fork() == 0) {
        train(wb_cpu_device());
        exit(0);
    }
    return 0;
}

/* ---- the tests ---- */

static bool has_python(void) { return system("python3 -c 1 2>/dev/null") == 0; }

static char self[1024];

/* Runs this program and then the Python text, which finds the events in e. */
static int check_with_python(const char *how, const char *text) {
    char command[4096];
    (void)snprintf(command, sizeof command,
                   "WEBER_TRACE=trace.json '%s' %s; python3 -c '\nimport json\n"
                   "e = json.load(open(\"trace.json\"))\n%s'",
                   self, how, text);
    return system(command);
}

static const char nesting[] =
    "x = [v for v in e if v[\"ph\"] == \"X\"]\n"
    "commands = [v for v in x if v[\"cat\"] == \"command\"]\n"
    "plans = [v for v in x if v[\"name\"] == \"plan\"]\n"
    "assert len(plans) >= 10 and len(commands) >= 40, (len(plans), len(commands))\n"
    "for c in commands:\n"
    "    assert any(p[\"tid\"] == c[\"tid\"] and p[\"ts\"] <= c[\"ts\"] + 0.002 and\n"
    "               c[\"ts\"] + c[\"dur\"] <= p[\"ts\"] + p[\"dur\"] + 0.002 for p in plans), c\n"
    "args = set((c[\"args\"][\"direction\"], c[\"args\"][\"layer\"]) for c in commands\n"
    "           if c[\"name\"] == \"matmul\")\n"
    "for layer in (\"Dense(4 => 8), layer 1 of Chain\", \"Dense(8 => 2), layer 2 of Chain\"):\n"
    "    for direction in (\"forward\", \"backward\"):\n"
    "        assert (direction, layer) in args, args\n"
    /* 2 x 4 x 8 x 2, and bias and relu; W, x, b and y in f32 */
    "costs = [c[\"args\"] for c in commands if c[\"name\"] == \"matmul\" and\n"
    "         c[\"args\"][\"layer\"].startswith(\"Dense(4 => 8)\") and\n"
    "         c[\"args\"][\"direction\"] == \"forward\"]\n"
    "assert all(c[\"operations\"] == 128 + 32 and c[\"read_bytes\"] == 128 + 32 + 32 and\n"
    "           c[\"written_bytes\"] == 64 for c in costs) and costs, costs\n"
    "assert sum(v[\"cat\"] == \"loader\" for v in x) >= 10\n"
    "names = [v[\"args\"][\"name\"] for v in e if v[\"name\"] == \"thread_name\"]\n"
    "assert len(names) == len(set(v[\"tid\"] for v in x)), names\n";

static void events_nest_and_have_names(void) {
    if (!has_python()) return;
    expect(check_with_python("train", nesting) == 0);
}

/* A device that works by itself tells when it has done what was queued. */
static void devices_have_times_of_their_own(void) {
    if (!has_python()) return;
    expect(check_with_python(
               "elsewhere",
               "x = [v for v in e if v[\"ph\"] == \"X\"]\n"
               "queued = [v for v in x if v[\"cat\"] == \"queued command\"]\n"
               "done = [v for v in x if v[\"cat\"] == \"device command\"]\n"
               "assert len(done) >= 40 and len(done) == len(queued), (len(done), len(queued))\n"
               "assert [v[\"name\"] for v in done] == [v[\"name\"] for v in queued]\n"
               "assert [v[\"args\"] for v in done] == [v[\"args\"] for v in queued]\n"
               "end = 0\n"
               "for d, q in zip(done, queued):\n"
               "    assert d[\"ts\"] >= end - 0.002 and d[\"ts\"] >= q[\"ts\"] - 0.002, (d, q)\n"
               "    end = d[\"ts\"] + d[\"dur\"]\n"
               "assert len(set(v[\"tid\"] for v in done)) == 1\n") == 0);
    char arguments[2048];
    (void)snprintf(arguments, sizeof arguments, "profile --peak=100,10 '%s' elsewhere", self);
    expect(weber(arguments) == 0);
    expect_part(output, "          ms   share");
    expect_part(output, "forward   matmul            Dense(4 => 8), layer 1 of Chain\n");
}

static void a_file_is_complete_whenever_the_program_ends(void) {
    if (!has_python()) return;
    expect(check_with_python("killed", "assert len(e) > 40") == 0);
}

static void children_of_fork_tell_nothing(void) {
    if (!has_python()) return;
    expect(check_with_python("forked", nesting) == 0);
}

static void ranks_write_files_of_their_own(void) {
    char command[2048];
    (void)snprintf(command, sizeof command, "WEBER_TRACE=r.json WEBER_RANK=3 '%s' train", self);
    expect(system(command) == 0);
    expect_text(stage_read("r.json"), "(none)");
    expect_part(stage_read("r.json.3"), "\"pid\":3");
}

static void a_folder_that_is_not_there_is_a_warning(void) {
    char command[2048];
    (void)snprintf(command, sizeof command,
                   "WEBER_TRACE=none/r.json '%s' train 2>&1 | grep -q 'none/r.json cannot be "
                   "written'",
                   self);
    expect(system(command) == 0);
}

static void profiles_are_tables(void) {
    char arguments[2048];
    (void)snprintf(arguments, sizeof arguments, "profile '%s' train", self);
    expect(weber(arguments) == 0);
    expect_part(output, "ms   share     calls   Gflop/s     GB/s  of peak       MiB");
    expect_part(output, "  all; peak: ");
    expect_part(output, "forward   matmul            Dense(4 => 8), layer 1 of Chain\n");
    expect_part(output, "backward  matmul            Dense(8 => 2), layer 2 of Chain\n");
    expect_part(output, "update    step              Dense(8 => 2), layer 2 of Chain\n");
    expect_part(output, "100.0%");
    /* of a default device that is not there */
    expect(setenv("WEBER_DEVICE", "nowhere", 1) == 0);
    expect(weber(arguments) == 0);
    expect(unsetenv("WEBER_DEVICE") == 0);
    expect_part(output, "weber profile: WEBER_DEVICE");
    expect_part(output, "  all; the device's peak is not known\n");
    expect_part(output, "forward   matmul            Dense(4 => 8), layer 1 of Chain\n");
    (void)snprintf(arguments, sizeof arguments, "profile --rows 1 --peak=1,1 -- '%s' killed", self);
    expect(weber(arguments) == 128 + SIGKILL);
    expect_part(output, " more rows\n");
}

/* In the row that ends so; -1: there is none. */
static long calls_of(const char *row) {
    const char *end = strstr(output, row);
    double ms, share;
    long calls;
    while (end && end > output && end[-1] != '\n') end--;
    return end && sscanf(end, "%lf %lf%% %ld", &ms, &share, &calls) == 3 ? calls : -1;
}

/* Ten steps are ten runs of one plan. */
static void profiles_leave_out_the_first_run_of_each_plan(void) {
    static const struct {
        const char *option, *said;
        long calls;
    } rows[] = {
        {"", "calls in the first 1 run of each plan (--skip)\n", 9},
        {"--skip=0", NULL, 10},
        {"--skip=4", "calls in the first 4 runs of each plan (--skip)\n", 6},
        {"--skip 10", "profile: no plan ran more than 10 times; --skip=0 shows all runs\n", -1},
    };
    const char *const places[] = {"train", "elsewhere"}; /* the CPU; a device by itself */
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        char arguments[2048];
        (void)snprintf(arguments, sizeof arguments, "profile %s --peak=1,1 '%s' %s",
                       rows[i / 2].option, self, places[i % 2]);
        expect(weber(arguments) == 0);
        expect(calls_of("update    step              Dense(8 => 2)") == rows[i / 2].calls);
        if (rows[i / 2].said)
            expect_part(output, rows[i / 2].said);
        else
            expect(!strstr(output, "--skip"));
    }
    char arguments[2048];
    (void)snprintf(arguments, sizeof arguments, "profile --skip=-1 '%s' train", self);
    expect(weber(arguments) == 2);
}

/* Each rank writes a file; the table is that of the first, and no file stays. */
static void profiles_of_ranks_leave_no_files(void) {
    char arguments[2200];
    (void)snprintf(arguments, sizeof arguments,
                   "profile --peak=1,1 sh -c 'echo $WEBER_TRACE > place; "
                   "WEBER_RANK=1 \"%s\" train; \"%s\" train'",
                   self, self);
    expect(weber(arguments) == 0);
    expect_part(output, "forward   matmul            Dense(4 => 8), layer 1 of Chain\n");
    expect_part(stage_read("place"), "/tmp/weber-profile-");
    expect(system("test -z \"$(ls -d $(cat place)* $(dirname $(cat place)) 2>/dev/null)\"") == 0);
}

/* What libraries chose, for one. */
static void profiled_programs_say_more(void) {
    (void)unsetenv("WEBER_LOG");
    expect(weber("profile sh -c 'echo $WEBER_LOG > level'") == 0);
    expect_part(stage_read("level"), "info");
    (void)setenv("WEBER_LOG", "error", 1);
    expect(weber("profile sh -c 'echo $WEBER_LOG > level'") == 0);
    expect_part(stage_read("level"), "error");
    (void)unsetenv("WEBER_LOG");
}

static void profiles_have_mistakes(void) {
    char arguments[2048];
    expect(weber("profile") == 2);
    (void)snprintf(arguments, sizeof arguments, "profile --layers --peak=100,10 '%s' train", self);
    expect(weber(arguments) == 0);
    expect_part(output, "forward                     Dense(4 => 8), layer 1 of Chain\n");
    expect_part(output, "all; peak: 100.0 Gflop/s, 10.0 GB/s");
    expect(weber("profile --rows 0 true") == 2);
    expect_part(output, "weber profile: --rows must be a whole number from 1 on, got 0\nusage:");
    expect(weber("profile --peak=1 true") == 2);
    expect_part(output, "weber profile: --peak must be two numbers above 0, GFLOPS,GBS, got 1\n");
    expect(weber("profile --peak=0,1 true") == 2);
    expect(weber("profile --all true") == 2);
    expect(weber("profile") == 2);
    expect_part(output, "weber profile: PROGRAM is missing\nusage: weber profile");
    expect(weber("profile ./is-not-there") == 127);
    expect_part(output, "weber profile: ./is-not-there cannot be started: No such file");
    expect(weber("profile false") == 1);
    expect_part(output, "the program ran no plans");
    expect(weber("profile --help") == 0);
    expect_part(output, "usage: weber profile");
}

int main(int count, char **arguments) {
    if (count > 1) return work(arguments[1]);
    (void)unsetenv("WEBER_EAGER"), (void)unsetenv("WEBER_FUSE"); /* it is about plans */
    if (!wb_platform_program(self, sizeof self)) return 1;
    const struct CMUnitTest tests[] = {SCENE(events_nest_and_have_names),
                                       SCENE(devices_have_times_of_their_own),
                                       SCENE(a_file_is_complete_whenever_the_program_ends),
                                       SCENE(children_of_fork_tell_nothing),
                                       SCENE(ranks_write_files_of_their_own),
                                       SCENE(a_folder_that_is_not_there_is_a_warning),
                                       SCENE(profiles_are_tables),
                                       SCENE(profiles_leave_out_the_first_run_of_each_plan),
                                       SCENE(profiles_of_ranks_leave_no_files),
                                       SCENE(profiled_programs_say_more),
                                       SCENE(profiles_have_mistakes)};
    return cmocka_run_group_tests_name("evaluate/test_events", tests, NULL, NULL);
}
