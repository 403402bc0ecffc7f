/* What higher folders use of layers: private side of weber/class.h and weber/model.h. */
#ifndef WB_LAYERS_LAYER_H
#define WB_LAYERS_LAYER_H

#include <weber/layers.h>

#include "array/array.h"
#include "base/table.h"
#include "base/text.h"

enum { WB_MODE_AUTO, WB_MODE_TRAIN, WB_MODE_TEST };

/* Longest path of an array in a model, with its final 0. */
enum { WB_PATH_BYTES = 256 };

/* True if object is a layer of any class; false for NULL and for structs without a table
 * (WB_FUNCTOR). */
bool wb_is_layer(const void *object);

/* The same for an argument: records an error "FUNCTION: ..." if it is not a layer. */
bool wb_check_layer(const char *function, const void *object);
bool wb_check_model(const char *function, const void *object); /* a model, in messages */
/* "FUNCTION: no "PATH" in Chain; it has ..." */
void wb_fail_unknown_path(const char *function, wb_layer *model, const char *path, bool of_layers);
/* Adds "it has layers.1.weight, ..." to the end of the pending error. */
void wb_error_add_paths(wb_layer *model);
/* True if this thread may use the layer; messages call it `what`. */
bool wb_may_use_layer(const char *function, const void *object, const char *what);

/* The address of a field in its struct. */
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
    /* its number in the list or table, from 1; 0: a list without a name, which the text leaves
     * out */
    int64_t index;
    const wb_layer_list *list; /* in walks: the list that it is an item of; NULL: it is a field */
} wb_path;
void wb_path_text(const wb_path *path, char *text, size_t size_bytes);
/* True if the path is the pattern, or begins with the pattern and a dot; * matches any letters. */
bool wb_path_matches(const char *pattern, const char *path);
/* The first path of a slot of the model. */
void wb_slot_path(wb_layer *model, wb_array *const *slot, char text[WB_PATH_BYTES]);

/* What a walk calls for each array and layer (each layer once, fields in the order of the table);
 * either may be NULL. False ends the walk. */
typedef struct wb_visitor wb_visitor;
struct wb_visitor {
    bool (*array)(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable);
    bool (*layer)(wb_visitor *visitor, const wb_path *path, wb_layer *layer);
    uint64_t stamp; /* of this walk */
    /* visits empty slots too, and a layer that is in several places at each of them */
    bool everywhere;
};
bool wb_visit(wb_visitor *visitor, wb_layer *model);

/* Warns of members of the user's own structs that no row lists: those that point to a live layer or
 * array that the model has nowhere else, and, with also_values, all that are not zero. */
void wb_tell_unlisted(const char *function, wb_layer *model, bool also_values);
/* To be called when a layer was made, and before it is released. False when out of memory. */
bool wb_layer_begins(const wb_layer *layer);
void wb_layer_ends(const wb_layer *layer);

/* The hidden states of a model and its counts of passed positions, in the order of a walk.
 * wb_hidden_put_aside takes them out of the model, wb_hidden_bring_back puts them back; in between
 * the model must keep its layers. False, with nothing changed, when out of memory. */
typedef struct wb_hidden {
    wb_array **arrays;
    int64_t count, capacity;
    int64_t *passed;
    int64_t passed_count, passed_capacity;
} wb_hidden;
bool wb_hidden_put_aside(wb_hidden *kept, wb_layer *model);
void wb_hidden_bring_back(wb_hidden *kept, wb_layer *model);

/* A new stamp for layers and arrays: a number that no earlier walk of this thread used. */
uint64_t wb_new_stamp(void);

/* The slot at a path, or NULL with an error that lists the valid paths; it may hold NULL. */
wb_array **wb_slot_at(const char *function, wb_layer *model, const char *path);
/* True if the slot at a path is a state, which a forward function may write. */
bool wb_is_state_at(wb_layer *model, const char *path);

/* ---- loops over arrays (parameters.c) ---- */

/* Whether to list a place; may set its gradient, which is NULL at first. */
typedef bool wb_place_filter(void *user, wb_array **slot, bool trainable, wb_array **gradient);
/* The next of the listed places; the first call makes the list. False after the last one. */
bool wb_next_place(wb_parameter *p, wb_layer *model, wb_place_filter *filter, void *user);

