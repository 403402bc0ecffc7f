/* Random calls of the public functions, as tests/calls/generate.py writes them from the headers:
 * the input says which, and with which arguments. What they give is given to later ones. All
 * objects are alive and this thread's (tests/calls tries others); sizes, numbers and texts are of
 * any kind. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "array/array.h"
#include "array/thread.h"
#include "base/object.h"
#include "calls/calls.h"
#include "fuzz_path.h"

enum { SLOTS = 12, MOST_CALLS = 400, MOST_ELEMENTS = 4096, MEMORY_LIMIT = 8 << 20 };

typedef struct slot {
    void *object;
    bool is_owned; /* by a wb_free that is to come; else by a scope, a container, ... */
} slot;

/* A layer that a call takes over: whose it is afterwards shows in its references. */
typedef struct handed {
    wb_layer *layer;
    int32_t refs, owned;
} handed;

struct calls {
    const uint8_t *data;
    size_t size, at;
    int64_t depth; /* of scopes, around all calls */
    const char *function;
    slot slots[KINDS][SLOTS];
    handed handed[CALLS_MOST_LENGTH * CALLS_MOST_LENGTH];
    int handed_count;
    wb_rule rules[SLOTS];
    wb_batch turn, given; /* of wb_next; to be read */
    wb_array *lists[4][CALLS_MOST_LENGTH];
    wb_layer *layers[CALLS_MOST_LENGTH];
    void *objects[CALLS_MOST_LENGTH];
    wb_array *results[CALLS_MOST_RESULTS];
    int list_count;
    wb_array *read[MOST_CALLS]; /* by wb_read_begin */
    int read_count;
    const char *texts[CALLS_MOST_LENGTH];
    double reals[CALLS_MOST_LENGTH];
    int64_t sizes[4][CALLS_MOST_RANK];
    int sizes_count;
    _Alignas(64) char memory[CALLS_ROOM_BYTES];
    _Alignas(64) char room[CALLS_ROOM_BYTES];
};

/* ---- what the input says ---- */

static int byte(calls *c) { return c->at < c->size ? c->data[c->at++] : 0; }
static int below(calls *c, int n) { return byte(c) % n; }
/* Once in so many; never when the input is at its end. */
static bool once_in(calls *c, int n) { return byte(c) % n == n - 1; }

#define ONE_OF(c, list) (list)[below(c, (int)(sizeof(list) / sizeof *(list)))]

bool calls_flag(calls *c) { return below(c, 2) == 1; }

int64_t calls_small(calls *c) { return once_in(c, 30) ? -1 : below(c, CALLS_MOST_LENGTH + 1); }

/* Between these and those that no array has there is nothing: they would be computed for hours. */
int64_t calls_size(calls *c) {
    static const int64_t far[] = {-1, -2, 0, 40, INT32_MAX, INT64_MAX / 2, INT64_MAX, INT64_MIN};
    return once_in(c, 16) ? ONE_OF(c, far) : 1 + below(c, 6);
}

int64_t calls_dim(calls *c) {
    static const int64_t far[] = {-9, 9, 20, INT32_MIN, INT64_MAX, INT64_MIN, WB_END};
    return once_in(c, 16) ? ONE_OF(c, far) : below(c, 6) - 3;
}

double calls_real(calls *c) {
    static const double far[] = {0,     -0.0, NAN,    INFINITY, -INFINITY, 1e30,        1e-30,
                                 1e308, 255,  9.3e18, -9.3e18,  1e-320,    2147483648.0};
    return once_in(c, 6) ? ONE_OF(c, far) : (below(c, 33) - 16) / 8.0;
}

int calls_choice(calls *c) { return once_in(c, 40) ? (calls_flag(c) ? 99 : -1) : below(c, 12); }

int calls_rank(calls *c) {
    return once_in(c, 20) ? below(c, CALLS_MOST_RANK + 2) - 1 : below(c, 4);
}

int calls_length(calls *c) { return once_in(c, 40) ? -1 : below(c, 5); }

