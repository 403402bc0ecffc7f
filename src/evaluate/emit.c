/* Units as programs over their operands' layouts.
 *
 * Reads the graph. Writes programs with their arguments. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "evaluate/emit.h"
#include "program/domain.h"

typedef struct emitter {
    const wb_graph *graph;
    int32_t
        *places; /* of each value, where it would be in `known`, whatever programs came before */
    const wb_unit *unit;
    int32_t number; /* of the unit; -1 for copies */
    wb_emitted *out;
    struct known {
        int32_t value;
        uint16_t full, row; /* instructions that give it, or WB_NO_VALUE */
        uint16_t stored;    /* the access by which it is stored */
        uint8_t owner;      /* number of the callable that it is part of, from 1 on; 0: none */
    } * known;
    int64_t known_count, known_capacity;
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
} emitter;

/* ---- the parts of a program ---- */

static uint16_t instruction(emitter *e, wb_instruction i) {
    wb_program *p = &e->out->program;
    if (p->ninstructions >= WB_NO_VALUE - 1 ||
        !WB_GROW(p->instructions, p->ninstructions, e->out->instruction_capacity))
        return WB_NO_VALUE;
    p->instructions[p->ninstructions] = i;
    return (uint16_t)p->ninstructions++;
}

static wb_instruction blank(wb_code code, wb_register type) {
    return (wb_instruction){.code = (uint8_t)code,
                            .type = (uint8_t)type,
                            .in = {WB_NO_VALUE, WB_NO_VALUE, WB_NO_VALUE}};
}

static int argument(emitter *e, wb_argument wanted) {
    wb_emitted *out = e->out;
    for (int64_t i = 0; i < out->argument_count; i++)
        if (out->arguments[i].memory == wanted.memory &&
            out->arguments[i].offset_bytes == wanted.offset_bytes)
            return (int)i;
    if (!WB_GROW(out->arguments, out->argument_count, out->argument_capacity)) return -1;
    out->arguments[out->argument_count] = wanted;
    return (int)out->argument_count++;
}

static int access_new(emitter *e, wb_access access) {
    wb_program *p = &e->out->program;
    if (!WB_GROW(p->accesses, p->naccesses, e->out->access_capacity)) return -1;
    p->accesses[p->naccesses] = access;
    return p->naccesses++;
}

wb_argument wb_argument_of(const wb_graph *graph, int32_t v) {
    const wb_placement *place = &graph->places.of[wb_value_base(graph, v)];
    return (wb_argument){.memory = (uint32_t)place->memory, .offset_bytes = place->offset_bytes};
}

/* How the program reads or writes value v when its elements lie as layout says; sizes of 1
 * repeat. */
static int access_to(emitter *e, int32_t v, const wb_layout *layout) {
    const int a = argument(e, wb_argument_of(e->graph, v));
    if (a < 0) return -1;
    wb_access access = {
        .dtype = e->graph->values[v].dtype, .argument = (uint16_t)a, .offset = layout->offset};
    for (int d = 0; d < layout->ndim; d++)
        access.strides[d] = layout->sizes[d] == 1 ? 0 : layout->strides[d];
    return access_new(e, access);
}

/* ---- operands ---- */

static struct known *find_known(const emitter *e, int32_t v) {
    const int32_t at = v < 0 ? 0 : e->places[v];
    return at < e->known_count && e->known[at].value == v ? &e->known[at] : NULL;
}

static struct known *known_value(emitter *e, int32_t v) {
    struct known *k = find_known(e, v);
    if (k) return k;
    if (!WB_GROW(e->known, e->known_count, e->known_capacity)) return NULL;
    e->places[v] = (int32_t)e->known_count;
    e->known[e->known_count] = (struct known){v, WB_NO_VALUE, WB_NO_VALUE, WB_NO_VALUE, 0};
    return &e->known[e->known_count++];
}

/* iota and random numbers: an access without memory gives the number of the element. */
static uint16_t emit_source(emitter *e, int32_t number, bool row) {
    const wb_value *v = &e->graph->values[number];
    wb_access access = {.argument = WB_NO_VALUE};
    int64_t dense[WB_MAX_DIMS];
    wb_dense_strides(v->ndim, v->sizes, dense);
    for (int d = 0; d < v->ndim; d++) {
        if (v->sizes[d] == 1) continue;
        access.strides[d] = v->op != WB_OP_iota ? dense[d] : v->attributes.along.dim == d;
    }
    wb_instruction i = blank(v->op == WB_OP_iota     ? WB_CODE_iota
                             : v->op == WB_OP_normal ? WB_CODE_normal
                                                     : WB_CODE_uniform,
                             wb_register_of((wb_dtype)v->dtype));
    const int a = access_new(e, access);
    if (a < 0) return WB_NO_VALUE;
    i.index = (uint16_t)a;
    i.row = row;
    i.constant = v->op == WB_OP_iota ? 0 : e->graph->places.of[number].late;
    return instruction(e, i);
}

