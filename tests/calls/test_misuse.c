/* Every public function that takes an object of Weber's is called with a released one, with one of
 * another thread's, and with one of another kind, in each of its places: each is an error that says
 * so. The calls are written from the headers (generate.py), so that none is forgotten. */
#include <ctype.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "array/thread.h"
#include "base/error.h"
#include "calls/calls.h"
#include "support/files.h"
#include "support/support.h"

typedef enum misuse { RELEASED, FOREIGN, OTHER_KIND, MISUSES, ABSENT = MISUSES } misuse;

struct calls {
    const calls_row *row;
    misuse misuse;
    const struct surroundings *with;
    bool has_older;    /* an error is pending when the call comes */
    int target, asked; /* the place that gets the bad object, and how many there were so far */
    bool is_given;     /* the bad object */
    wb_batch batch;
    wb_array *arrays[2 * CALLS_MOST_LENGTH];
    wb_layer *layers[CALLS_MOST_LENGTH];
    void *objects[CALLS_MOST_LENGTH];
    wb_array *results[CALLS_MOST_RESULTS];
};

/* What the bad object is given together with: another argument may be refused first. One of these
 * has to do. */
static const struct surroundings {
    int64_t sizes[2]; /* of sound arrays; 0: no such dimension */
    bool few;         /* of the objects of a desc, the first two and the bad one */
    bool numbers, functions;
    bool own_model;   /* that of the optimisers and gradients, where nothing takes it over */
    const char *text; /* "name": another one each time */
} surroundings[] = {
    {{2, 3}, false, false, false, false, "layers.1.weight"},
    {{2, 2}, true, true, true, true, "layers.1.weight"},
    {{2, 3}, true, false, true, true, "name"},
    {{2, 3}, true, true, true, false, "ij,kj->ik"},
    {{6}, true, false, false, false, "weight"},
    {{0}, true, false, false, false, "m"},
};
enum { SURROUNDINGS = sizeof surroundings / sizeof *surroundings };

/* What is right though it is no error. */
static const struct {
    const char *function;
    misuse misuse;
    const char *why;
} allowed[] = {
    {"wb_free", FOREIGN, "it goes back to its owner"},
    {"wb_list_append", RELEASED, "takes a struct of the caller's alone"},
    {"wb_list_append", FOREIGN, "takes a struct of the caller's alone"},
    {"wb_batch_get", RELEASED, "hands out what the batch holds"},
    {"wb_batch_get", FOREIGN, "hands out what the batch holds"},
    {"wb_batch_get", OTHER_KIND, "hands out what the batch holds"},
};

/* ---- objects, each thread's own ---- */

static _Thread_local struct {
    wb_layer *model;
    wb_loader *loader;
} own;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_apply(model, batch->x));
}

static wb_gradients *make_gradients(void) {
    wb_gradients *gradients = NULL;
    const wb_batch batch = {.x = wb_ones(WB_F32, 2, 3)};
    wb_layer *model = wb_chain(wb_dense(2, 2)); /* which keeps them for its next ones */
    (void)wb_withgradient(loss, model, &batch, NULL, &gradients);
    wb_free(model);
    return gradients;
}

static _Thread_local const int64_t *sizes_of_arrays = surroundings[0].sizes;

static wb_array *make_array(void) {
    const int ndim = (sizes_of_arrays[0] > 0) + (sizes_of_arrays[1] > 0);
    wb_array *x = wb_normal_make(WB_F32, ndim, sizes_of_arrays);
    (void)wb_eval(x);
    return x;
}

static void *make(kind k) {
    switch (k) {
    case LAYER:
        return wb_chain(wb_dense(2, 2));
    case LOADER:
        return wb_loader_new(.x = wb_ones(WB_F32, 2, 4), .batchsize = 2, .background = false);
    case OPTIMISER:
        return wb_setup(wb_adam(), own.model);
    case GRADIENTS:
        return make_gradients();
    case PARAMETERS:
        return wb_params(own.model);
    case STATE:
        return wb_state(own.model);
    case CSV:
        return wb_read_csv(path_of("table.csv"));
    case SCHEDULE:
        return wb_schedule_constant(1);
    case ENTRY:
        return wb_text("a");
    case PROGRESS:
        return wb_progress_make((wb_progress_desc){.what = "calls", .total = 3});
    default:
        return make_array();
    }
}