bool calls_gives(calls *c, calls_member member) { return (void)member, below(c, 4) == 1; }

bool calls_goes_on(calls *c, calls_member member, int i) {
    return i < 4 && (member == CALLS_OBJECT ? calls_flag(c) : below(c, 3) == 1);
}

static int64_t *next_list(calls *c) { return c->sizes[c->sizes_count++ % 4]; }

/* Their product is small, or no array has it. */
const int64_t *calls_sizes(calls *c) {
    int64_t *sizes = next_list(c), product = 1;
    if (once_in(c, 60)) return NULL;
    for (int i = 0; i < CALLS_MOST_RANK; i++) {
        sizes[i] = once_in(c, 40) ? calls_size(c) : 1 + below(c, 4);
        if (sizes[i] > 40) sizes[i] = INT64_MAX;
        if (sizes[i] > 0 && sizes[i] < INT64_MAX) product *= sizes[i];
        if (product > MOST_ELEMENTS / 40) product /= sizes[i], sizes[i] = 1;
    }
    return sizes;
}

const int64_t *calls_dims(calls *c) {
    int64_t *dims = next_list(c);
    for (int i = 0; i < CALLS_MOST_RANK; i++) dims[i] = i < 4 ? calls_dim(c) : i;
    return once_in(c, 60) ? NULL : dims;
}

const double *calls_reals(calls *c) {
    for (int i = 0; i < CALLS_MOST_LENGTH; i++) c->reals[i] = calls_real(c);
    return once_in(c, 60) ? NULL : c->reals;
}

/* ---- texts ---- */

static char folder[64];
static const char *const files[] = {"a.bson", "a.npz", "a.safetensors", "a.npy",
                                    "a.csv",  "a.txt", "a.toml"};

static const char *path(calls *c) {
    static char text[4][128];
    static int next;
    if (once_in(c, 40)) return calls_flag(c) ? "" : NULL;
    char *out = text[next++ % 4];
    (void)snprintf(out, sizeof text[0], "%s/%s", folder, ONE_OF(c, files));
    return out;
}

const char *calls_text(calls *c, calls_text_kind kind) {
    static const char *const names[] = {"weight",
                                        "bias",
                                        "layers.1.weight",
                                        "layers.1",
                                        "layers.2.bias",
                                        "1",
                                        "x",
                                        "y",
                                        "eta",
                                        "layers",
                                        "a",
                                        "b",
                                        "m",
                                        "beta1",
                                        "ij,jk->ik",
                                        "ii->i",
                                        "mean",
                                        "diag.scale",
                                        "cell.Wi",
                                        "Chain(Dense(3 => 2), BatchNorm(2))",
                                        "GRU",
                                        "relu",
                                        "Dense(3 => 3)",
                                        "epoch",
                                        "i,j->ij",
                                        "*",
                                        "*.bias"};
    static const char *const far[] = {
        "",
        "..",
        "layers.999999999999999999999.weight",
        "\xff\xfe",
        "%s%n",
        NULL,
        "β",
        "\n",
        "layers.-1",
        "Chain(Dense(2=>2",
        "->",
        "ij...,k->...",
    };
    static const char *const backends[] = {"CPU", "checked", "CPU", "", "none", NULL};
    if (kind == CALLS_PATH) return path(c);
    if (kind == CALLS_BACKEND) return ONE_OF(c, backends);
    return once_in(c, 16) ? ONE_OF(c, far) : ONE_OF(c, names);
}

const char *const *calls_texts(calls *c) {
    for (int i = 0; i < CALLS_MOST_LENGTH; i++) c->texts[i] = calls_text(c, CALLS_NAME);
    return once_in(c, 60) ? NULL : c->texts;
}

/* ---- objects ---- */

static void forget_released(calls *c) {
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < SLOTS; i++)
            if (wb_object_is_released(c->slots[k][i].object)) c->slots[k][i] = (slot){0};
    if (wb_object_is_released(c->turn.loader_)) c->turn = (wb_batch){0};
}

