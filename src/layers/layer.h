/* What the rooms above know of layers: private side of weber/class.h and weber/model.h. */
#ifndef WB_LAYERS_LAYER_H
#define WB_LAYERS_LAYER_H

#include <weber/layers.h>

#include "array/array.h"
#include "base/table.h"
#include "base/text.h"

enum { WB_MODE_AUTO, WB_MODE_TRAIN, WB_MODE_TEST };

/* Longest path of an array in a model, with its end. */
enum { WB_PATH_BYTES = 256 };

/* True if object is a layer of whatever class; NULL and structs without a declaration are not. */
bool wb_is_layer(const void *object);

/* The same, recording `function: ...` if it is none: for arguments. */
bool wb_check_layer(const char *function, const void *object);
bool wb_check_model(const char *function, const void *object); /* a model, in messages */
/* "it has layers.1.weight, ..." at the end of the pending error. */
void wb_error_add_paths(wb_layer *model);
/* The same, called `what`. */
bool wb_may_use_layer(const char *function, const void *object, const char *what);

/* The place of a field in its struct. */
static inline void *wb_field_at(const wb_layer *layer, const wb_field *field) {
    return (void *)(uintptr_t)((const char *)layer + field->offset);
}
static inline wb_array **wb_field_array(const wb_layer *layer, const wb_field *field) {
    return wb_field_at(layer, field);
}
static inline wb_layer **wb_field_child(const wb_layer *layer, const wb_field *field) {
    return wb_field_at(layer, field);
}
static inline wb_layer_list *wb_field_list(const wb_layer *layer, const wb_field *field) {
    return wb_field_at(layer, field);
}

/* ---- walks (visit.c) ---- */

/* The way from the model to what is visited; name NULL: the index. */
typedef struct wb_path {
    const struct wb_path *outer;
    const char *name;
    /* in its list or table, from 1; 0: a list without a name, which is not part of the text */
    int64_t index;
    const wb_layer_list *list; /* that it is an item of, in walks; NULL: it is a field */
} wb_path;
void wb_path_text(const wb_path *path, char *text, size_t size_bytes);
/* The first path of a slot of the model's. */
void wb_slot_path(wb_layer *model, wb_array *const *slot, char text[WB_PATH_BYTES]);

/* What a walk calls, each layer once, fields in the order of the table; either may be NULL. False
 * ends the walk. */
typedef struct wb_visitor wb_visitor;
struct wb_visitor {
    bool (*array)(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable);
    bool (*layer)(wb_visitor *visitor, const wb_path *path, wb_layer *layer);
    uint64_t stamp;  /* of this walk */
    bool everywhere; /* empty slots too, and layers that stand in several places at each of them */
};
bool wb_visit(wb_visitor *visitor, wb_layer *model);

/* Warns of members of structs of the user's own that no row lists: those that point to a live layer
 * or array which the model does not have elsewhere, and, where also_values, all that are not
 * zero. */
void wb_tell_unlisted(const char *function, wb_layer *model, bool also_values);
/* A layer was made, or is about to be released. False when out of memory. */
bool wb_layer_begins(const wb_layer *layer);
void wb_layer_ends(const wb_layer *layer);

/* The hidden states of a model, and how many positions have passed, in the order of a walk. Put
 * aside, the model has none, until they are brought back; the model must not change its layers
 * meanwhile. False, with nothing changed, when out of memory. */
typedef struct wb_hidden {
    wb_array **arrays;
    int64_t count, capacity;
    int64_t *passed;
    int64_t passed_count, passed_capacity;
} wb_hidden;
bool wb_hidden_put_aside(wb_hidden *kept, wb_layer *model);
void wb_hidden_bring_back(wb_hidden *kept, wb_layer *model);

/* A number that no earlier walk of this thread used, for stamps in layers and arrays. */
uint64_t wb_new_stamp(void);

/* The slot at a path, or NULL with an error that lists the valid paths; it may hold NULL. */
wb_array **wb_slot_at(const char *function, wb_layer *model, const char *path);
/* True if the slot at a path is a state, which a forward function may write. */
bool wb_is_state_at(wb_layer *model, const char *path);