/* What holds arrays belongs to a thread. */
static bool has_thread(kind k) { return k <= STATE; }

static void begin_own(void) {
    own.model = wb_chain(wb_dense(2, 2));
    own.loader = make(LOADER);
}

/* ---- another thread, which makes objects, and frees them when the next one is asked for ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_asked;
    kind kind;
    void *made;
} other = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *make_for_others(void *unused) {
    begin_own();
    (void)wb_scope_open();
    pthread_mutex_lock(&other.mutex);
    for (;;) {
        while (!other.is_asked) pthread_cond_wait(&other.changed, &other.mutex);
        (void)wb_scope_close();
        (void)wb_scope_open();
        wb_clear_error(); /* what the calls handed back, twice, say */
        other.made = make(other.kind);
        if (wb_report("another thread")) abort();
        other.is_asked = false;
        pthread_cond_broadcast(&other.changed);
    }
    return unused;
}

static void *made_by_another(kind k) {
    pthread_mutex_lock(&other.mutex);
    other.kind = k, other.is_asked = true;
    pthread_cond_broadcast(&other.changed);
    while (other.is_asked) pthread_cond_wait(&other.changed, &other.mutex);
    void *made = other.made;
    pthread_mutex_unlock(&other.mutex);
    return made;
}

/* ---- the bad object ---- */

static void *released(kind k) {
    (void)wb_scope_open();
    void *object = make(k);
    if (k != ARRAY) wb_free(object);
    (void)wb_scope_close();
    return object;
}

static void *ask(calls *c, kind k) {
    if (c->asked++ != c->target) return make(k);
    if (c->misuse == ABSENT) return NULL;
    if (c->misuse == FOREIGN && !has_thread(k)) return make(k);
    c->is_given = true;
    return c->misuse == RELEASED  ? released(k)
           : c->misuse == FOREIGN ? made_by_another(k)
           : k == LAYER           ? make(ARRAY)
                                  : make(LAYER);
}

/* ---- what generated calls ask for ---- */

wb_array *calls_array(calls *c) { return ask(c, ARRAY); }
wb_layer *calls_layer(calls *c) {
    wb_layer *layer = ask(c, LAYER);
    return c->asked - 1 == c->target || !c->with->own_model ? layer : own.model;
}
wb_layer *calls_own_layer(calls *c) { return ask(c, LAYER); }
wb_loader *calls_loader(calls *c) { return ask(c, LOADER); }
wb_optimiser *calls_optimiser(calls *c) { return ask(c, OPTIMISER); }
wb_gradients *calls_gradients(calls *c) { return ask(c, GRADIENTS); }
wb_parameters *calls_parameters(calls *c) { return ask(c, PARAMETERS); }
wb_file *calls_file(calls *c) { return ask(c, STATE); }
wb_csv *calls_csv(calls *c) { return ask(c, CSV); }
wb_schedule *calls_schedule(calls *c) { return ask(c, SCHEDULE); }
wb_text_entry *calls_entry(calls *c) { return ask(c, ENTRY); }
wb_progress *calls_progress(calls *c) { return ask(c, PROGRESS); }
/* Of any kind, here an array or a layer. */
void *calls_object(calls *c) {
    if (c->misuse == OTHER_KIND) return c->asked++, make(ARRAY);
    return ask(c, c->with->functions ? LAYER : ARRAY);
}
void *calls_own_object(calls *c) { return calls_object(c); }
wb_rule calls_rule(calls *c) { return (void)c, wb_adam(); }
FILE *calls_stream(calls *c) { return (void)c, stdout; }
const wb_device *calls_device(calls *c) { return (void)c, wb_cpu_device(); }