static void empty(calls *c, slot *s) {
    void *object = s->is_owned ? s->object : NULL;
    *s = (slot){0};
    if (!object) return;
    wb_free(object);
    forget_released(c);
}

static void put(calls *c, kind k, void *object, bool is_owned) {
    if (!object) return;
    slot *s = &ONE_OF(c, c->slots[k]);
    empty(c, s);
    if (wb_object_is_released(object)) return; /* with what made room for it */
    *s = (slot){object, is_owned};
}

static wb_layer *make_layer(calls *c) {
    static const char *const models[] = {
        "Dense(3 => 3)",
        "Chain(Dense(3 => 4, relu), BatchNorm(4), Dropout(0.5), Dense(4 => 3))",
        "LSTM(3 => 2)",
        "Chain(Conv((2,), 3 => 2, relu), MaxPool((2,)), flatten)",
        "Chain(LayerNorm(3), Parallel(+, Dense(3 => 3), Dense(3 => 3)))",
        "GRU(3 => 3)",
        "Embedding(5 => 3)",
    };
    return wb_parse(.text = ONE_OF(c, models));
}

static wb_loader *make_loader(calls *c) {
    return wb_loader_new(.x = wb_ones(WB_F32, 3, 8), .y = wb_ones(WB_F32, 3, 8),
                         .batchsize = 1 + below(c, 3), .background = !(below(c, 4) != 3));
}

static wb_gradients *make_gradients(calls *c) {
    wb_gradients *gradients = NULL;
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 2)};
    (void)wb_withgradient(wb_loss_fn_stub, calls_layer(c), &batch, NULL, &gradients);
    return gradients;
}

static wb_array *make_array(calls *c) {
    static const wb_dtype dtypes[] = {WB_F32, WB_F32,  WB_F32, WB_F64,
                                      WB_I32, WB_BOOL, WB_F16, WB_U8};
    const wb_dtype dtype = ONE_OF(c, dtypes);
    const int ndim = below(c, 4);
    int64_t sizes[4];
    for (int d = 0; d < 4; d++) sizes[d] = once_in(c, 30) ? 0 : 1 + below(c, 4);
    wb_array *x = wb_normal_make(WB_F32, ndim, sizes);
    return dtype == WB_F32 ? x : wb_cast(x, dtype);
}

static void *make(calls *c, kind k) {
    switch (k) {
    case ARRAY:
        return make_array(c);
    case LAYER:
        return make_layer(c);
    case LOADER:
        return make_loader(c);
    case OPTIMISER:
        return wb_setup(calls_rule(c), calls_layer(c));
    case GRADIENTS:
        return make_gradients(c);
    case PARAMETERS:
        return wb_params(calls_layer(c));
    case STATE:
        return wb_state(calls_layer(c));
    case SCHEDULE:
        return wb_schedule_cosine(1, .1, 5);
    case ENTRY:
        return wb_text("a");
    case PROGRESS:
        return wb_progress_make((wb_progress_desc){.what = "calls", .total = 3});
    default:
        return NULL;
    }
}

/* An object of this kind, mostly one that is there. */
static void *find(calls *c, kind k) {
    if (once_in(c, 50)) return NULL;
    for (int i = 0; i < 3; i++) {
        void *object = ONE_OF(c, c->slots[k]).object;
        if (object) return object;
    }
    void *made = make(c, k);
    put(c, k, made, k != ARRAY && k != GRADIENTS && k != ENTRY);
    return made && !wb_object_is_released(made) ? made : NULL;
}

wb_array *calls_array(calls *c) { return find(c, ARRAY); }
wb_layer *calls_layer(calls *c) { return find(c, LAYER); }
wb_loader *calls_loader(calls *c) { return find(c, LOADER); }
wb_optimiser *calls_optimiser(calls *c) { return find(c, OPTIMISER); }
wb_gradients *calls_gradients(calls *c) { return find(c, GRADIENTS); }
wb_parameters *calls_parameters(calls *c) { return find(c, PARAMETERS); }
wb_file *calls_file(calls *c) { return find(c, STATE); }
wb_csv *calls_csv(calls *c) { return find(c, CSV); }
wb_progress *calls_progress(calls *c) { return find(c, PROGRESS); }

