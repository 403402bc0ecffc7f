/* Running a program: tiles of the kept dimensions are units, each reduced tile by tile through the
 * phases. */
#include <string.h>

#include "fade.h"
#include "pool.h"
#include "tile.h"

/* ---- reductions ---- */

static void start_reductions(const wb_cpu_program *k, wb_accumulator *accumulators) {
    if (k->reductions == 0) return;
    for (int i = 0; i < k->program.ninstructions; i++) {
        const wb_instruction *r = &k->program.instructions[i];
        if (!wb_is_reduction(r)) continue;
        const bool is_float = r->type == WB_R_F32 || r->type == WB_R_F64;
        wb_accumulator start = {.i = 0};
        if (r->code == WB_CODE_max_reduce && is_float)
            start.f = -__builtin_inf();
        else if (r->code == WB_CODE_max_reduce)
            start.i = INT64_MIN;
        else if (is_float)
            start.f = 0;
        for (int64_t v = 0; v < k->row_values; v++)
            accumulators[k->reduction[i] * k->row_values + v] = start;
    }
}

static void sum_products(const wb_tile *t, const wb_step *step, bool is_columns, int64_t inner,
                         int64_t outer, wb_accumulator *sums) {
    const wb_loops *loops = t->job->k->loops;
    wb_dot_loop *const *loop = is_columns ? loops->dot_columns : loops->dot_rows;
    loop[step->instruction->type](inner, outer, t->value[step->in[0]], t->value[step->in[1]], sums);
}

static void sum_moments(const wb_tile *t, const wb_step *step, bool is_columns, int64_t inner,
                        int64_t outer, wb_accumulator *squares) {
    const wb_cpu_program *k = t->job->k;
    wb_moment_loop *const *loop = is_columns ? k->loops->moment_columns : k->loops->moment_rows;
    loop[step->instruction->type](inner, outer, t->value[step->in[0]], t->value[step->in[1]],
                                  t->accumulators + k->reduction[step->twin] * k->row_values,
                                  squares);
}

static void reduce(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_instruction *i = step->instruction;
    const int is_max = i->code == WB_CODE_max_reduce;
    wb_accumulator *sums = t->accumulators + k->reduction[step->number] * k->row_values;
    const void *x = t->value[step->in[0]];
    const int64_t length = k->shape == WB_ROWS ? t->inner : t->inner * t->outer,
                  rows = k->shape == WB_ROWS ? t->outer : 1;
    const bool is_columns = k->shape == WB_COLUMNS;
    if (step->fused)
        (step->fused == WB_MOMENTS ? sum_moments : sum_products)(
            t, step, is_columns, is_columns ? t->inner : length, is_columns ? t->outer : rows,
            sums);
    else if (is_columns)
        k->loops->reduce_columns[is_max][i->type](t->inner, t->outer, x, sums);
    else
        k->loops->reduce_rows[is_max][i->type](length, rows, x, sums);
}

#define FINISH(T, field)                                                                           \
    for (int64_t v = 0; v < n; v++) ((T *)to)[v] = (T)sums[v].field;                               \
    break

/* Accumulators to a register. */
static void finish(uint8_t type, int64_t n, const wb_accumulator *sums, void *to) {
    switch ((wb_register)type) {
    case WB_R_F32:
        FINISH(float, f);
    case WB_R_F64:
        FINISH(double, f);
    case WB_R_I64:
        FINISH(int64_t, i);
    default:
        FINISH(int32_t, i);
    }
}

static void finish_reduction(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    finish(step->instruction->type, t->row_values,
           t->accumulators + k->reduction[step->number] * k->row_values, t->value[step->number]);
}

static wb_accumulator merge(const wb_instruction *i, wb_accumulator a, wb_accumulator b) {
    const bool is_float = i->type == WB_R_F32 || i->type == WB_R_F64;
    if (i->code != WB_CODE_max_reduce) {
        if (is_float)
            a.f += b.f;
        else
            a.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
    } else if (is_float)
        a.f = a.f < b.f || b.f != b.f ? b.f : a.f;
    else if (a.i < b.i)
        a.i = b.i;
    return a;
}

/* ---- side sums: of each piece, put together in order ---- */

/* The whole tile, or its rows, which are whole ones then. */
static void add_up(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_instruction *i = step->instruction;
    wb_accumulator *sums = t->sides + k->offset[step->number];
    const bool is_one = wb_side_count(k, i) == 1;
    const int64_t inner = is_one ? t->inner * t->outer : t->inner, outer = is_one ? 1 : t->outer;
    if (step->fused)
        sum_products(t, step, !is_one, inner, outer, sums);
    else
        (is_one ? k->loops->reduce_rows
                : k->loops->reduce_columns)[0][i->type](inner, outer, t->value[step->in[0]], sums);
}