/* ---- loops over arrays (parameters.c) ---- */

/* Whether a place is listed, and what stands there as gradient, which begins as NULL. */
typedef bool wb_place_filter(void *user, wb_array **slot, bool trainable, wb_array **gradient);
/* The next of the listed places; the first call makes the list. False after the last one. */
bool wb_next_place(wb_parameter *p, wb_layer *model, wb_place_filter *filter, void *user);

/* ---- new arrays for many places at once (walk.c) ----
 *
 * First all arrays are made and computed, which may fail and then has changed nothing; then all are
 * put in, which cannot. An exchange of {0} is empty; wb_exchange_end releases it in any case. */
typedef struct wb_exchange {
    struct wb_exchange_place *places;
    int64_t count, capacity;
} wb_exchange;

/* The slot will hold new. */
bool wb_exchange_add(wb_exchange *exchange, wb_array **slot, wb_array *new);
/* The slots of the model, which are evaluated, will hold fn's results; ties within it stay. */
bool wb_exchange_walk(wb_exchange *exchange, wb_leaf_fn *fn, void *user, wb_layer *model);
wb_status wb_exchange_evaluate(const wb_exchange *exchange);
/* Puts the arrays in, or, without commit, forgets them. */
void wb_exchange_end(wb_exchange *exchange, bool commit);

/* ---- ties (tie.c) ---- */

/* True if two slots hold the same numbers: the same array, or views of each other over all of them
 * (a transpose). Pending arrays are tied only to themselves. */
bool wb_is_tied(const wb_array *a, const wb_array *b);
/* Whether x, in some order of its dimensions, lies one after another, each element once. */
bool wb_lies_dense(const wb_array *x);

/* Arrays in the order in which they were added; begins as {0}. */
typedef struct wb_ties {
    wb_table table;
    const wb_array **arrays;
    int64_t capacity;
} wb_ties;

/* NULL takes a number, too, and is tied to nothing. False when out of memory. */
bool wb_ties_add(wb_ties *ties, const wb_array *x);
/* The number, from 0 on, of the first one that x is tied to; -1: there is none. */
int64_t wb_ties_find(const wb_ties *ties, const wb_array *x);
void wb_ties_release(wb_ties *ties);

/* Finds two arrays that share some memory and are not tied. 1: two were found, the first before the
 * second; 0: there are none; -1: out of memory. */
int wb_find_overlap(const wb_ties *ties, int64_t *first, int64_t *second);

/* True if `to` is from with its dimensions in another order: to's dimension i is from's dims[i].
 * For tied arrays. */
bool wb_tie_dims(const wb_array *from, const wb_array *to, int64_t *dims);

/* x, which has the sizes of from, in those of to, where from and to are tied: what x means for the
 * other slot. */
wb_array *wb_through_memory(const wb_array *from, wb_array *x, const wb_array *to);

/* ---- layers in the place of others (replace.c) ---- */

/* What is to stand where the layer stands: the layer itself, or another one with a reference for
 * its new place; NULL with an error. */
typedef wb_layer *wb_replace_fn(void *user, wb_layer *layer);
/* Goes through a model, from outside, and what was put into it; *model is replaced, too. */
bool wb_replace_layers(wb_layer **model, wb_replace_fn *fn, void *user);

/* ---- making ---- */

/* A container takes over a reference that nobody holds yet. False with an error if all references
 * are held by containers. */
bool wb_layer_own(const char *function, int64_t place, wb_layer *layer);
/* The container gives it back. */
void wb_layer_disown(wb_layer *layer);

/* One more reference, neither a container's nor the caller's, so that nothing takes it over: an
 * optimiser's, or that of gradients. Returns the layer. */
wb_layer *wb_layer_hold(wb_layer *layer);
void wb_layer_let_go(wb_layer *layer); /* NULL is fine */
/* Takes the children over that its rows call counted; false with an error where one belongs to
 * another container, which it then has not. */
bool wb_layer_own_children(wb_layer *layer);

wb_status wb_layer_hand_over(void *model);

/* Every array of the struct's own fields is held; false with an error that names the field. */
bool wb_layer_check_fields(const wb_layer *layer);