static uint16_t emit_constant(emitter *e, int32_t number) {
    const wb_value *v = &e->graph->values[number];
    const wb_code code = v->kind == WB_VALUE_LATE ? WB_CODE_late : WB_CODE_constant;
    wb_instruction i = blank(code, wb_register_of((wb_dtype)v->dtype));
    i.constant = v->constant;
    if (v->kind == WB_VALUE_LATE) i.index = (uint16_t)e->graph->places.of[number].late;
    return instruction(e, i);
}

static uint16_t emit_load(emitter *e, int32_t number, bool row) {
    const wb_value *v = &e->graph->values[number];
    const wb_layout layout = wb_placed_layout(e->graph, number);
    const int a = access_to(e, number, &layout);
    if (a < 0) return WB_NO_VALUE;
    wb_instruction i = blank(WB_CODE_load, wb_register_of((wb_dtype)v->dtype));
    i.index = (uint16_t)a;
    i.row = row;
    return instruction(e, i);
}

static bool is_member(const emitter *e, int32_t v) {
    return wb_value_is_fused(&e->graph->values[v]) && e->graph->units.of[v].unit == e->number;
}

/* An iota or random numbers that the program computes itself. */
static bool is_computed_here(const emitter *e, int32_t v) {
    return e->graph->values[v].kind == WB_VALUE_SOURCE && !e->graph->places.of[v].stored;
}

static uint16_t spread(emitter *e, uint16_t row_value, int phase) {
    wb_instruction i =
        blank(WB_CODE_spread, wb_result_register(&e->out->program.instructions[row_value]));
    i.in[0] = row_value;
    i.phase = (uint8_t)phase;
    return instruction(e, i);
}

/* The instruction that gives value v as a full or a row value. */
static uint16_t operand(emitter *e, int32_t v, bool row) {
    const wb_value *value = &e->graph->values[v];
    struct known *k = known_value(e, v);
    if (!k) return WB_NO_VALUE;
    uint16_t *place = row ? &k->row : &k->full;
    if (*place != WB_NO_VALUE) return *place;
    uint16_t made;
    if (is_member(e, v)) { /* a row value that is used as a full value */
        if (k->row == WB_NO_VALUE) return WB_NO_VALUE;
        made = spread(e, k->row, e->graph->units.of[v].phase);
    } else if (value->kind == WB_VALUE_CONSTANT || value->kind == WB_VALUE_LATE)
        made = emit_constant(e, v);
    else if (is_computed_here(e, v))
        made = emit_source(e, v, row);
    else
        made = emit_load(e, v, row);
    k = known_value(e, v);
    return *(row ? &k->row : &k->full) = made;
}

/* ---- members ---- */

static wb_code code_of(int op) {
    static const uint8_t codes[WB_OP_COUNT] = {
#define WB_UNARY(name, ...)  [WB_OP_##name] = WB_CODE_##name,
#define WB_BINARY(name, ...) [WB_OP_##name] = WB_CODE_##name,
#include <weber/ops.def>
        [WB_OP_select] = WB_CODE_select,
        [WB_OP_cast] = WB_CODE_cast,
        [WB_OP_sum] = WB_CODE_sum,
        [WB_OP_max_reduce] = WB_CODE_max_reduce,
    };
    return (wb_code)codes[op];
}

/* u8 wraps as its storage would: arithmetic on it is done in i32. */
static uint16_t wrap_u8(emitter *e, uint16_t value, const wb_instruction *like) {
    wb_instruction c = blank(WB_CODE_constant, WB_R_I32);
    c.constant = 256;
    wb_instruction i = blank(WB_CODE_mod, WB_R_I32);
    i.in[0] = value, i.in[1] = instruction(e, c);
    i.row = like->row, i.phase = like->phase, i.from = WB_R_I32;
    return i.in[1] == WB_NO_VALUE ? WB_NO_VALUE : instruction(e, i);
}