static slot *slot_of(calls *c, const void *object) {
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < SLOTS; i++)
            if (c->slots[k][i].object == object && c->slots[k][i].is_owned) return &c->slots[k][i];
    return NULL;
}

/* Those that make one of others own them. */
wb_text_entry *calls_entry(calls *c) { return find(c, ENTRY); }
wb_schedule *calls_schedule(calls *c) {
    static const char makers[] = "wb_schedule_";
    wb_schedule *schedule = find(c, SCHEDULE);
    if (strncmp(c->function, makers, strlen(makers)) != 0) return schedule;
    if (strcmp(c->function, "wb_schedule_at") == 0) return schedule;
    slot *s = slot_of(c, schedule);
    if (!s) return NULL;
    *s = (slot){0};
    return schedule;
}

/* wb_free gets what this program owns, and nothing else. */
void *calls_object(calls *c) {
    void *object = find(c, (kind)below(c, KINDS));
    if (strcmp(c->function, "wb_free") != 0) return object;
    slot *s = slot_of(c, object);
    if (!s) return NULL;
    *s = (slot){0};
    return object;
}

wb_layer *calls_own_layer(calls *c) {
    wb_layer *layer = find(c, LAYER);
    slot *s = layer ? slot_of(c, layer) : NULL;
    if (!s || c->handed_count == (int)(sizeof c->handed / sizeof *c->handed)) return layer;
    s->is_owned = false;
    c->handed[c->handed_count++] = (handed){layer, layer->refs_, layer->owned_};
    return layer;
}

void *calls_own_object(calls *c) {
    return calls_flag(c) ? (void *)calls_array(c) : (void *)calls_own_layer(c);
}

/* Those that the call did not take over are this program's again. */
static void take_back(calls *c) {
    for (int i = 0; i < c->handed_count; i++) {
        const handed *h = &c->handed[i];
        if (!h->layer || wb_object_is_released(h->layer)) continue;
        if (h->layer->refs_ == h->refs && h->layer->owned_ == h->owned)
            put(c, LAYER, h->layer, true);
    }
    c->handed_count = 0;
}

static wb_array **array_list(calls *c, int count) {
    wb_array **list = c->lists[c->list_count++ % 4];
    for (int i = 0; i < CALLS_MOST_LENGTH; i++) list[i] = i < count ? calls_array(c) : NULL;
    return list;
}
wb_array *const *calls_arrays(calls *c, int count) {
    return once_in(c, 60) ? NULL : array_list(c, count);
}
wb_array **calls_carries(calls *c, int count) {
    wb_array **list = array_list(c, count);
    return list;
}

wb_layer *const *calls_own_layers(calls *c, int count) {
    for (int i = 0; i < CALLS_MOST_LENGTH; i++)
        c->layers[i] = i < count ? calls_own_layer(c) : NULL;
    return c->layers;
}

void *const *calls_own_objects(calls *c, int count) {
    for (int i = 0; i < CALLS_MOST_LENGTH; i++)
        c->objects[i] = i < count ? calls_own_object(c) : NULL;
    return c->objects;
}

wb_batch *calls_batch(calls *c, bool is_given) {
    if (!is_given || once_in(c, 4)) return &c->turn;
    c->given = (wb_batch){.x = calls_array(c)};
    if (calls_flag(c)) c->given.y = calls_array(c);
    c->given.size = below(c, 4);
    return once_in(c, 40) ? NULL : &c->given;
}

const wb_record *calls_record(calls *c) {
    const wb_record *r = wb_file_root(calls_file(c));
    for (int i = below(c, 5); i > 0 && r && wb_record_count(r) > 0; i--)
        r = wb_record_at(r, byte(c) % wb_record_count(r));
    return r;
}

const wb_device *calls_device(calls *c) { return once_in(c, 20) ? NULL : wb_cpu_device(); }