static void start_sides(wb_tile *t, int64_t piece) {
    const int64_t count = t->job->k->side_values;
    t->sides = t->job->sides + piece * count;
    if (count) memset(t->sides, 0, sizeof *t->sides * (size_t)count);
}

/* ---- steps ---- */

static int64_t register_width(const wb_instruction *i) {
    return wb_register_bytes(wb_result_register(i));
}

static void to_register(wb_tile *t, uint16_t value) { t->value[value] = wb_own_register(t, value); }

/* A row value into a register of the tile; where all that read it take one number, or one for each
 * row, it stays. */
static void spread_value(wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const char *from = t->value[step->in[0]];
    const bool is_wide = k->is_wide[step->number];
    const int64_t width = wb_register_bytes((wb_register)step->instruction->type);
    t->is_in_rows[step->number] = k->in_rows[step->number];
    t->row_bytes[step->number] = is_wide ? t->inner * width : width;
    if (!is_wide) {
        t->value[step->number] = t->value[step->in[0]];
        return;
    }
    to_register(t, step->number);
    char *to = t->value[step->number];
    if (k->shape == WB_COLUMNS) {
        for (int64_t o = 0; o < t->outer; o++)
            memcpy(to + o * t->inner * width, from, (size_t)(t->inner * width));
        return;
    }
    if (k->shape == WB_ROWS)
        k->loops->repeat_rows[width == 8](t->inner, t->outer, from, to);
    else
        k->loops->repeat[width == 8](t->inner * t->outer, from, to);
}

/* Bytes from one row of a value to the next; of a number, which all rows share, 0. */
static int64_t row_bytes_of(const wb_tile *t, uint16_t value) {
    const wb_instruction *i = &t->job->k->program.instructions[value];
    const bool is_number = wb_is_constant(i) || !t->job->k->is_wide[value];
    if (t->is_in_rows[value]) return t->row_bytes[value];
    return is_number ? 0 : t->inner * register_width(i);
}

static bool is_any_in_rows(const wb_tile *t, const wb_step *step) {
    bool any = t->is_in_rows[step->number];
    for (int in = 0; in < 3; in++)
        any = any || (step->in[in] != WB_NO_VALUE && t->is_in_rows[step->in[in]]);
    return any;
}

static void step_in_rows(const wb_tile *t, const wb_step *step) {
    char *to = t->value[step->number];
    const char *in[3];
    int64_t bytes[3];
    for (int i = 0; i < 3; i++) {
        const uint16_t value = step->in[step->in[i] == WB_NO_VALUE ? 0 : i];
        in[i] = t->value[value], bytes[i] = row_bytes_of(t, value);
    }
    const int64_t to_bytes = row_bytes_of(t, step->number);
    for (int64_t o = 0; o < t->outer; o++, to += to_bytes) {
        step->loop(t->inner, to, in[0], in[1], in[2]);
        for (int i = 0; i < 3; i++) in[i] += bytes[i];
    }
}

static void element_step(const wb_tile *t, const wb_step *step, int64_t n) {
    const void *x = t->value[step->in[0]],
               *y = step->in[1] == WB_NO_VALUE ? x : t->value[step->in[1]];
    const void *z = step->in[2] == WB_NO_VALUE ? x : t->value[step->in[2]];
    step->loop(n, t->value[step->number], x, y, z);
}

/* The value is where the access says, a row at a time. */
static void to_rows(wb_tile *t, uint16_t value, const wb_access *a) {
    t->value[value] = wb_address(t, a);
    t->row_bytes[value] = a->strides[1] * (int64_t)wb_storage_size(a->dtype);
    t->is_in_rows[value] = true;
}

/* Loops run over whole lanes: what no element fills is 0, so that no loop reads what was never
 * written. */
static void clear_rest(const wb_tile *t, const wb_step *step, int64_t used, int64_t all) {
    const int64_t size = register_width(step->instruction);
    if (used < all)
        memset((char *)t->value[step->number] + used * size, 0, (size_t)((all - used) * size));
}