/* As wb_apply_many, but a layer of one array is given the first alone, and the other ones are
 * returned after its result: lengths and masks, for layers after it. results may be inputs. */
int wb_layer_pass(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results);

/* ---- sequences of different lengths (lengths.c): x (features, time[, N]), lengths (N) ---- */

/* bool (1, time[, N]): whether a step is before the sequence's length. *x gets 0 in the padding, so
 * that nothing is computed of NaN there. NULL on failure. */
wb_array *wb_lengths_mask(wb_array **x, wb_array *lengths);
/* After the cell's step: y, which is 0 in the padding; there the states are those from before. */
wb_array *wb_lengths_keep(wb_array *mask, int states, wb_array **now, wb_array *const *before);
/* x with the steps of each sequence in reverse, and the padding where it is. */
wb_array *wb_lengths_reverse(wb_array *x, wb_array *lengths);

/* A list that only grows: any thread walks through it without a lock. A thread that adds to it
 * holds the lock NAMES, already while it asks whether the name is free. The last one that was added
 * comes first. */
typedef struct wb_link {
    const struct wb_link *next;
} wb_link;
static inline const wb_link *wb_link_first(const wb_link **list) {
    return __atomic_load_n(list, __ATOMIC_ACQUIRE);
}
void wb_link_add(const wb_link **list, wb_link *link);

/* The layer's own hidden states are forgotten; false when out of memory. */
bool wb_layer_forget(wb_layer *layer);

/* The positions that came before those of x, 0 without a cache; with one x's positions have passed
 * then. False with the error recorded. */
bool wb_pass_positions(wb_layer *layer, const wb_array *x, int64_t *first);
/* Where the layer is in a sequence; NULL: it has no positions. */
wb_positions *wb_positions_of(wb_layer *layer);
/* A sequence begins; false when out of memory. */
bool wb_forget_positions(wb_layer *layer);
/* A position as an i32 that is not part of the plan. */
wb_array *wb_late_position(int64_t position);

/* What a layer keeps for the next step (its gradients' lists). */
typedef struct wb_spare {
    wb_object object;
    void (*free)(void *spare);
} wb_spare;

/* Opens a scope; false (out of memory) means that there is none to close. */
bool wb_scope_begin(void);

/* Evaluates all arrays of the model in one plan, so that its slots are data. */
wb_status wb_model_evaluate(wb_layer *model);

/* Ends a maker that opened a scope: evaluates the model and closes the scope. The model, or NULL
 * after releasing it if an error is pending that was not there before (failed). */
wb_layer *wb_layer_finish(wb_layer *layer, bool failed);

/* What a container is made of: one of the three lists, of count entries. */
typedef struct wb_contents {
    int64_t count;
    wb_layer *const *layers;
    void *const *objects;
    const wb_named *named;
} wb_contents;

/* Fills an empty list with the contents, whose layers it takes, also on failure. */
bool wb_list_fill(const char *function, wb_layer_list *list, const wb_contents *contents,
                  bool layers_only);

/* A chain or tree over the contents, whose layers it takes, also on failure. layers_only: arrays
 * are refused. */
wb_layer *wb_container_new(const char *function, const wb_layer_class *layer_class,
                           size_t list_offset, const wb_contents *contents, bool layers_only);

/* A struct whose first children, in the order of its rows, are the layers of the contents, which it
 * takes, also on failure; not yet complete. */
wb_layer *wb_wrapper_new(const char *function, const wb_layer_class *layer_class,
                         const wb_contents *contents);

/* One more item, as wb_list_fill adds them; the list is as before on failure. */
bool wb_list_extend(const char *function, wb_layer_list *list, const char *name, void *object,
                    bool layers_only);
/* False with an error if the object is the layer `outer` or contains it. */
bool wb_check_cycle(const char *function, const wb_layer *outer, void *object);
/* Frees what a maker that failed was given, if it is a layer. */
void wb_drop_given_layer(void *object);

/* Space for count items, NULL each; and back. */
bool wb_list_new(wb_layer_list *list, int64_t count);
void wb_list_release(wb_layer_list *list);