FILE *calls_stream(calls *c) {
    static FILE *nowhere;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    return once_in(c, 40) ? NULL : nowhere;
}

wb_rule calls_rule(calls *c) {
    switch (below(c, 6)) {
    case 0:
        return wb_adam();
    case 1:
        return wb_momentum(.eta = calls_real(c));
    case 2:
        return wb_descent();
    case 3:
        return wb_muon();
    default:
        return ONE_OF(c, c->rules);
    }
}

void *calls_memory(calls *c) {
    for (int i = 0; i < 64; i++) c->memory[i] = (char)byte(c);
    return once_in(c, 60) ? NULL : c->memory;
}
void *calls_room(calls *c) { return once_in(c, 60) ? NULL : c->room; }
size_t calls_room_bytes(calls *c) { return once_in(c, 4) ? 0 : (size_t)byte(c); }

wb_array **calls_results(calls *c, int room) {
    return (void)room, once_in(c, 60) ? NULL : c->results;
}

void calls_ready(calls *c) { (void)c; }

/* ---- what comes back ---- */

/* Of what many are asked of, such as the observations of an array without elements. */
static bool is_large(const wb_array *x) {
    for (int d = 0; d < x->ndim; d++)
        if (x->sizes[d] > MOST_ELEMENTS) return true;
    return wb_count(x) > MOST_ELEMENTS;
}

/* Large ones would be computed for long. A batch whose turn is over has released ones. */
void calls_give_array(calls *c, wb_array *x) {
    const bool is_kept = strcmp(c->function, "wb_keep") == 0;
    if (x && !wb_object_is_released(x) && (is_kept || !is_large(x))) put(c, ARRAY, x, is_kept);
}
void calls_give_layer(calls *c, wb_layer *layer) {
    for (int i = 0; i < c->handed_count; i++)
        if (c->handed[i].layer == layer) c->handed[i].layer = NULL;
    put(c, LAYER, layer, true);
}
void calls_look_at_layer(calls *c, wb_layer *layer) { put(c, LAYER, layer, false); }
void calls_give_loader(calls *c, wb_loader *loader) { put(c, LOADER, loader, true); }
void calls_give_optimiser(calls *c, wb_optimiser *o) { put(c, OPTIMISER, o, true); }
void calls_give_gradients(calls *c, wb_gradients *gradients) {
    put(c, GRADIENTS, gradients, strcmp(c->function, "wb_gradients_keep") == 0);
}
void calls_give_parameters(calls *c, wb_parameters *p) { put(c, PARAMETERS, p, true); }
void calls_give_file(calls *c, wb_file *file) { put(c, STATE, file, true); }
void calls_give_csv(calls *c, wb_csv *csv) { put(c, CSV, csv, true); }
void calls_give_schedule(calls *c, wb_schedule *schedule) { put(c, SCHEDULE, schedule, true); }
void calls_give_entry(calls *c, wb_text_entry *entry) { put(c, ENTRY, entry, false); }
void calls_give_progress(calls *c, wb_progress *progress) { put(c, PROGRESS, progress, true); }
void calls_give_record(calls *c, const wb_record *record) { (void)c, (void)record; }
void calls_give_object(calls *c, void *object) {
    if (object && wb_class_of(object) == &wb_array_class)
        calls_give_array(c, object);
    else
        calls_give_layer(c, object);
}
void calls_give_read(calls *c, wb_array *x, const void *memory) {
    if (memory) c->read[c->read_count++] = x;
}
void calls_give_rule(calls *c, wb_rule rule) { ONE_OF(c, c->rules) = rule; }
void calls_give_status(calls *c, wb_status status) { (void)c, (void)status; }

/* ---- a run ---- */

static bool is_verbose;
static int64_t call_count;