/* ---- new arrays for many places at once (walk.c) ----
 *
 * First all arrays are made and computed; if that fails, nothing has changed. Then all are put in,
 * which cannot fail. An exchange of {0} is empty; call wb_exchange_end in any case. */
typedef struct wb_exchange {
    struct wb_exchange_place *places;
    int64_t count, capacity;
} wb_exchange;

/* Adds: the slot will hold new. */
bool wb_exchange_add(wb_exchange *exchange, wb_array **slot, wb_array *new);
/* Adds all slots of the model, which must be evaluated: they will hold the results of fn. Ties
 * within the model stay. */
bool wb_exchange_walk(wb_exchange *exchange, wb_leaf_fn *fn, void *user, wb_layer *model);
wb_status wb_exchange_evaluate(const wb_exchange *exchange);
/* Puts the arrays into their slots, or, without commit, releases them. */
void wb_exchange_end(wb_exchange *exchange, bool commit);

/* ---- ties (tie.c) ---- */

/* True if two slots hold the same numbers: the same array, or views of each other over all of them
 * (a transpose). Pending arrays are tied only to themselves. */
bool wb_is_tied(const wb_array *a, const wb_array *b);
/* Whether x is dense in some order of its dimensions: each element once, without gaps. */
bool wb_lies_dense(const wb_array *x);

/* Arrays in the order in which they were added; initialise with {0}. */
typedef struct wb_ties {
    wb_table table;
    const wb_array **arrays;
    int64_t capacity;
} wb_ties;

/* Adds x; NULL gets a number, too, and is tied to nothing. False when out of memory. */
bool wb_ties_add(wb_ties *ties, const wb_array *x);
/* The number, from 0 on, of the first array that x is tied to; -1: there is none. */
int64_t wb_ties_find(const wb_ties *ties, const wb_array *x);
void wb_ties_release(wb_ties *ties);

/* Finds two arrays that share memory and are not tied. 1: found, first < second; 0: there are none;
 * -1: out of memory. */
int wb_find_overlap(const wb_ties *ties, int64_t *first, int64_t *second);

/* True if `to` is from with its dimensions in another order: to's dimension i is from's dims[i].
 * For tied arrays. */
bool wb_tie_dims(const wb_array *from, const wb_array *to, int64_t *dims);

/* x belongs to the slot of `from` and has its sizes; returns it in the sizes and order of the tied
 * slot `to`. */
wb_array *wb_through_memory(const wb_array *from, wb_array *x, const wb_array *to);

/* ---- layers in the place of others (replace.c) ---- */

/* Returns the layer itself, or a replacement with a reference for the new place; NULL with an
 * error. */
typedef wb_layer *wb_replace_fn(void *user, wb_layer *layer);
/* Calls fn for each layer of a model, from the outside in, replacements included; *model may be
 * replaced, too. */
bool wb_replace_layers(wb_layer **model, wb_replace_fn *fn, void *user);

/* ---- making ---- */

/* A container takes over the caller's reference. False with an error if containers hold all
 * references. */
bool wb_layer_own(const char *function, int64_t place, wb_layer *layer);
/* The container gives it back. */
void wb_layer_disown(wb_layer *layer);

/* One more reference that no container can take over: for an optimiser, or for gradients. Returns
 * the layer. */
wb_layer *wb_layer_hold(wb_layer *layer);
void wb_layer_let_go(wb_layer *layer); /* NULL is fine */
/* Takes over the children that its rows call counted. False with an error if one belongs to another
 * container; that one is not taken. */
bool wb_layer_own_children(wb_layer *layer);

wb_status wb_layer_hand_over(void *model);

/* Holds every array in the fields of the struct; false with an error that names the field. */
bool wb_layer_check_fields(const wb_layer *layer);

/* As wb_apply_many, but a layer that takes one array gets only the first input; the others
 * (lengths, masks) are passed on after its result, for later layers. results may be the same memory
 * as inputs. */
int wb_layer_pass(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results);

/* ---- sequences of different lengths (lengths.c): x (features, time[, N]), lengths (N) ---- */

/* bool (1, time[, N]): true for steps before the end of the sequence. *x becomes 0 in the padding,
 * so that a NaN there is not used. NULL on failure. */