const wb_record *calls_record(calls *c) {
    (void)c;
    return wb_record_get(wb_file_root(make(STATE)), "layers.1.weight");
}

wb_batch *calls_batch(calls *c, bool is_given) {
    if (is_given) c->batch.x = calls_array(c), c->batch.y = calls_array(c);
    return &c->batch;
}

int calls_length(calls *c) { return (void)c, 2; }

static wb_array **two_arrays(calls *c) {
    wb_array **list = c->arrays[0] ? c->arrays + CALLS_MOST_LENGTH : c->arrays;
    for (int i = 0; i < 2; i++) list[i] = calls_array(c);
    return list;
}
wb_array *const *calls_arrays(calls *c, int count) { return (void)count, two_arrays(c); }
wb_array **calls_carries(calls *c, int count) { return (void)count, two_arrays(c); }

wb_layer *const *calls_own_layers(calls *c, int count) {
    for (int i = 0; i < count; i++) c->layers[i] = calls_own_layer(c);
    return c->layers;
}

void *const *calls_own_objects(calls *c, int count) {
    for (int i = 0; i < count; i++) c->objects[i] = calls_own_object(c);
    return c->objects;
}

const char *const *calls_texts(calls *c) {
    static const char *const texts[CALLS_MOST_LENGTH] = {"a", "b"};
    return (void)c, texts;
}

const double *calls_reals(calls *c) {
    static const double numbers[CALLS_MOST_LENGTH] = {.25, .25};
    return (void)c, numbers;
}

int calls_rank(calls *c) { return (void)c, 2; }
const int64_t *calls_sizes(calls *c) {
    static const int64_t sizes[CALLS_MOST_RANK] = {2, 3};
    return (void)c, sizes;
}
const int64_t *calls_dims(calls *c) {
    static const int64_t dims[CALLS_MOST_RANK] = {0, 1};
    return (void)c, dims;
}

int64_t calls_size(calls *c) { return (void)c, 2; }
int64_t calls_dim(calls *c) { return (void)c, 0; }
int64_t calls_small(calls *c) { return (void)c, 2; }
double calls_real(calls *c) { return (void)c, .5; }
bool calls_flag(calls *c) { return (void)c, true; }
int calls_choice(calls *c) { return (void)c, 0; }

const char *calls_text(calls *c, calls_text_kind kind) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    if (kind == CALLS_NAME && strcmp(c->with->text, "name") == 0) return names[c->asked % 8];
    return kind == CALLS_PATH ? path_of("m.npz") : kind == CALLS_BACKEND ? "CPU" : c->with->text;
}

static char room[CALLS_ROOM_BYTES];
void *calls_memory(calls *c) { return (void)c, room; }
void *calls_room(calls *c) { return (void)c, room; }
size_t calls_room_bytes(calls *c) { return (void)c, 24; }
wb_array **calls_results(calls *c, int most) { return (void)most, c->results; }

bool calls_gives(calls *c, calls_member kind) {
    if (kind == CALLS_NUMBER) return c->with->numbers;
    if (kind == CALLS_FUNCTION) return c->with->functions;
    if (kind == CALLS_TEXT || !c->with->few || c->asked < 2 || c->asked == c->target) return true;
    c->asked++; /* a place that stays empty */
    return false;
}
bool calls_goes_on(calls *c, calls_member kind, int i) { return calls_gives(c, kind) && i == 0; }

static const char older[] = "an older error";
void calls_ready(calls *c) {
    if (c->has_older) (void)wb_fail(WB_ERROR_IO, "%s", older);
}

#define LOOKS_AT(name, type)                                                                       \
    void calls_##name(calls *c, type result) { (void)c, (void)result; }