/* From memory into a register, or where it lies. */
static void load_step(wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_access *a = &k->program.accesses[step->instruction->index];
    t->is_in_rows[step->number] = false;
    if (t->is_even && k->is_direct_load[step->number] && wb_lies_flat(t, a)) {
        t->value[step->number] = wb_address(t, a);
    } else if (t->has_even_rows && k->in_rows[step->number]) {
        to_rows(t, step->number, a);
    } else if (!k->is_wide[step->number]) {
        to_register(t, step->number);
        wb_load_row(t, a, 1, 1, wb_address(t, a), t->value[step->number]);
    } else {
        to_register(t, step->number);
        wb_load_tile(t, a, t->value[step->number]);
        clear_rest(t, step, t->inner * t->outer, t->n);
    }
}

/* To memory, unless the value was computed there. */
static void store_step(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_instruction *i = step->instruction;
    const wb_access *a = &k->program.accesses[i->index];
    const bool is_direct = k->direct_store[step->in[0]] == (int16_t)i->index;
    const bool is_flat = t->is_even && wb_lies_flat(t, a);
    if (!is_direct || (!is_flat && !t->is_in_rows[step->in[0]]))
        wb_store_tile(t, a, t->value[step->in[0]]);
}

/* An elementwise operation, into a register or straight to memory. */
static void compute_step(wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const int16_t direct = k->direct_store[step->number];
    const wb_access *a = direct >= 0 ? &k->program.accesses[direct] : NULL;
    const bool straight = a && t->is_even && wb_lies_flat(t, a);
    t->is_in_rows[step->number] = false;
    if (a && !straight && t->has_even_rows && k->in_rows[step->number])
        to_rows(t, step->number, a);
    else
        t->value[step->number] = straight ? wb_address(t, a) : wb_own_register(t, step->number);
    if (step->may_be_in_rows && is_any_in_rows(t, step))
        step_in_rows(t, step);
    else
        element_step(t, step, t->n);
}

static void full_step(wb_tile *t, const wb_step *step) {
    const wb_instruction *i = step->instruction;
    const wb_access *accesses = t->job->k->program.accesses;
    switch (i->code) {
    case WB_CODE_load:
        load_step(t, step);
        return;
    case WB_CODE_store:
        store_step(t, step);
        return;
    case WB_CODE_iota:
    case WB_CODE_uniform:
    case WB_CODE_normal:
        to_register(t, step->number);
        wb_source_tile(t, i, t->inner, t->outer, accesses[i->index].strides[0],
                       accesses[i->index].strides[1], t->value[step->number]);
        clear_rest(t, step, t->inner * t->outer, t->n);
        return;
    case WB_CODE_sum:
    case WB_CODE_max_reduce:
        reduce(t, step);
        return;
    case WB_CODE_side_sum:
        add_up(t, step);
        return;
    case WB_CODE_spread:
        spread_value(t, step);
        return;
    default:
        compute_step(t, step);
        return;
    }
}

static void row_step(wb_tile *t, const wb_step *step) {
    const wb_access *accesses = t->job->k->program.accesses;
    const wb_instruction *i = step->instruction;
    const int64_t n = t->row_values;
    if (i->code != WB_CODE_store) to_register(t, step->number);
    switch (i->code) {
    case WB_CODE_load:
        wb_load_row(t, &accesses[i->index], n, wb_row_stride(t, &accesses[i->index]),
                    wb_address(t, &accesses[i->index]), t->value[step->number]);
        clear_rest(t, step, n, t->row_n);
        return;
    case WB_CODE_store:
        wb_store_row(t, &accesses[i->index], n, n == 1 ? 1 : wb_row_stride(t, &accesses[i->index]),
                     t->value[step->in[0]], wb_address(t, &accesses[i->index]));
        return;
    case WB_CODE_iota:
    case WB_CODE_uniform:
    case WB_CODE_normal:
        wb_source_tile(t, i, n, 1, wb_row_stride(t, &accesses[i->index]), 0,
                       t->value[step->number]);
        clear_rest(t, step, n, t->row_n);
        return;
    case WB_CODE_sum:
    case WB_CODE_max_reduce:
        finish_reduction(t, step);
        return;
    default:
        element_step(t, step, t->row_n);
        return;
    }
}

/* ---- tiles ---- */

enum { LINE = 64 /* of the caches */, SECOND_CACHE = 2 /* a prefetch's locality */ };