wb_array *wb_lengths_mask(wb_array **x, wb_array *lengths);
/* After a step of the cell: returns y with 0 in the padding; there, states in now get their values
 * from before. */
wb_array *wb_lengths_keep(wb_array *mask, int states, wb_array **now, wb_array *const *before);
/* x with the steps of each sequence in reverse order, and the padding still at the end. */
wb_array *wb_lengths_reverse(wb_array *x, wb_array *lengths);

/* A list that only grows, newest first. Any thread reads it without a lock. To add, a thread takes
 * the lock NAMES before it checks that the name is free. */
typedef struct wb_link {
    const struct wb_link *next;
} wb_link;
static inline const wb_link *wb_link_first(const wb_link **list) {
    return __atomic_load_n(list, __ATOMIC_ACQUIRE);
}
void wb_link_add(const wb_link **list, wb_link *link);

/* Forgets the layer's own hidden states; false when out of memory. */
bool wb_layer_forget(wb_layer *layer);

/* *first = the number of positions before those of x, 0 without a cache; with a cache, also counts
 * x's positions as passed. False with the error recorded. */
bool wb_pass_positions(wb_layer *layer, const wb_array *x, int64_t *first);
/* The layer's place in a sequence; NULL: it has no positions. */
wb_positions *wb_positions_of(wb_layer *layer);
/* Starts a new sequence; false when out of memory. */
bool wb_forget_positions(wb_layer *layer);
/* A position as an i32 that is not part of the plan's key. */
wb_array *wb_late_position(int64_t position);
/* Another number once the positions or the caches of the model's layers are others. */
uint64_t wb_cache_mark(wb_layer *model);

/* What a model keeps for the next step: the lists of its gradients. */
typedef struct wb_spare {
    wb_object object;
    void (*free)(void *spare);
} wb_spare;

/* Opens a scope; false when out of memory: there is no scope to close then. */
bool wb_scope_begin(void);

/* Evaluates all arrays of the model in one plan, so that its slots are data. */
wb_status wb_model_evaluate(wb_layer *model);

/* Ends a maker that opened a scope: evaluates the model and closes the scope. Returns the model;
 * NULL, and the model is released, if the maker failed (failed, or a new error is pending). */
wb_layer *wb_layer_finish(wb_layer *layer, bool failed);

/* What a container is made of: count entries in one of the three lists. */
typedef struct wb_contents {
    int64_t count;
    wb_layer *const *layers;
    void *const *objects;
    const wb_named *named;
} wb_contents;

/* Fills an empty list with the contents; takes their layers over, also on failure. */
bool wb_list_fill(const char *function, wb_layer_list *list, const wb_contents *contents,
                  bool layers_only);

/* A chain or tree of the contents; takes their layers over, also on failure. layers_only: arrays
 * are refused. */
wb_layer *wb_container_new(const char *function, const wb_layer_class *layer_class,
                           size_t list_offset, const wb_contents *contents, bool layers_only);

/* A struct whose first children, in the order of its rows, are the layers of the contents, which it
 * takes over, also on failure. Other fields are not set yet. */
wb_layer *wb_wrapper_new(const char *function, const wb_layer_class *layer_class,
                         const wb_contents *contents);

/* Adds one item as wb_list_fill does; on failure the list is as before. */
bool wb_list_extend(const char *function, wb_layer_list *list, const char *name, void *object,
                    bool layers_only);
/* False with an error if the object is the layer `outer` or contains it. */
bool wb_check_cycle(const char *function, const wb_layer *outer, void *object);
/* For a maker that failed: frees an argument if it is a layer. */
void wb_drop_given_layer(void *object);

/* Allocates space for count items, all NULL; and releases it. */
bool wb_list_new(wb_layer_list *list, int64_t count);
/* Appends an item with that name, or NULL, and nothing in it; NULL when out of memory. */
wb_layer_item *wb_list_add(wb_layer_list *list, const char *name);
/* True if this is the slot of the array of item i, counted from 0, or was before the list grew. */
bool wb_list_had(const wb_layer_list *list, int64_t i, wb_array *const *slot);
/* How often the items of any list moved in memory: who knows slots has to look them up again. */
int64_t wb_list_moves(void);
/* The same: arrays are trainable that were not, or the other way round, or places came or went. */
void wb_places_changed(void);
void wb_list_release(wb_layer_list *list);