/* ---- functions as layers ---- */

/* "relu", or "" for the identity and what has no name. */
const char *wb_activation_name(wb_activation *activation);

/* The same, but WB_NAMELESS for what has no name: it is not the identity. */
#define WB_NAMELESS "function"
const char *wb_activation_text(wb_activation *activation);

/* The name of a function that Weber itself has; NULL: another one. */
const char *wb_activation_listed(wb_activation *activation);

/* The function of that name, as Weber, Flux or NNlib has it ("sigmoid", "σ"); NULL: there is none.
 * "identity" is one. */
wb_activation *wb_activation_named(const char *name);
/* A function's name that a slip of the pen away becomes this one; NULL without one. */
const char *wb_activation_near(const char *name);

/* What files call a function that is a layer: the same, not the name that wb_fn_named sets for
 * printing, and WB_NAMELESS for a closure; NULL: the layer is another one. */
const char *wb_function_in_files(const wb_layer *layer);

/* The same for connections: "+", "vcat", "tuple" for NULL; WB_NAMELESS for what has no name. */
const char *wb_connection_name(wb_connection *connection);
/* False: there is none of that name. */
bool wb_connection_named(const char *name, wb_connection **connection);

/* ---- what several layers do with their input (input.c) ---- */

/* x in the type of like, with a warning the first time it differs. */
wb_array *wb_convert_input(wb_array *x, const wb_array *like);

/* The n SIZES of the layer, with which x has to begin; false with the error recorded. */
bool wb_check_first_sizes(const wb_layer *layer, const wb_array *x, int *n);

/* A number for each channel, (channels), beside x (..., channels, N): (1, ..., channels, 1). */
wb_array *wb_beside_channels(wb_array *numbers, const wb_array *x);

/* True if dropout is to give x itself; where that is so only because nobody said that this is
 * training, x is marked, so that its gradient says so. */
bool wb_is_passed_on(const wb_layer *layer, wb_array *x);

/* True if groups divide in and out, else the error is recorded. */
bool wb_check_groups(const wb_layer *layer, int64_t groups, int64_t in, int64_t out);

/* ---- settings (kinds.c, rows.c, rows_text.c) ---- */

enum { WB_MOST_SIZES = 3, WB_MOST_SETTINGS = 24, WB_NAME_BYTES = 48 };

bool wb_field_is_array(const wb_field *field);
bool wb_field_is_setting(const wb_field *field);

/* Place of a name in the choices of a row, with or without its ":"; -1: there is none. */
int wb_choice_named(const wb_field *field, const char *name);

/* How many numbers the member of SIZES has. */
int wb_field_most(const wb_field *field);
/* The layer's SIZES and how many there are; NULL and 0: it has none. */
const int64_t *wb_layer_sizes(const wb_layer *layer, int *count);
int wb_count_reals(const double *numbers); /* of a REALS */
/* True if the array's WITHOUT or WITH says that it is not there. */
bool wb_is_without(const wb_layer *layer, const wb_field *field);

/* Those that stand in text, and positional children, in the order there; the positional ones are
 * first. The count, at most WB_MOST_SETTINGS. */
int wb_settings_in_text(const wb_layer_class *layer_class, const wb_field **list, int *positional);

/* What writes the reals in a text. */
typedef void wb_real_writer(double value, char *text, size_t size_bytes);
/* A setting as text, "bias=false"; false if it is not written. */
bool wb_setting_text(const wb_layer *layer, const wb_field *field, wb_real_writer *real, char *text,
                     size_t size_bytes);
/* Its value alone, also where it is the usual one; false if it is not a setting. */
bool wb_setting_value(const wb_layer *layer, const wb_field *field, wb_real_writer *real,
                      char *text, size_t size_bytes);
/* What the class has as describe, which is not NULL, and most_positions (NULL: any number). */
void wb_class_describe(const wb_layer *layer, bool is_brief, char *text, size_t size_bytes);
bool wb_class_most_positions(const wb_layer *layer, int64_t *most);
/* "Dense(784 => 128, relu)" for people, numbers with six digits. */
void wb_layer_describe(const wb_layer *layer, bool is_brief, char *text, size_t size_bytes);
void wb_short_real(double value, char *text, size_t size_bytes);
/* False for what is printed as a name and, on lines of their own, the layers in it. */
bool wb_is_one_line(const wb_layer_class *layer_class);