static void look_ahead(wb_tile *t, const wb_step_list *list) {
    wb_ahead *next = &t->next;
    next->count = 0;
    for (int i = 0; i < list->nstreams; i++) {
        const wb_access *a = &t->job->k->program.accesses[list->stream[i]];
        if (!wb_lies_flat(t, a)) continue;
        const int64_t bytes = t->inner * t->outer * (int64_t)wb_storage_size(a->dtype);
        next->at[next->count] = wb_address(t, a) + bytes;
        next->again[next->count] = t->job->k->shape == WB_ROWS ? bytes : 0;
        next->part[next->count++] = (bytes / list->asks + LINE - 1) / LINE * LINE;
    }
}

static void ask(wb_ahead *next) {
    for (int i = 0; i < next->count; i++) {
        const char *end = next->at[i] + next->part[i];
        const int64_t again = next->again[i];
        for (; next->at[i] < end; next->at[i] += LINE) {
            if (again) __builtin_prefetch(next->at[i] + again, 0, SECOND_CACHE);
            __builtin_prefetch(next->at[i]);
        }
    }
}

typedef struct fading {
    bool is_on;
    unsigned saved;
} fading;

static void fade(fading *f, bool is_on) {
    if (is_on == f->is_on) return;
    f->is_on = is_on;
    if (is_on)
        f->saved = wb_fade_begin();
    else
        wb_fade_end(f->saved);
}

/* As the step asks for, if it computes something. */
static void fade_for(fading *f, const wb_step *step) {
    const wb_instruction *i = step->instruction;
    if (step->loop || wb_is_reduction(i) || i->code == WB_CODE_side_sum) fade(f, i->is_step);
}

/* Constants and late numbers into their registers: whole ones where some step reads them so. */
static void fill_constants(wb_tile *t) {
    const wb_cpu_program *k = t->job->k;
    const int64_t tile_elements = k->inner * k->outer;
    const int64_t elements =
        wb_whole_lanes(tile_elements > k->row_values ? tile_elements : k->row_values);
    for (int64_t s = 0; s < k->constants.count; s++) {
        const wb_instruction *i = k->constants.steps[s].instruction;
        const uint16_t value = k->constants.steps[s].number;
        to_register(t, value);
        wb_fill_constant(k->loops, i, wb_number_of(t->job, i), k->is_wide[value] ? elements : 1,
                         t->value[value]);
    }
}

static void run_list(wb_tile *t, const wb_step_list *list, int64_t first) {
    fading faded = {.is_on = false};
    for (int64_t s = first; s < list->count; s++) {
        fade_for(&faded, &list->steps[s]);
        full_step(t, &list->steps[s]);
        ask(&t->next);
    }
    fade(&faded, false);
}

/* The full steps of a phase, from number `first` on. */
static void run_steps(wb_tile *t, int phase, int64_t first) {
    const wb_cpu_program *k = t->job->k;
    if (k->adam.loop) {
        t->next.count = 0;
        run_list(t, &k->gradient, 0);
        if (wb_cpu_adam_tile(t)) return;
        fill_constants(t);
    }
    if (phase == 0 || k->steps_per_unit > 1) look_ahead(t, &k->full[phase]);
    run_list(t, &k->full[phase], first);
}

static void begin(wb_tile *t, const wb_job *j, int worker) {
    const wb_cpu_program *k = j->k;
    t->job = j;
    t->registers = j->scratch + (int64_t)worker * k->register_bytes;
    t->accumulators = (wb_accumulator *)(void *)(t->registers + k->accumulators_at);
    memset(t->position, 0, sizeof t->position);
    memset(t->is_in_rows, 0, sizeof *t->is_in_rows * (size_t)k->program.ninstructions);
    if (!k->adam.loop || k->gradient.count > 0) fill_constants(t);
}

/* Not inline: the compiler would read the two numbers as one vector right after they were stored
 * one by one, and the processor can then not pass them on before all earlier stores have reached
 * the cache: a fifth of a softmax. */
__attribute__((noinline)) static void set_extent(wb_tile *t, int64_t inner, int64_t outer) {
    const wb_cpu_program *k = t->job->k;
    t->inner = inner, t->outer = outer;
    t->n = wb_whole_lanes(inner * outer);
    t->is_even = t->n == inner * outer;
    t->has_even_rows = inner % WB_LANES == 0 && inner >= WB_LEAST_ROW;
    t->row_values = k->shape == WB_ROWS ? outer : k->shape == WB_COLUMNS ? inner : 1;
    t->row_n = wb_whole_lanes(t->row_values);
}