/* ---- functions as layers ---- */

/* "relu", or "" for the identity and for functions without a name. */
const char *wb_activation_name(wb_activation *activation);

/* The same, but WB_NAMELESS for functions without a name, so that they differ from the identity. */
#define WB_NAMELESS "function"
const char *wb_activation_text(wb_activation *activation);

/* The name of a function of Weber's own; NULL for any other. */
const char *wb_activation_listed(wb_activation *activation);

/* The function with that name in Weber, Flux or NNlib ("sigmoid", "σ", "identity"); NULL: there is
 * none. */
wb_activation *wb_activation_named(const char *name);
/* The name of a function that differs from this one by a typing error; NULL: there is none. */
const char *wb_activation_near(const char *name);

/* The name in files of a layer that is a function: the function's own, not the one that wb_fn_named
 * sets for printing; WB_NAMELESS for a closure. NULL: the layer is not a function. */
const char *wb_function_in_files(const wb_layer *layer);

/* The name of a connection: "+", "vcat", "tuple" for NULL; WB_NAMELESS if it has no name. */
const char *wb_connection_name(wb_connection *connection);
/* False: there is no connection with that name. */
bool wb_connection_named(const char *name, wb_connection **connection);

/* ---- what several layers do with their input (input.c) ---- */

/* x in the type of like, with a warning the first time the types differ. */
wb_array *wb_convert_input(wb_array *x, const wb_array *like);

/* Checks that the first sizes of x are the layer's SIZES, *n of them; false with the error
 * recorded. */
bool wb_check_first_sizes(const wb_layer *layer, const wb_array *x, int *n);

/* An initialiser: normal with standard deviation 0.02, as GPT-2 and BERT have it. */
wb_array *wb_small_normal(int ndim, const int64_t *sizes, wb_dtype dtype);

/* Numbers that a layer made, on x's device. */
wb_array *wb_numbers_beside(const wb_array *x, wb_array *numbers);
/* Reshapes numbers (channels) to (1, ..., channels, 1), which broadcasts with x (..., channels,
 * N). */
wb_array *wb_beside_channels(wb_array *numbers, const wb_array *x);

/* True if dropout must return x unchanged. If that is only because training mode was never set,
 * marks x, so that a gradient through it warns. */
bool wb_is_passed_on(const wb_layer *layer, wb_array *x);

/* True if groups divide in and out, else the error is recorded. */
bool wb_check_groups(const wb_layer *layer, int64_t groups, int64_t in, int64_t out);

/* ---- settings (kinds.c, rows.c, rows_text.c) ---- */

enum { WB_MOST_SIZES = 3, WB_MOST_SETTINGS = 24, WB_NAME_BYTES = 48 };

bool wb_field_is_array(const wb_field *field);
bool wb_field_is_setting(const wb_field *field);

/* Index of a name, with or without a leading ":", in the choices of a row; -1: not found. */
int wb_choice_named(const wb_field *field, const char *name);

/* How many numbers a member of kind SIZES has room for. */
int wb_field_most(const wb_field *field);
/* The layer's member of kind SIZES and its count; NULL and 0: it has none. */
const int64_t *wb_layer_sizes(const wb_layer *layer, int *count);
int wb_count_reals(const double *numbers); /* of a member of kind REALS */
/* True if a setting of the layer says that this array is not there. */
bool wb_is_without(const wb_layer *layer, const wb_field *field);

/* Lists the settings that are written in text, and positional children, in order, positional ones
 * first. Returns the count, at most WB_MOST_SETTINGS. */
int wb_settings_in_text(const wb_layer_class *layer_class, const wb_field **list, int *positional);

/* A function that writes a real number as text. */
typedef void wb_real_writer(double value, char *text, size_t size_bytes);
/* Writes a setting as text, "bias=false"; false if this setting is left out. */
bool wb_setting_text(const wb_layer *layer, const wb_field *field, wb_real_writer *real, char *text,
                     size_t size_bytes);
/* Writes only its value, also the usual one; false if it is not a setting. */
bool wb_setting_value(const wb_layer *layer, const wb_field *field, wb_real_writer *real,
                      char *text, size_t size_bytes);