static void call(calls *c) {
    const int number = (byte(c) << 8 | byte(c)) % calls_count;
    c->function = calls_rows[number].name;
    c->list_count = c->sizes_count = 0;
    memset(c->results, 0, sizeof c->results);
    memset(c->lists, 0, sizeof c->lists);
    if (is_verbose) (void)fprintf(stderr, "%s\n", c->function);
    const bool is_last = wb_thread_get()->scope_count == c->depth + 1;
    const bool closes =
        strcmp(c->function, "wb_scope_close") == 0 || strcmp(c->function, "wb_scope_leave") == 0;
    if (is_last && closes) return;
    call_count++;
    calls_rows[number].call(c);
    if (is_verbose && wb_failed()) (void)fprintf(stderr, "    %s\n", wb_error_message());
    forget_released(c);
    take_back(c);
    for (int i = 0; i < CALLS_MOST_RESULTS; i++)
        if (!wb_object_is_released(c->results[i])) calls_give_array(c, c->results[i]);
    if (!once_in(c, 30)) wb_clear_error();
}

/* A queue holds the memory that it still copies: wb_gpu chooses `checked` once calls have told it
 * to, whose copies wait. */
static void finish_queues(void) {
    const wb_device *const *device = wb_loaded("checked") ? wb_devices("checked") : NULL;
    for (; device && *device; device++) (void)wb_device_sync(*device);
}

static void settle(void) {
    wb_clear_error();
    finish_queues();
    wb_clear_error();
    (void)wb_training(false);
    wb_seed(1);
    wb_memory_limit(wb_cpu_device(), MEMORY_LIMIT);
    wb_set_threads(2);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s/%s", folder, files[i]);
        (void)remove(text);
    }
    wb_clear_error();
}

static void end(calls *c) {
    while (c->read_count-- > 0)
        if (!wb_object_is_released(c->read[c->read_count])) wb_read_end(c->read[c->read_count]);
    for (int k = KINDS - 1; k >= 0; k--)
        for (int i = 0; i < SLOTS; i++) empty(c, &c->slots[k][i]);
    wb_clear_error();
    while (wb_thread_get()->scope_count > c->depth) (void)wb_scope_close();
    settle();
}

static void leave(void) {
    (void)fprintf(stderr, "%lld calls\n", (long long)call_count);
    settle();
    (void)rmdir(folder);
}

/* Sizes that no memory has are asked for. */
const char *__asan_default_options(void); /* NOLINT */
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    is_verbose = getenv("VERBOSE") != NULL;
    (void)setenv("WEBER_DEBUG", "mem", 1); /* released objects are known for long */
    (void)setenv("WEBER_CACHE", "", 1);
    (void)snprintf(folder, sizeof folder, "/tmp/weber_fuzz_XXXXXX");
    if (!mkdtemp(folder)) abort();
    char preferences[sizeof folder + 20];
    (void)snprintf(preferences, sizeof preferences, "%s/a.toml", folder);
    (void)setenv("WEBER_PREFERENCES", preferences, 1); /* which are no user's */
    (void)atexit(leave);
    wb_log_to(NULL, NULL);
    if (!freopen("/dev/null", "w", stdout)) abort();
    settle();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static calls c;
    const wb_live_counts before = wb_live();
    c = (calls){.data = data, .size = size, .function = "", .depth = wb_thread_get()->scope_count};
    for (int i = 0; i < SLOTS; i++) c.rules[i] = wb_adam();
    (void)wb_scope_open();
    for (int i = 0; i < MOST_CALLS && c.at < c.size; i++) call(&c);
    c.size = 0;
    end(&c);
    const wb_live_counts after = wb_live();
    if (is_verbose || after.objects != before.objects || after.arrays != before.arrays)
        (void)fprintf(stderr, "left: %lld objects, %lld arrays\n",
                      (long long)(after.objects - before.objects),
                      (long long)(after.arrays - before.arrays));
    DEMAND(after.objects == before.objects);
    DEMAND(after.arrays == before.arrays);
    if (is_verbose)
        (void)fprintf(stderr, "%lld buffers\n", (long long)(after.buffers - before.buffers));
    DEMAND(after.buffers == before.buffers);
    return 0;
}