/* Whether all are within their ranges; else with the error. */
bool wb_layer_check_settings(wb_layer *layer);
/* Bytes of the row's member. A VALUE has any number: up to the next row. */
size_t wb_field_bytes(const wb_layer_class *layer_class, const wb_field *field);

/* The numbers in a model's structs, one after another in the order of a walk: settings, values that
 * are a number, modes (numbers.c). Written: all, or, where one is out of its range, none with the
 * error. How many bytes; bytes NULL: only that. */
size_t wb_model_numbers(wb_layer *model, char *bytes);
bool wb_model_set_numbers(wb_layer *model, const char *bytes);
/* What two models must have in common: classes, and settings that are not numbers, with the types
 * and sizes of arrays; the second function gives types and sizes alone. */
bool wb_model_tell_structure(wb_layer *model, wb_text *facts);
bool wb_model_tell_arrays(wb_layer *model, wb_text *facts);

/* True for the setting that says whether arrays or children of a layer are there. */
bool wb_field_is_presence(const wb_layer_class *layer_class, const wb_field *field);
/* That of an array or child; NULL: it is always there. */
const wb_field *wb_field_presence(const wb_layer_class *layer_class, const wb_field *field);
/* The settings of a new layer. */
void wb_layer_begin_settings(wb_layer *layer);

/* For the list of all layers: "p=0.5", "in => out"; and "in, out positive", false of a setting that
 * is no numbers. */
void wb_setting_default(const wb_field *field, char *text, size_t size_bytes);
bool wb_setting_range(const wb_field *field, char *text, size_t size_bytes);

/* The dimensions of a set as Flux counts them, from 1; how many. */
int wb_dims_numbers(unsigned dims, int64_t *numbers);
/* What is before and after each of n dimensions, of a PADDING; true if the two differ anywhere. */
bool wb_padding_numbers(int n, const int64_t *pad, int64_t *both);

/* A row of a layer whose settings and arrays are its desc, which follows the wb_layer in the
 * struct. */
#define WB_ROW_NAMED(type, member, name_, ...)                                                     \
    { .name = name_, .offset = offsetof(type, desc.member), .kind = __VA_ARGS__ }
#define WB_ROW(type, member, ...) WB_ROW_NAMED(type, member, #member, __VA_ARGS__)
/* What a class says of its struct and of the table of its rows. */
#define WB_LAYER_ROWS(type, rows)                                                                  \
    .size_bytes = sizeof(type), .fields = (rows), .field_count = sizeof(rows) / sizeof *(rows)

/* A complete layer of such a class from a desc, whose arrays it holds; NULL on failure. */
wb_layer *wb_layer_make(const wb_layer_class *layer_class, const void *desc, size_t desc_bytes);
/* The same of a desc that begins with start_, which is an error if a macro has not made it. */
wb_layer *wb_layer_of_desc(const wb_layer_class *layer_class, const void *desc, size_t desc_bytes);

/* Numbers that are not given, by the class's derive or its rows. False with the error recorded. */
bool wb_layer_derive(wb_layer *layer);

/* For `complete`: the array of a slot, where it is not given, by init; NULL where a setting says
 * that it is not there. False with the error recorded if it has other sizes or is not floating. */
bool wb_layer_fill(wb_layer *layer, wb_array **slot, wb_init *init, wb_dtype dtype, int ndim,
                   const int64_t *sizes);

/* Of a weight (kernel..., grouped / groups, whole), what is 0 of these numbers; NULL: nothing. */
void wb_derive_filter(const wb_array *weight, int64_t groups, int64_t *kernel, int64_t *grouped,
                      int64_t *whole);

/* To be called where a convolution could not be made: wb_conv(3, 1, 16) and wb_conv(3, 3, 1, 16)
 * compile, where the numbers without braces are the kernel's. */