/* Default functions for a class: describe (never NULL) and most_positions (NULL: any number). */
void wb_class_describe(const wb_layer *layer, bool is_brief, char *text, size_t size_bytes);
bool wb_class_most_positions(const wb_layer *layer, int64_t *most);
/* "Dense(784 => 128, relu)" for printing, numbers with six digits. */
void wb_layer_describe(const wb_layer *layer, bool is_brief, char *text, size_t size_bytes);
void wb_short_real(double value, char *text, size_t size_bytes);
/* False for classes that are printed as a name and the layers in it on separate lines. */
bool wb_is_one_line(const wb_layer_class *layer_class);

/* True if all settings are within their ranges; else with the error recorded. */
bool wb_layer_check_settings(wb_layer *layer);
/* Size in bytes of the row's member; for a VALUE all bytes up to the next row's. */
size_t wb_field_bytes(const wb_layer_class *layer_class, const wb_field *field);

/* Copies the numbers in a model's structs (settings, numeric values, modes) in the order of a walk
 * to bytes, or from there into the model (numbers.c). The latter changes nothing, with an error, if
 * one is out of range. Returns the number of bytes; bytes NULL: only that. */
size_t wb_model_numbers(wb_layer *model, char *bytes);
bool wb_model_set_numbers(wb_layer *model, const char *bytes);
/* Adds the facts that two models must have in common: classes, settings that are not numbers, types
 * and sizes of arrays. The second function adds types and sizes alone. */
bool wb_model_tell_structure(wb_layer *model, wb_text *facts);
bool wb_model_tell_arrays(wb_layer *model, wb_text *facts);

/* True for a setting that says whether an array or child of the layer is there. */
bool wb_field_is_presence(const wb_layer_class *layer_class, const wb_field *field);
/* The setting that says whether this array or child is there; NULL: it always is. */
const wb_field *wb_field_presence(const wb_layer_class *layer_class, const wb_field *field);
/* Sets the settings of a new layer to their start values. */
void wb_layer_begin_settings(wb_layer *layer);

/* For the list of all layers: "p=0.5", "in => out"; and the range, "in, out positive" (false if the
 * setting is not numeric). */
void wb_setting_default(const wb_field *field, char *text, size_t size_bytes);
bool wb_setting_range(const wb_field *field, char *text, size_t size_bytes);

/* The dimensions in a bit set, counted from 1 as in Flux. Returns how many. */
int wb_dims_numbers(unsigned dims, int64_t *numbers);
/* The padding before and after each of n dimensions, from a PADDING; true if the two differ
 * anywhere. */
bool wb_padding_numbers(int n, const int64_t *pad, int64_t *both);

/* A row of a layer whose settings and arrays are in its desc, which follows the wb_layer in the
 * struct. */
#define WB_ROW_NAMED(type, member, name_, ...)                                                     \
    { .name = name_, .offset = offsetof(type, desc.member), .kind = __VA_ARGS__ }
#define WB_ROW(type, member, ...) WB_ROW_NAMED(type, member, #member, __VA_ARGS__)
/* The members of a class for the size of its struct and the table of its rows. */
#define WB_LAYER_ROWS(type, rows)                                                                  \
    .size_bytes = sizeof(type), .fields = (rows), .field_count = sizeof(rows) / sizeof *(rows)

/* A complete layer of such a class from a desc; holds the desc's arrays. NULL on failure. */
wb_layer *wb_layer_make(const wb_layer_class *layer_class, const void *desc, size_t desc_bytes);
/* The same from a desc that begins with start_; a desc that no macro made is an error. */
wb_layer *wb_layer_of_desc(const wb_layer_class *layer_class, const void *desc, size_t desc_bytes);

/* Fills in numbers that are not given, by the class's derive or its rows. False with the error
 * recorded. */
bool wb_layer_derive(wb_layer *layer);

/* For `complete`: makes the array of a slot by init if it was not given; NULL if a setting says
 * that it is not there. False with the error recorded if a given one has other sizes or is not
 * floating. */
bool wb_layer_fill(wb_layer *layer, wb_array **slot, wb_init *init, wb_dtype dtype, int ndim,
                   const int64_t *sizes);

/* Fills in those of these numbers that are 0 from a weight (kernel..., grouped / groups, whole). A
 * weight of NULL changes nothing. */