static bool is_read_here(const emitter *e, int32_t number) {
    for (int64_t m = 0; m < e->unit->member_count; m++) {
        const wb_value *v = &e->graph->values[e->unit->members[m]];
        for (int k = 0; k < v->ninputs; k++)
            if (wb_value_inputs(v)[k] == number) return true;
    }
    return false;
}

/* A cast to halves is rounded here if the program reads it; if it is only stored, the store rounds
 * it. */
static uint16_t round_half(emitter *e, int32_t number, uint16_t value, const wb_instruction *like) {
    const wb_value *v = &e->graph->values[number];
    if (value == WB_NO_VALUE || v->op != WB_OP_cast || !v->attributes.cast.rounds) return value;
    if (!wb_is_half(v->dtype) || !is_read_here(e, number)) return value;
    wb_instruction i = *like;
    i.in[0] = value, i.from = WB_R_F32, i.index = v->dtype;
    return instruction(e, i);
}

static bool emit_member(emitter *e, int32_t number) {
    const wb_value *v = &e->graph->values[number];
    if (wb_value_is_side_sum(e->graph, e->unit, v)) return true; /* computed where it is stored */
    const bool row = wb_value_is_row(e->unit, v), reduces = v->kind == WB_VALUE_REDUCE;
    wb_instruction i = blank(code_of(v->op), wb_register_of((wb_dtype)v->dtype));
    for (int k = 0; k < v->ninputs; k++) {
        i.in[k] = operand(e, v->small_inputs[k], row && !reduces);
        if (i.in[k] == WB_NO_VALUE) return false;
    }
    const wb_value *first = &e->graph->values[v->small_inputs[0]];
    if (v->op == WB_OP_cast)
        i.from = (uint8_t)wb_register_of((wb_dtype)first->dtype);
    else
        i.from = i.type; /* the result's register */
    const wb_type_class type_class = wb_op_rows[v->op].type_class;
    if (type_class == WB_CLASS_COMPARE) i.type = (uint8_t)wb_register_of((wb_dtype)first->dtype);
    i.row = row;
    i.is_step = v->is_step;
    i.phase = e->graph->units.of[number].phase;
    /* halves and f32 share registers */
    const bool is_alias = v->op == WB_OP_cast && v->dtype != WB_U8 && i.from == i.type;
    uint16_t made = is_alias ? i.in[0] : instruction(e, i);
    const bool may_wrap =
        v->dtype == WB_U8 && (v->op == WB_OP_cast || type_class == WB_CLASS_NUMBER);
    if (may_wrap && made != WB_NO_VALUE) made = wrap_u8(e, made, &i);
    made = round_half(e, number, made, &i);
    struct known *k = known_value(e, number);
    if (!k || made == WB_NO_VALUE) return false;
    if (row)
        k->row = made;
    else
        k->full = made;
    return true;
}

static bool emit_store_at(emitter *e, wb_code code, uint16_t source, int32_t to,
                          const wb_layout *layout, bool row, int phase) {
    const int a = access_to(e, to, layout);
    if (a < 0 || source == WB_NO_VALUE) return false;
    wb_instruction i = blank(code, wb_register_of((wb_dtype)e->graph->values[to].dtype));
    i.in[0] = source, i.index = (uint16_t)a, i.row = row, i.phase = (uint8_t)phase;
    return instruction(e, i) != WB_NO_VALUE;
}

/* A value that takes over memory which several phases read is stored in the last phase; it is
 * computed again there, unless registers still hold it. */
static int store_phase(const emitter *e, int32_t v, bool row) {
    const wb_placements *places = &e->graph->places;
    const bool takes_over = places->of[v].output >= 0 && places->of[v].memory < places->leaf_count;
    return takes_over && !row && e->unit->reduced ? e->unit->phases - 1
                                                  : e->graph->units.of[v].phase;
}

static bool emit_store(emitter *e, int32_t number) {
    const wb_value *v = &e->graph->values[number];
    if (!e->graph->places.of[number].stored) return true;
    const bool is_source = !wb_value_is_fused(v);
    const bool is_side_sum = !is_source && wb_value_is_side_sum(e->graph, e->unit, v);
    const bool row = !is_source && !is_side_sum && wb_value_is_row(e->unit, v);
    uint16_t source;
    if (v->kind == WB_VALUE_SOURCE)
        source = emit_source(e, number, false);
    else if (is_source)
        source = emit_constant(e, number);
    else if (is_side_sum)
        source = operand(e, v->small_inputs[0], false);
    else {
        const struct known *k = known_value(e, number);
        source = !k ? WB_NO_VALUE : row ? k->row : k->full;
    }
    const wb_layout layout = wb_placed_layout(e->graph, number);
    const wb_code code = is_side_sum ? WB_CODE_side_sum : WB_CODE_store;
    const int phase = is_side_sum ? e->graph->units.of[number].phase : store_phase(e, number, row);
    if (!emit_store_at(e, code, source, number, &layout, row, phase)) return false;
    struct known *k = known_value(e, number);
    if (k) k->stored = (uint16_t)(e->out->program.naccesses - 1);
    return k != NULL;
}

