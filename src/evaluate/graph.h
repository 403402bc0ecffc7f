/* The tape as a graph of values, and the values as units: programs, library calls and copies, with
 * their order and memory. */
#ifndef WB_EVALUATE_GRAPH_H
#define WB_EVALUATE_GRAPH_H

#include <string.h>

#include <weber/plugin.h>

#include "array/view.h"
#include "base/table.h"
#include "evaluate/tape.h"

/* ---- lower.c ---- */

typedef enum wb_value_kind {
    WB_VALUE_LEAF,
    WB_VALUE_CONSTANT,
    WB_VALUE_LATE,
    WB_VALUE_SOURCE, /* iota, uniform, normal: computed inside programs */
    WB_VALUE_ELEMENT,
    WB_VALUE_REDUCE,
    WB_VALUE_VIEW,
    WB_VALUE_JOIN,
    WB_VALUE_CALL,
    WB_VALUE_RESULT, /* a further result of a call */
} wb_value_kind;

enum { WB_NO_UNIT = -1 };

/* What lowering knows of a value. Members that most stages read come first, so that they are in one
 * or two cache lines. */
typedef struct wb_value {
    uint8_t kind, op, dtype, ndim;
    int32_t ninputs;
    int32_t *input_list; /* values; only where there are more than three */
    int32_t small_inputs[3];
    int32_t base;   /* of a view that needs no copy: the value whose memory it shows; else itself */
    int32_t layout; /* index in the graph's list, see wb_value_layout; -1: dense */
    /* of a leaf, late or random value, scan or collective: its node's place on the tape; else -1 */
    int32_t tape;
    int32_t callable; /* number of the callable whose first result it is, from 1 on; 0: none */
    bool is_step;     /* computed by an optimiser's step */
    bool is_told;     /* a number that steps use: computed apart, once for all steps */
    int64_t sizes[WB_MAX_DIMS];
    wb_attributes attributes;
    /* of a call: the payload of its node, if that has words; holds a reference */
    wb_payload *payload;
    double constant;
} wb_value;

/* An operation that the device takes as one thing: programs list it by name. */
typedef struct wb_named_node {
    const char *name;
    double numbers[WB_CALLABLE_NUMBERS];
    int32_t in[WB_CALLABLE_INPUTS], out[WB_CALLABLE_RESULTS]; /* values; -1: none */
} wb_named_node;

/* readers.c: value v is read by list[start[v] ..], up to where the next one's begin. */
typedef struct wb_readers {
    int64_t *start;
    int32_t *list;
} wb_readers;

/* Where a value is computed: fuse.c and sink.c write it, and store.c for what needs a program of
 * its own. */
typedef struct wb_membership {
    int32_t unit;
    int32_t reader; /* the program that read it last while programs were made, plus 1; 0: none */
    /* in its unit: row values are ready before it, full ones are computed in it */
    uint8_t phase;
    const char *apart; /* why it began a unit of its own; NULL: there was no unit to join */
} wb_membership;

/* The units, and which of them each value belongs to: fuse.c and sink.c write them through units.c,
 * which keeps their order; updates.c and place.c note what becomes of a unit. */
typedef struct wb_units {
    wb_membership *of; /* of each value */
    struct wb_unit *at;
    int64_t count, capacity;
    int32_t first, last; /* the ends of the list in order; -1: none */
    int32_t search_mark; /* of the last search among units */
} wb_units;

/* Where a value lies. Its writer is named unless it is place.c. */
typedef struct wb_placement {
    int32_t output;       /* number of the plan's output, or -1 */
    int32_t memory;       /* entry of the plan's memory table */
    int32_t late;         /* late, random: first of its late words */
    int32_t holder;       /* copies.c: the copy in whose memory it is stored; -1: it has its own */
    int32_t layout;       /* copies.c: there, its index in the list of layouts */
    bool stored;          /* store.c: it needs memory */
    int64_t offset_bytes; /* in the workspace */
} wb_placement;

/* The memory of a plan: store.c says what needs some, copies.c what lies in a copy, place.c where
 * all lies. */
typedef struct wb_placements {
    wb_placement *of;   /* of each value */
    wb_layout *layouts; /* of values in copies */
    int64_t layout_count, layout_capacity;
    int32_t leaf_count, output_count, late_count; /* memory table: leaves, outputs, workspace */
    int32_t *leaves;                              /* places on the tape */
    int32_t *outputs;                             /* values */
    int32_t *late;                                /* place on the tape << 1 | word */
    int32_t settled_count; /* how many of the first outputs are parameters and states */
    int32_t missed_donations;
    int64_t workspace_bytes;
} wb_placements;