void wb_hint_at_braces(const int64_t *kernel, int64_t in, int64_t out, const wb_array *weight);
/* x (spatial..., channels, batch) with n spatial dimensions. False: an error is recorded. */
bool wb_check_image(const wb_array *x, int n, int64_t channels);
/* Of a layer's desc: a padding beside same_pad is an error. */
bool wb_check_pads(const wb_layer_class *k, const int64_t *pad, bool same_pad);
/* pad and pad_more for ceil(size / stride) results; dilation NULL: 1. */
void wb_pad_to_same(const int64_t *kernel, const int64_t *dilation, int64_t *pad);
/* The numbers of a PADDING for an operation over n dimensions, where 0 has to be said. */
void wb_window_pad(int n, const int64_t *pad, wb_window_desc *window);

/* ---- classes (classes.c) ---- */

#define WB_LAYER(name) extern const wb_layer_class name;
#include "layers/layers.def"
extern const wb_layer_class wb_tree_class, wb_fn_class;

/* What a Scale is made of, its arrays too; NULL with an error for another layer. */
wb_scale_desc *wb_scale_desc_of(wb_layer *scale);

/* By name, of layers.def or registered; NULL: there is none. */
const wb_layer_class *wb_class_named(const char *name);
/* The i-th of layers.def, from 0; NULL after the last one. */
const wb_layer_class *wb_class_at(int i);

/* ---- normalisation (normalise.c) ---- */

/* Mean and variance, of sizes that broadcast with what they are of. */
typedef struct wb_statistics {
    wb_array *mean, *variance;
} wb_statistics;

/* Over the dimensions, which stay with size 1. */
wb_statistics wb_statistics_over(wb_array *x, int count, const int64_t *dims);
/* Over those of all ranks' arrays together, weighted by their observations, and the count of
 * numbers that each is of; two all-reduces. x is f32 or f64. */
typedef struct wb_over_ranks {
    wb_statistics statistics;
    wb_array *count;
} wb_over_ranks;
wb_over_ranks wb_statistics_over_ranks(wb_array *x, int count, const int64_t *dims);
/* The variance over count - 1 in place of count numbers. */
wb_statistics wb_corrected(wb_statistics s, int64_t count);
/* (x - mean) / √(variance + eps) */
wb_array *wb_normalised_by(wb_array *x, wb_statistics s, double eps);
/* The same with the statistics over the dimensions, then gamma times that plus beta, a number for
 * each channel; NULL: without. */
wb_array *wb_normalised_over(wb_array *x, int count, const int64_t *dims, double eps,
                             wb_array *gamma, wb_array *beta);
/* activation(gamma y + beta), a number for each channel; NULL: without. */
wb_array *wb_affine(wb_array *y, wb_array *gamma, wb_array *beta, wb_activation *activation);

/* False with the error recorded: the last dimension but one is not the channels. */
bool wb_check_channels(const wb_array *x, int64_t channels);

/* Running statistics, (channels): states of a layer. */
typedef struct wb_running {
    wb_array **mean, **variance;
    double momentum;
} wb_running;

/* False with the error recorded: count numbers for each channel have no variance, or the layer is
 * shared and its running statistics, if there are any, cannot be written. */
bool wb_check_training(const wb_layer *layer, const wb_array *x, int64_t count, bool is_written);
/* They take in those of a batch, (1, ..., channels, 1), corrected, when the step is computed. */
bool wb_running_take_in(wb_running running, wb_statistics batch);

/* wb_outputsize; keep_counter: random numbers that were drawn meanwhile are used up. tell, unless
 * NULL, gets the arrays that stand for the inputs before the model is applied to them. */
typedef void wb_inputs_fn(void *user, int count, wb_array *const *inputs);
wb_shape wb_size_of_output(wb_layer *model, const wb_outputsize_desc *desc, bool keep_counter,
                           wb_inputs_fn *tell, void *user);

/* ---- counts, for printing ---- */

typedef struct wb_model_counts {
    int64_t arrays, numbers, bytes;                   /* trainable */
    int64_t fixed_arrays, fixed_numbers, fixed_bytes; /* the others */
} wb_model_counts;
wb_model_counts wb_count_model(wb_layer *model);

#endif
