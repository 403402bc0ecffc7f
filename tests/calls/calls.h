/* What generate.py writes for each public function, and where its arguments come from: the test of
 * misused objects (test_misuse.c) and the random caller (fuzz/fuzz_calls.c) have each their own
 * functions calls_... */
#ifndef WB_TESTS_CALLS_H
#define WB_TESTS_CALLS_H

#include <stdio.h>

#include <weber.h>

typedef struct calls calls;

typedef struct calls_row {
    const char *name; /* "wb_add" */
    void (*call)(calls *c);
    bool takes_objects;
} calls_row;

extern const calls_row calls_rows[];
extern const int calls_count;

/* ---- what is given ---- */

enum {
    CALLS_MOST_LENGTH = 8,   /* of lists of objects, and what calls_small gives at most */
    CALLS_MOST_RANK = 20,    /* what calls_rank gives at most; lists of sizes have room for it */
    CALLS_MOST_RESULTS = 64, /* room for results through a pointer */
    CALLS_ROOM_BYTES = 1 << 16,
};

/* The objects that calls take. */
typedef enum kind {
    ARRAY,
    LAYER,
    LOADER,
    OPTIMISER,
    GRADIENTS,
    PARAMETERS,
    STATE,
    CSV,
    SCHEDULE,
    ENTRY,
    PROGRESS,
    KINDS
} kind;

typedef enum calls_text_kind { CALLS_NAME, CALLS_PATH, CALLS_BACKEND } calls_text_kind;

/* Objects, or NULL. Own: the function that is called takes it over. */
wb_array *calls_array(calls *c);
wb_layer *calls_layer(calls *c);
wb_layer *calls_own_layer(calls *c);
wb_loader *calls_loader(calls *c);
wb_optimiser *calls_optimiser(calls *c);
wb_gradients *calls_gradients(calls *c);
wb_parameters *calls_parameters(calls *c);
wb_file *calls_file(calls *c);
wb_csv *calls_csv(calls *c);
wb_schedule *calls_schedule(calls *c);
wb_text_entry *calls_entry(calls *c);
wb_progress *calls_progress(calls *c);
void *calls_object(calls *c);
void *calls_own_object(calls *c);
const wb_record *calls_record(calls *c);
const wb_device *calls_device(calls *c);
wb_batch *calls_batch(calls *c, bool is_given); /* else {0}, to be filled */
wb_rule calls_rule(calls *c);
FILE *calls_stream(calls *c);

/* Lists of so many, at most CALLS_MOST_LENGTH, or NULL. */
int calls_length(calls *c);
wb_array *const *calls_arrays(calls *c, int count);
wb_array **calls_carries(calls *c, int count); /* replaced by results */
wb_layer *const *calls_own_layers(calls *c, int count);
void *const *calls_own_objects(calls *c, int count);
const char *const *calls_texts(calls *c);
const double *calls_reals(calls *c);

/* A number of dimensions or sizes, and a list of as many. */
int calls_rank(calls *c);
const int64_t *calls_sizes(calls *c);
const int64_t *calls_dims(calls *c);

int64_t calls_size(calls *c);
int64_t calls_dim(calls *c);
int64_t calls_small(calls *c);
double calls_real(calls *c);
bool calls_flag(calls *c);
int calls_choice(calls *c); /* of an enum */
const char *calls_text(calls *c, calls_text_kind kind);

/* Memory of CALLS_ROOM_BYTES, to be read or to be written. */
void *calls_memory(calls *c);
void *calls_room(calls *c);
size_t calls_room_bytes(calls *c);
/* NULL, or a list of `room` that begins with NULL and whose results the caller looks at. */
wb_array **calls_results(calls *c, int room);

/* Whether a member of a desc is given, and element i of a list in one. */
typedef enum calls_member { CALLS_NUMBER, CALLS_OBJECT, CALLS_TEXT, CALLS_FUNCTION } calls_member;
bool calls_gives(calls *c, calls_member kind);
bool calls_goes_on(calls *c, calls_member kind, int i);

/* All is made, the call comes next. */
void calls_ready(calls *c);

/* ---- what comes back ---- */

void calls_give_array(calls *c, wb_array *x);
void calls_give_layer(calls *c, wb_layer *layer);
void calls_look_at_layer(calls *c, wb_layer *layer); /* which belongs to another one */
void calls_give_loader(calls *c, wb_loader *loader);
void calls_give_optimiser(calls *c, wb_optimiser *optimiser);
void calls_give_gradients(calls *c, wb_gradients *gradients);
void calls_give_parameters(calls *c, wb_parameters *parameters);
void calls_give_file(calls *c, wb_file *file);
void calls_give_csv(calls *c, wb_csv *csv);
void calls_give_schedule(calls *c, wb_schedule *schedule);
void calls_give_entry(calls *c, wb_text_entry *entry);
void calls_give_progress(calls *c, wb_progress *progress);
void calls_give_record(calls *c, const wb_record *record);
void calls_give_object(calls *c, void *object);
void calls_give_read(calls *c, wb_array *x, const void *memory); /* until wb_read_end */
void calls_give_rule(calls *c, wb_rule rule);
void calls_give_status(calls *c, wb_status status);

/* ---- functions of the caller ---- */

wb_activation wb_activation_stub;
wb_array_fn wb_array_fn_stub;
wb_arrays_fn wb_arrays_fn_stub;
wb_collate_fn wb_collate_fn_stub;
wb_connection wb_connection_stub;
wb_getobs_fn wb_getobs_fn_stub;
wb_hook_fn wb_hook_fn_stub;
wb_host_fn wb_host_fn_stub;
wb_host_pullback_fn wb_host_pullback_fn_stub;
wb_init wb_init_stub;
wb_keep_fn wb_keep_fn_stub;
wb_layer_filter wb_layer_filter_stub;
wb_leaf_fn wb_leaf_fn_stub;
wb_load_filter wb_load_filter_stub;
wb_loss_fn wb_loss_fn_stub;
wb_model_fn wb_model_fn_stub;
wb_observe_fn wb_observe_fn_stub;
wb_pullback_fn wb_pullback_fn_stub;
wb_release_fn wb_release_fn_stub;
wb_scan_fn wb_scan_fn_stub;
wb_schedule_fn wb_schedule_fn_stub;
wb_score_fn wb_score_fn_stub;
wb_train_fn wb_train_fn_stub;
wb_watch_fn wb_watch_fn_stub;
void map_stub(wb_batch *batch, void *user);
wb_status prepare_stub(const wb_batch_memory *batch, void *user);
void release_context_stub(void *context);

#endif