/* place.c: units as they run. */
typedef struct wb_unit_order {
    int32_t *units;
    int64_t count;
} wb_unit_order;

/* What the stages of planning find, in their order. Each writes its own part, and reads the parts
 * before it; after wb_graph_place nothing is written any more. */
typedef struct wb_graph {
    const wb_tape *tape;
    bool fuse;
    bool explain; /* WEBER_DEBUG=plan */
    /* lower.c, values.c and separate.c, through wb_values */
    const wb_value *values; /* remat.c adds some */
    int64_t count;
    const wb_layout *layouts; /* layouts of the values that are not dense */
    int64_t layout_count;
    const wb_named_node *callables;
    int64_t callable_count;
    const int32_t *of_tape;  /* value of each node on the tape, or -1 */
    int32_t last_collective; /* value; -1: there is none */
    wb_readers readers;
    wb_units units;
    wb_placements places;
    wb_unit_order order;
} wb_graph;

bool wb_graph_lower(wb_graph *graph, const wb_tape *tape);
void wb_graph_release(wb_graph *graph); /* in plan.c, beside the rest of a build */

/* ---- values.c ---- */

/* The writer of a graph's values. Its functions return the number of a value, -1 when out of
 * memory. */
typedef struct wb_values {
    wb_graph *graph; /* which refers to the lists, and releases them */
    wb_value *at;
    wb_layout *layouts;
    wb_named_node *callables;
    int32_t *of_tape;
    int64_t capacity, layout_capacity, callable_capacity;
    wb_table table; /* of hashes of the values; its numbers are the values' */
    bool is_step;   /* what is written next belongs to an optimiser's step */
} wb_values;

wb_value wb_blank_value(const wb_array *node, wb_value_kind kind);
/* Adds the value as it is. Its base is left to the caller. */
int32_t wb_append_value(wb_values *values, const wb_value *v);
/* Adds the value, unless an equal one is there; returns its number. Takes over its list of
 * inputs. */
int32_t wb_add_value(wb_values *values, wb_value v);
/* The same for an elementwise value, simplified if possible: to a constant, or one of its
 * inputs. */
int32_t wb_add_element(wb_values *values, const wb_value *v);
int32_t wb_cast_value(wb_values *values, int32_t from, wb_dtype dtype);
/* The value `from`, rounded to dtype if that is f16 or bf16. An ordinary cast to these types only
 * says how the result is stored, since programs compute in f32; one that rounds has attribute 0 set
 * to 1. */
int32_t wb_round_value(wb_values *values, int32_t from, wb_dtype dtype);
/* True if v has the sizes and type of the result. */
bool wb_stands_for(const wb_values *values, int32_t v, const wb_value *result);
/* The number as a constant of this type: rounded, cut or wrapped as a cast does. */
double wb_constant_as(wb_dtype dtype, double number);

static inline const int32_t *wb_value_inputs(const wb_value *v) {
    return v->ninputs > 3 ? v->input_list : v->small_inputs;
}

/* The layout of a value's elements as its operation gives it: for a view, counted from its base's
 * memory. */
static inline wb_layout wb_value_layout(const wb_graph *graph, const wb_value *v) {
    return v->layout < 0 ? wb_layout_dense(v->ndim, v->sizes) : graph->layouts[v->layout];
}

/* The same once values have places: one that lies in a copy is counted from the copy's memory. */
static inline wb_layout wb_placed_layout(const wb_graph *graph, int32_t v) {
    const wb_placement *place = &graph->places.of[v];
    if (place->holder >= 0) return graph->places.layouts[place->layout];
    return wb_value_layout(graph, &graph->values[v]);
}

static inline int64_t wb_value_count(const wb_value *v) {
    return wb_count_sizes(v->ndim, v->sizes);
}
/* As many as it takes in memory of its own. */
static inline int64_t wb_value_bytes(const wb_value *v) {
    return wb_value_count(v) * (int64_t)wb_dtype_size((wb_dtype)v->dtype);
}
static inline bool wb_value_has_sizes_of(const wb_value *v, const wb_value *other) {
    return v->ndim == other->ndim &&
           memcmp(v->sizes, other->sizes, sizeof *v->sizes * v->ndim) == 0;
}

/* ---- separate.c ---- */