/* Puts the tile at number `index` of the loops; extents of dimensions 0 and 1 into extent[]. */
static void locate(wb_tile *t, const wb_loop *loops, int nloops, int64_t index, int64_t *extent) {
    for (int l = 0; l < nloops; l++) {
        const int64_t at = index % loops[l].count;
        index /= loops[l].count;
        t->position[loops[l].dim] = at * loops[l].step;
        if (loops[l].dim > 1) continue;
        const int64_t left = loops[l].size - at * loops[l].step;
        extent[loops[l].dim] = left < loops[l].step ? left : loops[l].step;
    }
}

static void run_rows(wb_tile *t, int stage) {
    const wb_step_list *list = &t->job->k->rows[stage];
    fading faded = {.is_on = false};
    for (int64_t s = 0; s < list->count; s++) {
        fade_for(&faded, &list->steps[s]);
        row_step(t, &list->steps[s]);
    }
    fade(&faded, false);
}

/* Reduced tiles number first .. last - 1 of one phase. The fixed steps are done for the first one,
 * and again for one that is larger: a part of a reduction may begin with the short tile at the end
 * of a dimension. */
static void run_phase(wb_tile *t, int phase, int64_t first, int64_t last, int64_t *extent) {
    const wb_cpu_program *k = t->job->k;
    int64_t fixed_of = 0; /* elements */
    for (int64_t i = first; i < last; i++) {
        locate(t, k->reduced, k->nreduced, i, extent);
        set_extent(t, extent[0], k->second_in_tile ? extent[1] : 1);
        const bool is_larger = t->n > fixed_of;
        if (is_larger) fixed_of = t->n;
        run_steps(t, phase, is_larger ? 0 : k->full[phase].fixed);
    }
}

/* Row values lie at the start of the reduced dimensions. */
static void to_row(wb_tile *t) {
    const wb_cpu_program *k = t->job->k;
    for (int l = 0; l < k->nreduced; l++) t->position[k->reduced[l].dim] = 0;
}

static void run_unit(wb_tile *t, int64_t unit) {
    const wb_cpu_program *k = t->job->k;
    int64_t extent[2] = {1, 1};
    locate(t, k->kept, k->nkept, unit, extent);
    to_row(t);
    set_extent(t, extent[0], extent[1]);
    start_reductions(k, t->accumulators);
    for (int phase = 0; phase < k->program.phases; phase++) {
        run_rows(t, phase);
        run_phase(t, phase, 0, k->steps_per_unit, extent);
        to_row(t);
    }
    run_rows(t, k->program.phases);
}

static void run_piece(void *context, int64_t piece, int worker) {
    const wb_job *j = context;
    const wb_cpu_program *k = j->k;
    wb_tile t;
    begin(&t, j, worker);
    start_sides(&t, piece);
    const int64_t first = piece * k->units_per_piece;
    const int64_t last =
        first + k->units_per_piece < k->units ? first + k->units_per_piece : k->units;
    for (int64_t unit = first; unit < last; unit++) run_unit(&t, unit);
}

/* ---- split reductions: pieces of one unit, put together in order ---- */

static int64_t pieces_per_unit(const wb_cpu_program *k) {
    return (k->steps_per_unit + k->steps_per_piece - 1) / k->steps_per_piece;
}

static void run_split_piece(void *context, int64_t piece, int worker) {
    const wb_job *j = context;
    const wb_cpu_program *k = j->k;
    const int64_t per_unit = pieces_per_unit(k), part = piece % per_unit;
    wb_tile t;
    begin(&t, j, worker);
    start_sides(&t, piece);
    t.accumulators = j->partial + piece * k->row_values * k->reductions;
    int64_t extent[2] = {1, 1};
    locate(&t, k->kept, k->nkept, piece / per_unit, extent);
    set_extent(&t, extent[0], extent[1]);
    start_reductions(k, t.accumulators);
    run_rows(&t, 0);
    const int64_t first = part * k->steps_per_piece;
    const int64_t last = first + k->steps_per_piece < k->steps_per_unit ? first + k->steps_per_piece
                                                                        : k->steps_per_unit;
    run_phase(&t, 0, first, last, extent);
}

/* Adds the reductions of one part to those of its unit. */
static void merge_part(const wb_cpu_program *k, const wb_accumulator *part, wb_accumulator *to) {
    for (int i = 0; i < k->program.ninstructions; i++) {
        const wb_instruction *r = &k->program.instructions[i];
        if (!wb_is_reduction(r)) continue;
        const int64_t first = k->reduction[i] * k->row_values;
        for (int64_t v = first; v < first + k->row_values; v++) to[v] = merge(r, to[v], part[v]);
    }
}