/* ---- callables ---- */

/* Value v as a callable reads it. */
static wb_operand operand_of(const emitter *e, int32_t v) {
    const struct known *k = find_known(e, v);
    const uint16_t made = !k ? WB_NO_VALUE : k->full != WB_NO_VALUE ? k->full : k->row;
    if (made == WB_NO_VALUE) return (wb_operand){.kind = WB_OPERAND_NONE};
    const wb_value *value = &e->graph->values[v];
    if (is_member(e, v) || is_computed_here(e, v)) return (wb_operand){WB_OPERAND_VALUE, made};
    if (value->kind == WB_VALUE_CONSTANT || value->kind == WB_VALUE_LATE)
        return (wb_operand){WB_OPERAND_NUMBER, made};
    return (wb_operand){WB_OPERAND_ARRAY, e->out->program.instructions[made].index};
}

static wb_operand result_of(const emitter *e, int32_t v) {
    const struct known *k = find_known(e, v);
    const bool is_stored = k && k->stored != WB_NO_VALUE;
    return is_stored ? (wb_operand){WB_OPERAND_ARRAY, k->stored} : operand_of(e, v);
}

static bool is_listed(const int32_t *list, int count, int32_t v) {
    for (int i = 0; i < count; i++)
        if (list[i] == v) return true;
    return false;
}

/* Marks the values that the callable consists of, back from its results to its operands. False:
 * some of them belong to another callable, too. */
static bool claim(emitter *e, const wb_named_node *named, uint8_t owner) {
    for (int r = 0; r < WB_CALLABLE_RESULTS; r++) {
        struct known *k = find_known(e, named->out[r]);
        if (!k) continue;
        if (k->owner) return false;
        k->owner = owner;
    }
    for (int64_t m = e->unit->member_count - 1; m >= 0; m--) {
        const int32_t number = e->unit->members[m];
        const struct known *k = find_known(e, number);
        if (!k || k->owner != owner) continue;
        const wb_value *v = &e->graph->values[number];
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t input = v->small_inputs[i];
            if (is_listed(named->in, WB_CALLABLE_INPUTS, input)) continue;
            struct known *from = find_known(e, input);
            if (!is_member(e, input) || from->owner == owner) continue;
            if (from->owner) return false;
            from->owner = owner;
        }
    }
    return true;
}

/* Lists the callable whose first result a member is, if its first operand is known here. */
static bool emit_callable(emitter *e, const wb_named_node *named) {
    wb_program *p = &e->out->program;
    if (p->ncallables == WB_MOST_CALLABLES || !find_known(e, named->in[0])) return false;
    wb_callable *c = &p->callables[p->ncallables++];
    (void)snprintf(c->name, sizeof c->name, "%s", named->name);
    memcpy(c->numbers, named->numbers, sizeof c->numbers);
    for (int i = 0; i < WB_CALLABLE_INPUTS; i++) c->in[i] = operand_of(e, named->in[i]);
    for (int i = 0; i < WB_CALLABLE_RESULTS; i++) c->out[i] = result_of(e, named->out[i]);
    return !p->reduced && p->phases == 1 && claim(e, named, (uint8_t)p->ncallables);
}

/* What is stored of the member is a callable's result. */
static bool is_part(const emitter *e, const wb_named_node *const *named, int32_t number) {
    const struct known *k = find_known(e, number);
    return k && (k->stored == WB_NO_VALUE ||
                 (k->owner && is_listed(named[k->owner - 1]->out, WB_CALLABLE_RESULTS, number)));
}

static bool is_owned(const emitter *e, int32_t number) {
    const struct known *k = find_known(e, number);
    return k && k->owner;
}