/* Results that were merged because they are equal get separate memory, unless they are views of one
 * array: two parameters that begin with the same numbers are not tied. False when out of memory. */
bool wb_values_separate(wb_values *values);

/* ---- readers.c ---- */

/* Lists the readers of each value's memory, once for each graph. */
bool wb_graph_list_readers(wb_graph *graph);

/* The values that read the memory of v, directly or through views, in order; one that reads it
 * twice is listed twice. Views themselves read no memory and are left out. */
static inline const int32_t *wb_value_readers(const wb_graph *graph, int32_t v, int64_t *count) {
    const wb_readers *readers = &graph->readers;
    *count = readers->start[v + 1] - readers->start[v];
    return readers->list + readers->start[v];
}

/* The value whose memory v uses: v itself, or the value that v is a view of. */
static inline int32_t wb_value_base(const wb_graph *graph, int32_t v) {
    return graph->values[v].base;
}

/* ---- units.c ---- */

typedef enum wb_unit_kind { WB_UNIT_PROGRAM, WB_UNIT_CALL, WB_UNIT_COPY } wb_unit_kind;

/* As in wb_value, members that searches read come first. */
typedef struct wb_unit {
    int32_t merged_into; /* absorbed by another unit, or -1 */
    int32_t fused_into;  /* of a program that is a call's epilogue: that call; else -1 */
    int32_t mark;        /* of the last search that found it */
    int32_t last;        /* the greatest number among its members */
    int64_t label;       /* less than that of every unit after it */
    /* units that must run before this one: number << 1, plus 1 if it reads their values through a
     * view. A unit may be listed several times, or by its number before it was merged:
     * wb_unit_needed gives the current one. */
    int32_t *needs;
    int64_t need_count;
    int64_t user_count; /* entries of other units' lists that name it, at least */
    int32_t *members;   /* values: those of a program, in order; the one of a call or copy */
    int64_t member_count;
    int32_t before, after; /* its neighbours in the list, which is in order; -1: none */
    wb_unit_kind kind;
    /* of a call: the program that is its epilogue, or -1 (there fused_into is the call) */
    int32_t epilogue;
    int ndim;
    uint32_t reduced;
    int64_t sizes[WB_MAX_DIMS]; /* a program's domain */
    int phases;
    int32_t position;  /* in the plan */
    bool is_update;    /* settles parameters or states, and no other unit needs it */
    bool is_postponed; /* an update that comes last, with others */
    int64_t need_capacity, member_capacity;
} wb_unit;

/* The unit that absorbed u, or u itself. */
int32_t wb_unit_find(const wb_units *units, int32_t u);
/* The unit itself; for a program that is a call's epilogue, the call. */
int32_t wb_unit_runs_with(const wb_units *units, int32_t u);
/* The unit that computes v (through views), or WB_NO_UNIT for leaves, constants and inline
 * sources. */
static inline int32_t wb_value_unit(const wb_graph *graph, int32_t v) {
    return graph->units.of[wb_value_base(graph, v)].unit;
}

/* Notes that the unit needs another unit, or those that compute a member's inputs. False when out
 * of memory. */
bool wb_unit_need(wb_units *units, int32_t unit, int32_t needed, bool by_view);
bool wb_unit_need_inputs(wb_graph *graph, int32_t unit, int32_t member);
/* Entry i of the list of needs, as the current number of that unit. */
int32_t wb_unit_needed(const wb_units *units, const wb_unit *unit, int64_t i);
/* True if the unit reads something of unit `of`, or of itself, as a view. */
bool wb_unit_reads_view(const wb_units *units, int32_t unit, int32_t of);
/* Takes a value out of the program that computes it. */
void wb_unit_remove(wb_units *units, int32_t member);
/* Makes the lists of needs of all units again, from their members. False when out of memory. */
bool wb_units_list_needs(wb_graph *graph);

/* Puts a new unit first (if it needs no other) or last. */
void wb_unit_put_first(wb_units *units, int32_t unit);
void wb_unit_put_last(wb_units *units, int32_t unit);

enum { WB_MOST_LOOKS = 128 };

/* The question whether units can run before the unit `first`. Asking changes nothing; the answer
 * yes is valid until a unit is moved. */
typedef struct wb_question {
    wb_units *units;
    int32_t first, mark, looks;
    bool goes_later; /* of two to be merged: the earlier one, which only the later one needs */
    int32_t count;   /* units after `first` that would have to be moved */
    int32_t found[WB_MOST_LOOKS];
} wb_question;