void wb_derive_filter(const wb_array *weight, int64_t groups, int64_t *kernel, int64_t *grouped,
                      int64_t *whole);

/* To be called if a convolution could not be made: adds a hint that braces may be missing.
 * wb_conv(3, 1, 16) and wb_conv(3, 3, 1, 16) compile, but all their numbers go to the kernel. */
void wb_hint_at_braces(const int64_t *kernel, int64_t in, int64_t out, const wb_array *weight);
/* Checks that x is (spatial..., channels, batch) with n spatial dimensions. False with the error
 * recorded. */
bool wb_check_image(const wb_array *x, int n, int64_t channels);
/* Checks a layer's desc: padding together with same_pad is an error. */
bool wb_check_pads(const wb_layer_class *k, const int64_t *pad, bool same_pad);
/* pad and pad_more for ceil(size / stride) results; dilation NULL: 1. */
void wb_pad_to_same(const int64_t *kernel, const int64_t *dilation, int64_t *pad);
/* Copies a PADDING to the desc of an operation over n dimensions, in which a 0 must be written as
 * WB_NONE_. */
void wb_window_pad(int n, const int64_t *pad, wb_window_desc *window);

/* ---- classes (classes.c) ---- */

#define WB_LAYER(name) extern const wb_layer_class name;
#include "layers/layers.def"
extern const wb_layer_class wb_tree_class, wb_fn_class;

/* The desc of a Scale, with its arrays; NULL with an error for another layer. */
wb_scale_desc *wb_scale_desc_of(wb_layer *scale);

/* The class with this name, from layers.def or registered; NULL: there is none. */
const wb_layer_class *wb_class_named(const char *name);
/* The i-th class of layers.def, from 0; NULL after the last one. */
const wb_layer_class *wb_class_at(int i);
/* False for a class of the user's. The library's layers rely on the contents that their makers gave
 * to their lists. */
bool wb_class_is_of_library(const wb_layer_class *k);

/* ---- normalisation (normalise.c) ---- */

/* Mean and variance, in sizes that broadcast with the array that they belong to. */
typedef struct wb_statistics {
    wb_array *mean, *variance;
} wb_statistics;

/* Statistics over these dimensions, which stay with size 1. */
wb_statistics wb_statistics_over(wb_array *x, int count, const int64_t *dims);
/* The same over the arrays of all ranks together, weighted by their observations, with the count of
 * numbers in each statistic; two all-reduces. x is f32 or f64. */
typedef struct wb_over_ranks {
    wb_statistics statistics;
    wb_array *count;
} wb_over_ranks;
wb_over_ranks wb_statistics_over_ranks(wb_array *x, int count, const int64_t *dims);
/* s with the variance divided by count - 1 instead of count. */
wb_statistics wb_corrected(wb_statistics s, int64_t count);
/* (x - mean) / √(variance + eps) */
wb_array *wb_normalised_by(wb_array *x, wb_statistics s, double eps);
/* The same with the statistics over these dimensions, then times gamma plus beta, which have a
 * number for each channel, or are NULL. */
wb_array *wb_normalised_over(wb_array *x, int count, const int64_t *dims, double eps,
                             wb_array *gamma, wb_array *beta);
/* activation(gamma y + beta); gamma and beta have a number for each channel; each of the three may
 * be NULL. */
wb_array *wb_affine(wb_array *y, wb_array *gamma, wb_array *beta, wb_activation *activation);

/* False with the error recorded if the size of the last dimension but one is not channels. */
bool wb_check_channels(const wb_array *x, int64_t channels);

/* Running statistics, (channels): states of a layer. */
typedef struct wb_running {
    wb_array **mean, **variance;
    double momentum;
} wb_running;

/* False with the error recorded if count numbers for each channel have no variance, or if the layer
 * is shared and has running statistics, which cannot be written then. */
bool wb_check_training(const wb_layer *layer, const wb_array *x, int64_t count, bool is_written);
/* Updates the running statistics by those of a batch, (1, ..., channels, 1), corrected, when the
 * step is computed. */
bool wb_running_take_in(wb_running running, wb_statistics batch);

/* wb_outputsize. keep_counter: random numbers drawn meanwhile count as used. tell, unless NULL,
 * gets the stand-ins for the inputs before the model is applied to them. */
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