LOOKS_AT(give_array, wb_array *)
LOOKS_AT(give_layer, wb_layer *)
LOOKS_AT(look_at_layer, wb_layer *)
LOOKS_AT(give_loader, wb_loader *)
LOOKS_AT(give_optimiser, wb_optimiser *)
LOOKS_AT(give_gradients, wb_gradients *)
LOOKS_AT(give_parameters, wb_parameters *)
LOOKS_AT(give_file, wb_file *)
LOOKS_AT(give_csv, wb_csv *)
LOOKS_AT(give_schedule, wb_schedule *)
LOOKS_AT(give_entry, wb_text_entry *)
LOOKS_AT(give_progress, wb_progress *)
LOOKS_AT(give_record, const wb_record *)
LOOKS_AT(give_object, void *)
void calls_give_read(calls *c, wb_array *x, const void *memory) { (void)c, (void)x, (void)memory; }
LOOKS_AT(give_rule, wb_rule)
LOOKS_AT(give_status, wb_status)

/* ---- the cases ---- */

/* Where a process was that has ended. */
static struct place { int row, misuse, target, faults, cases; } * place;

/* Letters and digits alone, small. */
static void simplify(const char *text, char *out, size_t size_bytes) {
    size_t used = 0;
    for (; *text && used + 1 < size_bytes; text++)
        if (isalnum((unsigned char)*text)) out[used++] = (char)tolower((unsigned char)*text);
    out[used] = 0;
}

/* Whether the message begins with the function's name, or one without what it has in common with
 * others: "relu" of wb_relu_with. */
static bool names_function(const char *function, const char *message) {
    char name[80], begin[80], first[80];
    if (strncmp(message, "wb_", 3) == 0) message += 3;
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(message, ":"), message);
    simplify(function + strlen("wb_"), name, sizeof name);
    simplify(first, begin, sizeof begin);
    begin[strcspn(begin, "2")] = 0; /* "Dense(2 => 2), layer 1 of Chain" */
    return strstr(name, begin) || strstr(begin, name);
}

/* Those that say the name which they were given, and those whose function of the caller is told. */
static bool is_told_by_another(const char *function) {
    static const char *const names[] = {"wb_function_make", "wb_host_function_make",
                                        "wb_withgradient", "wb_withgradient_for", "wb_train_step"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(function, names[i]) == 0) return true;
    return false;
}

static const char *complaint_of(const calls *c) {
    static const char *const wanted[] = {"released", "another thread", ""};
    if (!c->is_given) return NULL;
    if (!wb_failed()) return "no error";
    const char *message = wb_error_message();
    const bool good = strstr(message, wanted[c->misuse]) &&
                      (names_function(c->row->name, message) || is_told_by_another(c->row->name));
    return good ? NULL : message;
}

static bool is_allowed(const calls *c) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(allowed[i].function, c->row->name) == 0 && allowed[i].misuse == c->misuse)
            return true;
    return false;
}

static void complain(const calls *c, const char *what) {
    static const char *const names[] = {"a released object", "another thread's object",
                                        "an object of another kind"};
    place->faults++;
    fprintf(stderr, "%s with %s in place %d: %s\n", c->row->name, names[c->misuse], c->target,
            what);
}

static bool is_older_error(void) {
    return wb_error_status() == WB_ERROR_IO &&
           strncmp(wb_error_message(), older, strlen(older)) == 0;
}

/* Makes the call; true if it is as it should be, else `complaint` says what happened. */
static bool is_right(calls *c, char *complaint, size_t size_bytes) {
    const int64_t depth = wb_thread_get()->scope_count;
    sizes_of_arrays = c->with->sizes;
    (void)wb_scope_open();
    c->row->call(c);
    const char *text = !c->has_older      ? complaint_of(c)
                       : is_older_error() ? NULL
                       : wb_failed()      ? wb_error_message()
                                          : "no error";
    if (text) (void)snprintf(complaint, size_bytes, "%s", text);
    wb_clear_error();
    while (wb_thread_get()->scope_count > depth) (void)wb_scope_close();
    wb_clear_error();
    (void)wb_training(false);
    return !text;
}

