/* Building the source of a call.
 *
 * A text consists of lines that differ from call to call, which are preprocessor definitions, and
 * of pieces (call_*.txt) that do not. Functions, kernels and types begin with k_: that is replaced
 * by a name of their own, and all definitions end with the text, so that texts can be compiled
 * together. Every kernel has the same parameters, PARAMETERS. What else the definitions give:
 *
 *   GROUP, SERIAL    items of a group; whether one wide core runs them
 *   IN_F32           whether real_t is f32
 *   integer          wb_i32, or wb_i64 where some array has too many elements for it: in what
 *                    places are computed
 *   stored_t         type in memory: wb_f32, ...
 *   real_t           type of arithmetic
 *   LOAD, STORE      (pointer, place) and (pointer, place, value)
 *   ARGUMENT_0 ...   (type) pointer to argument 0 of the command; `stored`, `real` and INTEGER are
 *                    the types above
 *   SCRATCH          (type, NAME) pointer into the scratch memory
 *   NAME             a word of the block, or a constant, whichever was asked for
 *
 *     wb_call_source s = wb_call_source_new(call, dialect);
 *     wb_call_word(&s, "ROWS", m);
 *     wb_call_constant(&s, "TILE", 64);
 *     wb_call_launch(&s, "k_product", groups);
 *     return wb_call_source_finish(&s, 3, texts); */
#ifndef WB_PROGRAM_CALL_SOURCE_H
#define WB_PROGRAM_CALL_SOURCE_H

#include <weber/plugin.h>

#include "program/text.h"

enum { WB_CALL_WORDS = 96, WB_CALL_LAUNCHES = 4 };

typedef struct wb_call_source {
    const wb_call *call;
    const wb_dialect *dialect;
    wb_text lines;
    int64_t words[WB_CALL_WORDS];
    int32_t word_count;
    wb_launch launches[WB_CALL_LAUNCHES];
    int32_t launch_count;
    size_t scratch_bytes;
    bool uses_status;
    bool is_wide; /* places need 64 bits */
} wb_call_source;

wb_call_source wb_call_source_new(const wb_call *call, const wb_dialect *dialect);

/* #define name, or name_dimension: the next word of the block, or a number in the text. */
void wb_call_word(wb_call_source *source, const char *name, int64_t value);
void wb_call_word_at(wb_call_source *source, const char *name, int dimension, int64_t value);
void wb_call_constant(wb_call_source *source, const char *name, int64_t value);
void wb_call_constant_at(wb_call_source *source, const char *name, int dimension, int64_t value);

/* KEY, key_t: what keys are in memory (index_dtype of an index call); ORDER(key): an integer in the
 * keys' order, of order_t. False, with an error for `what`, where keys are f64 and the device has
 * none. */
bool wb_call_keys(wb_call_source *source, const char *what);

/* Notes that the call has an array of `count` elements, which decides whether is_wide. */
void wb_call_reaches(wb_call_source *source, int64_t count);

/* Reserves scratch memory; #define name: bytes from its beginning. */
void wb_call_scratch(wb_call_source *source, const char *name, int64_t size_bytes);

void wb_call_launch(wb_call_source *source, const char *entry, int64_t groups);

/* Launches enough groups for `items` items with `each` rounds, but not more than a device can
 * use. */
void wb_call_launch_items(wb_call_source *source, const char *entry, int64_t items, int64_t each);

/* Makes the source from the lines and the texts, a list that NULL ends. arguments: the number of
 * the command's arguments, without scratch memory. */
wb_source *wb_call_source_finish(wb_call_source *source, int arguments, const char *const *texts);

/* the type of arithmetic: f32 for halves, else the call's type */
wb_dtype wb_call_real(const wb_call *call);
int64_t wb_call_real_bytes(const wb_call *call);

static inline int64_t wb_call_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t wb_call_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t wb_call_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Whether a head of this call has few enough features for its text. */
bool wb_call_fits_attention(const wb_call *call, const wb_dialect *dialect);

/* The renderers, one file for each family; ops.def names them. */
typedef wb_source *wb_call_render_fn(const wb_call *call, const wb_dialect *dialect);
#define WB_CALL(name, shape, x, y, uses, text, doc) wb_call_render_fn wb_call_render_##text;
#include <weber/ops.def>

#endif