static void emit_callables(emitter *e) {
    const wb_graph *graph = e->graph;
    const wb_named_node *listed[WB_MOST_CALLABLES];
    wb_program *p = &e->out->program;
    bool all = true;
    for (int64_t m = 0; m < e->unit->member_count; m++) {
        const int32_t number = graph->values[e->unit->members[m]].callable;
        if (!number) continue;
        if (p->ncallables < WB_MOST_CALLABLES)
            listed[p->ncallables] = &graph->callables[number - 1];
        all = emit_callable(e, &graph->callables[number - 1]) && all;
    }
    for (int64_t m = 0; all && p->ncallables && m < e->unit->member_count; m++)
        all = is_part(e, listed, e->unit->members[m]);
    p->is_fed = p->is_named = all && p->ncallables > 0;
    for (int64_t m = 0; p->is_named && m < e->unit->member_count; m++)
        p->is_named = is_owned(e, e->unit->members[m]);
}

/* ---- the domain ---- */

/* Fewer, longer dimensions: those of size 1 go, and neighbours that every access walks as one are
 * joined, on each side of the split. */
static void simplify(wb_emitted *out, int keep) {
    wb_program *p = &out->program;
    out->split = keep;
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (p->sizes[d] != 1) continue;
        wb_drop_dim(p, d);
        if (d < out->split) out->split--;
    }
    for (int d = 0; d + 1 < p->ndim;)
        if (d + 1 == out->split || !wb_join_dim(p, d))
            d++;
        else if (d < out->split)
            out->split--;
}

static emitter start(const wb_graph *graph, const wb_unit *unit, int ndim, const int64_t *sizes,
                     wb_emitted *out) {
    *out = (wb_emitted){.program = {.ndim = ndim, .phases = 1}};
    emitter e = {.graph = graph,
                 .unit = unit,
                 .number = unit ? (int32_t)(unit - graph->units.at) : -1,
                 .out = out,
                 .ndim = ndim};
    for (int d = 0; d < ndim; d++) out->program.sizes[d] = e.sizes[d] = sizes[d];
    return e;
}

static bool finish(emitter *e, bool emitted, int keep) {
    e->out->program.narguments = (int32_t)e->out->argument_count;
    if (emitted) simplify(e->out, keep);
    wb_release(e->known);
    if (!emitted) wb_emitted_release(e->out);
    return emitted;
}

bool wb_emit_program(const wb_graph *graph, int32_t *places, const wb_unit *unit, int keep,
                     wb_emitted *out) {
    emitter e = start(graph, unit, unit->ndim, unit->sizes, out);
    e.places = places;
    out->program.reduced = unit->reduced;
    out->program.phases = unit->phases;
    bool emitted = true;
    for (int64_t m = 0; emitted && m < unit->member_count; m++) {
        const wb_value *v = &graph->values[unit->members[m]];
        if (wb_value_is_fused(v)) emitted = emit_member(&e, unit->members[m]);
    }
    for (int64_t m = 0; emitted && m < unit->member_count; m++)
        emitted = emit_store(&e, unit->members[m]);
    if (emitted && graph->callable_count) emit_callables(&e);
    return finish(&e, emitted, keep);
}

bool wb_emit_copy(const wb_graph *graph, int32_t *places, int32_t from, int32_t to,
                  const wb_layout *layout, wb_emitted *out) {
    const wb_value *v = &graph->values[from];
    emitter e = start(graph, NULL, v->ndim, v->sizes, out);
    e.places = places;
    uint16_t value = operand(&e, from, false);
    const wb_register have = wb_register_of((wb_dtype)v->dtype),
                      want = wb_register_of((wb_dtype)graph->values[to].dtype);
    if (value != WB_NO_VALUE && have != want) {
        wb_instruction i = blank(WB_CODE_cast, want);
        i.from = (uint8_t)have, i.in[0] = value;
        value = instruction(&e, i);
    }
    return finish(&e, emit_store_at(&e, WB_CODE_store, value, to, layout, false, 0), 0);
}

bool wb_emit_fill(const wb_graph *graph, int32_t to, double number, wb_emitted *out) {
    const wb_value *v = &graph->values[to];
    emitter e = start(graph, NULL, v->ndim, v->sizes, out);
    wb_instruction i = blank(WB_CODE_constant, wb_register_of((wb_dtype)v->dtype));
    i.constant = number;
    const uint16_t value = instruction(&e, i);
    const wb_layout layout = wb_placed_layout(graph, to);
    return finish(&e, emit_store_at(&e, WB_CODE_store, value, to, &layout, false, 0), 0);
}

void wb_emitted_release(wb_emitted *emitted) {
    wb_release(emitted->program.instructions);
    wb_release(emitted->program.accesses);
    wb_release(emitted->arguments);
    *emitted = (wb_emitted){.split = 0};
}