/* False: there is no such place. */
static bool run_case(const calls *which) {
    char complaint[1000], first[1000];
    for (int i = 0; i < SURROUNDINGS; i++) {
        calls c = *which;
        c.with = &surroundings[i];
        const bool refused = is_right(&c, i ? complaint : first, sizeof complaint);
        if (c.asked <= c.target) return false;
        if (!c.is_given) return true;
        if (!refused && !is_allowed(&c)) continue;
        place->cases++;
        return true;
    }
    complain(which, first);
    return true;
}

static void misuse_from(struct place at) {
    for (int row = at.row; row < calls_count; row++) {
        if (!calls_rows[row].takes_objects) continue;
        for (int m = row == at.row ? at.misuse : 0; m < MISUSES; m++) {
            const int first = row == at.row && m == at.misuse ? at.target : 0;
            bool goes_on = true;
            for (int target = first; goes_on; target++) {
                calls c = {.row = &calls_rows[row], .misuse = (misuse)m, .target = target};
                place->row = row, place->misuse = m, place->target = target;
                goes_on = run_case(&c);
            }
        }
    }
}

/* What is called while an error is pending: with all that it needs, and without each of the
 * objects, whose maker may have failed. */
static void call_with_older(int row, const struct surroundings *with) {
    bool goes_on = calls_rows[row].takes_objects;
    for (int target = -1; goes_on; target++) {
        calls c = {.row = &calls_rows[row],
                   .misuse = ABSENT,
                   .target = target,
                   .with = with,
                   .has_older = true};
        char complaint[1000];
        place->cases++;
        if (!is_right(&c, complaint, sizeof complaint)) {
            place->faults++;
            fprintf(stderr, "%s: the error became %s\n", c.row->name, complaint);
        }
        goes_on = c.asked > target;
    }
}

static void call_from(struct place at) {
    for (int row = at.row; row < calls_count; row++) {
        for (int i = row == at.row ? at.target : 0; i < SURROUNDINGS; i++) {
            place->row = row, place->target = i;
            call_with_older(row, &surroundings[i]);
        }
    }
}

static void run_child(void (*run)(struct place at)) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    pthread_t thread;
    for (int i = 0; i < 5; i++) (void)signal(signals[i], SIG_DFL); /* not cmocka's */
    (void)!freopen("/dev/null", "w", stdout);
    (void)alarm(600);
    begin_own();
    if (pthread_create(&thread, NULL, make_for_others, NULL) != 0) _exit(1);
    run(*place);
    place->row = calls_count;
    _exit(0);
}

/* A crash ends one process, and the next one goes on after the call that crashed. */
static void run_all(void (*run)(struct place at)) {
    *place = (struct place){.row = 0};
    while (place->row < calls_count) {
        const pid_t child = fork();
        if (child == 0) run_child(run);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (place->row == calls_count) break;
        const calls c = {.row = &calls_rows[place->row],
                         .misuse = (misuse)place->misuse,
                         .target = place->target};
        complain(&c, "ended the program");
        place->target++;
    }
    printf("%d cases\n", place->cases);
    assert_true(place->cases > 1000);
    assert_int_equal(place->faults, 0);
}

static void misused_objects_are_errors(void **state) {
    (void)state;
    run_all(misuse_from);
}

static void an_older_error_stays_word_for_word(void **state) {
    (void)state;
    run_all(call_from);
}

static int set_up(void **state) {
    place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED || make_folder(state) != 0) return -1;
    write_file(path_of("table.csv"), "a,b\n1,2\n3,4\n", 12);
    return 0;
}

int main(void) {
    (void)setenv("WEBER_DEBUG", "mem", 1); /* released nodes stay unused */
    (void)setenv("WEBER_LOG", "error", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(misused_objects_are_errors),
                                       cmocka_unit_test(an_older_error_stays_word_for_word)};
    return cmocka_run_group_tests_name("calls/test_misuse", tests, set_up, drop_folder);
}