static void put_reductions_together(const wb_job *j) {
    const wb_cpu_program *k = j->k;
    const int64_t per_unit = pieces_per_unit(k), size = k->row_values * k->reductions;
    const wb_accumulator *part = j->partial;
    wb_tile t;
    begin(&t, j, 0);
    for (int64_t unit = 0; unit < k->units; unit++) {
        int64_t extent[2] = {1, 1};
        locate(&t, k->kept, k->nkept, unit, extent);
        to_row(&t);
        set_extent(&t, extent[0], extent[1]);
        start_reductions(k, t.accumulators);
        for (int64_t i = 0; i < per_unit; i++, part += size) merge_part(k, part, t.accumulators);
        run_rows(&t, 0);
        run_rows(&t, 1);
    }
}

static void put_sides_together(const wb_job *j) {
    const wb_cpu_program *k = j->k;
    wb_tile t;
    fading faded = {.is_on = false};
    begin(&t, j, 0);
    start_sides(&t, k->pieces);
    for (int n = 0; n < k->program.ninstructions; n++) {
        const wb_instruction *i = &k->program.instructions[n];
        if (i->code != WB_CODE_side_sum) continue;
        const wb_access *to = &k->program.accesses[i->index];
        const int64_t count = wb_side_count(k, i);
        wb_accumulator *sums = t.sides + k->offset[n];
        for (int64_t piece = 0; piece < k->pieces; piece++) {
            const wb_accumulator *part = j->sides + piece * k->side_values + k->offset[n];
            for (int64_t v = 0; v < count; v++) sums[v] = merge(i, sums[v], part[v]);
        }
        char *numbers = (char *)(t.sides + k->side_values);
        fade(&faded, i->is_step);
        finish(i->type, count, sums, numbers);
        wb_store_row(&t, to, count, to->strides[0], numbers, wb_address(&t, to));
    }
    fade(&faded, false);
}

void wb_cpu_program_run(const wb_cpu_program *k, char *const *arguments, const uint64_t *late,
                        char *scratch) {
    wb_job j = {.k = k, .arguments = arguments, .late = late, .scratch = scratch};
    const bool is_split = wb_is_split(k);
    j.partial = (wb_accumulator *)(void *)(scratch + k->register_bytes * wb_cpu_threads());
    j.sides = j.partial + (is_split ? k->pieces * k->row_values * k->reductions : 0);
    wb_cpu_parallel(k->pieces, is_split ? run_split_piece : run_piece, &j);
    if (is_split) put_reductions_together(&j);
    if (k->side_values) put_sides_together(&j);
}

/* ---- parts of an elementwise program ---- */

/* Places the tile at number `other` of what the box has beyond two dimensions. */
static void locate_in_box(wb_tile *t, const wb_box *box, int64_t other) {
    for (int d = 2; d < t->job->k->program.ndim; d++) {
        t->position[d] = box->from[d] + other % box->count[d];
        other /= box->count[d];
    }
}

/* The columns first .. first + width - 1 of two dimensions of the box, as many rows at once as a
 * tile has elements. */
static void run_strip(wb_tile *t, const wb_box *box, int64_t first, int64_t width) {
    const wb_cpu_program *k = t->job->k;
    const int ndim = k->program.ndim;
    const int64_t rows = ndim > 1 ? box->count[1] : 1, fit = k->inner * k->outer / width;
    const int64_t step = fit > 0 ? fit : 1;
    if (ndim > 0) t->position[0] = box->from[0] + first;
    for (int64_t row = 0; row < rows; row += step) {
        if (ndim > 1) t->position[1] = box->from[1] + row;
        set_extent(t, width, rows - row < step ? rows - row : step);
        run_steps(t, 0, 0);
    }
}

void wb_cpu_program_run_box(const wb_cpu_program *k, char *const *arguments, const uint64_t *late,
                            char *scratch, int worker, const wb_box *box) {
    const wb_job j = {.k = k, .arguments = arguments, .late = late, .scratch = scratch};
    const int64_t columns = k->program.ndim > 0 ? box->count[0] : 1;
    int64_t others = 1;
    for (int d = 2; d < k->program.ndim; d++) others *= box->count[d];
    wb_tile t;
    begin(&t, &j, worker);
    for (int64_t other = 0; other < others; other++) {
        locate_in_box(&t, box, other);
        for (int64_t i = 0; i < columns; i += k->inner)
            run_strip(&t, box, i, columns - i < k->inner ? columns - i : k->inner);
    }
}