void wb_ask_before(wb_units *units, int32_t unit, wb_question *q);
/* True if this unit, too, runs before `first`, or can be moved there with all that it needs. False:
 * it needs `first`, or the search was given up; then ask no further question. */
bool wb_may_come(wb_question *q, int32_t unit);
/* True if the two can be merged: no third unit is on a path between them. False if the search was
 * given up. */
bool wb_may_unite(wb_units *units, int32_t a, int32_t b, wb_question *q);

/* Does what was answered with yes. wb_move_before moves the units; wb_unite makes the two one in
 * the order, at the place of the earlier one unless that goes later, and `into` needs what both
 * need. False when out of memory. */
void wb_move_before(wb_question *q);
bool wb_unite(wb_question *q, int32_t into, int32_t from);

/* ---- fuse.c ---- */

/* Puts values into units, and says which of them are stored. False when out of memory. */
bool wb_graph_fuse(wb_graph *graph);

/* True for a value that is computed inside the programs that read it: numbers, iota, random
 * sources. */
static inline bool wb_value_is_inline(const wb_value *v) {
    return v->kind == WB_VALUE_CONSTANT || v->kind == WB_VALUE_LATE || v->kind == WB_VALUE_SOURCE;
}
/* True for a value that can be part of a program. */
static inline bool wb_value_is_fused(const wb_value *v) {
    return v->kind == WB_VALUE_ELEMENT || v->kind == WB_VALUE_REDUCE;
}
/* True if v has the sizes of the unit's domain; sizes of 1 at the end do not count. */
bool wb_value_is_full(const wb_unit *unit, const wb_value *v);
/* True for a row value of the unit: one for each combination of the dimensions that are not
 * reduced. */
bool wb_value_is_row(const wb_unit *unit, const wb_value *v);

/* True if v is a sum that its unit computes beside its rows. No other value of the unit reads it,
 * since it is known only when the program ends. */
bool wb_value_is_side_sum(const wb_graph *graph, const wb_unit *unit, const wb_value *v);

/* Makes a new program unit with this member. Returns its number, or -1 when out of memory. */
int32_t wb_unit_new_program(wb_graph *graph, int32_t member);

enum { WB_MOST_MEMBERS = 160 };

/* The phase of v in a unit whose members' phases are known: for a full value the one in which it is
 * computed, for a row value the number of phases that must have ended. */
int wb_phase_in(const wb_graph *graph, int32_t unit, const wb_value *v);
/* The number of phases that the unit needs if v joins it in this phase. */
int wb_phases_with(const wb_graph *graph, const wb_unit *u, const wb_value *v, int phase);

/* ---- sink.c ---- */

/* Moves each value that only one program uses into that program. False when out of memory. */
bool wb_graph_sink(wb_graph *graph);
/* The phases of all programs, from their members. */
void wb_graph_set_phases(wb_graph *graph);

/* ---- remat.c ---- */

/* Lets programs compute cheap values that they would load. False when out of memory. */
bool wb_graph_rematerialise(wb_graph *graph);

/* ---- store.c ---- */

/* Marks the values that need memory: those that another unit reads, and the plan's results. False
 * when out of memory. */
bool wb_graph_store(wb_graph *graph);

/* ---- updates.c ---- */

/* Finds the updates, if the device joins them (joins_updates). Outputs must be numbered. */
bool wb_graph_find_updates(wb_graph *graph);
/* The postponed updates, similar ones side by side. NULL when out of memory. */
wb_unit **wb_graph_postponed(const wb_graph *graph, int64_t *count);
/* True if the unit at that position of the order is an update that may run at once with those
 * before it, from *first on; otherwise *first becomes its own position. */
bool wb_graph_is_concurrent(const wb_graph *graph, int64_t position, int64_t *first);

/* ---- copies.c ---- */

/* Stores values that only a copy reads directly at their place in that copy. Outputs must be
 * numbered. False when out of memory. */
bool wb_graph_spare_copies(wb_graph *graph);

/* ---- place.c ---- */

bool wb_graph_place(wb_graph *graph);
/* True if no unit but `reader`, the call's epilogue, reads the call's result. */
bool wb_is_private(const wb_graph *graph, int32_t call, int32_t reader);

/* ---- check.c ---- */

/* False with WB_ERROR_INTERNAL recorded if a value would be read before it is written, or after it
 * was overwritten. To be called after wb_graph_place. */
bool wb_graph_check(const wb_graph *graph);

#endif
