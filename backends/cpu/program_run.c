/* Running a program: tiles of the kept dimensions are units, each reduced tile by tile through the
 * phases. */
#include <string.h>

#include "fade.h"
#include "pool.h"
#include "tile.h"

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

/* Prefetches what the step lists, if the step computes anything. */
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
        wb_to_register(t, value);
        wb_fill_constant(k->loops, i, wb_number_of(t->job, i), k->is_wide[value] ? elements : 1,
                         t->value[value]);
    }
}

static void run_list(wb_tile *t, const wb_step_list *list, int64_t first) {
    fading faded = {.is_on = false};
    for (int64_t s = first; s < list->count; s++) {
        fade_for(&faded, &list->steps[s]);
        wb_step_full(t, &list->steps[s]);
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
        wb_step_row(t, &list->steps[s]);
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
    wb_sums_start(k, t->accumulators);
    for (int phase = 0; phase < k->program.phases; phase++) {
        run_rows(t, phase);
        run_phase(t, phase, 0, k->steps_per_unit, extent);
        to_row(t);
    }
    run_rows(t, k->program.phases);
}

static void start_sides(wb_tile *t, int64_t piece) {
    const int64_t count = t->job->k->side_values;
    t->sides = t->job->sides + piece * count;
    if (count) memset(t->sides, 0, sizeof *t->sides * (size_t)count);
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
    wb_sums_start(k, t.accumulators);
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
        for (int64_t v = first; v < first + k->row_values; v++)
            to[v] = wb_sums_merge(r, to[v], part[v]);
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
        wb_sums_start(k, t.accumulators);
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
            for (int64_t v = 0; v < count; v++) sums[v] = wb_sums_merge(i, sums[v], part[v]);
        }
        char *numbers = (char *)(t.sides + k->side_values);
        fade(&faded, i->is_step);
        wb_sums_finish(i->type, count, sums, numbers);
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
