/* Simplifies the domain of a program, chooses the walk for the dialect, and cuts rows and columns
 * into pieces and launches. */
#include "program/layout.h"

#include <string.h>

#include <weber/dtype.h>

#include "base/memory.h"
#include "program/domain.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool wb_access_varies(const wb_layout *l, const wb_access *a, bool along_columns) {
    for (int d = 0; d < l->program.ndim; d++)
        if (wb_is_column(l, d) == along_columns && a->strides[d] != 0) return true;
    return false;
}

/* ---- the domain ---- */

/* Sizes of 1 go; neighbours that every access walks as one are joined. */
static void simplify(wb_program *p) {
    for (int d = p->ndim - 1; d >= 0; d--)
        if (p->sizes[d] == 1) wb_drop_dim(p, d);
    for (int d = 0; d + 1 < p->ndim;)
        if (!wb_join_dim(p, d)) d++;
}

static int longest_row_dim(const wb_program *p) {
    int longest = -1;
    for (int d = 0; d < p->ndim; d++)
        if (!(p->reduced >> d & 1) && (longest < 0 || p->sizes[d] > p->sizes[longest])) longest = d;
    return longest;
}

static void bring_to_front(wb_program *p, int d) {
    const uint32_t low = (1u << d) - 1, high = ~(low | 1u << d);
    p->reduced = (p->reduced & high) | (p->reduced & low) << 1 | (p->reduced >> d & 1);
    for (int a = -1; a < p->naccesses; a++) {
        int64_t *list = a < 0 ? p->sizes : p->accesses[a].strides;
        const int64_t moved = list[d];
        memmove(list + 1, list, (size_t)d * sizeof *list);
        list[0] = moved;
    }
}

/* Short columns that lie together, such as ten classes of each image, do not make a loop for
 * vectors; many rows side by side do. */
static void put_rows_first(wb_program *p) {
    const int d = longest_row_dim(p);
    if (p->reduced & 1 && p->sizes[0] < WB_LONG_RUN && d > 0 && p->sizes[d] >= WB_LONG_RUN)
        bring_to_front(p, d);
}

static bool has_row_values(const wb_program *p) {
    for (int i = 0; i < p->ninstructions; i++)
        if (p->instructions[i].row) return true;
    return false;
}

static bool has_row_stores(const wb_program *p) {
    for (int i = 0; i < p->ninstructions; i++)
        if (p->instructions[i].row && p->instructions[i].code == WB_CODE_store) return true;
    return false;
}

static void split_dims(wb_layout *l) {
    const wb_program *p = &l->program;
    l->column_dims = l->is_map ? (1u << p->ndim) - 1 : p->reduced;
    l->rows = l->columns = 1;
    l->first_column = -1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (!wb_is_column(l, d)) {
            l->rows *= p->sizes[d];
            continue;
        }
        l->columns *= p->sizes[d];
        l->first_column = d;
    }
}

/* ---- places ---- */

static bool is_linear(const wb_program *p, const wb_access *a) {
    int64_t dense = 1;
    for (int d = 0; d < p->ndim; dense *= p->sizes[d++])
        if (a->strides[d] != dense) return false;
    return true;
}

static int64_t reach(const wb_program *p, const wb_access *a) {
    int64_t reach = a->argument == WB_NO_VALUE ? most(a->offset, -a->offset) : 0;
    for (int d = 0; d < p->ndim; d++)
        reach += (p->sizes[d] > 0 ? p->sizes[d] - 1 : 0) * most(a->strides[d], -a->strides[d]);
    return reach;
}

static void classify(wb_layout *l) {
    enum { SMALL = 1 << 30 };
    const wb_program *p = &l->program;
    const bool several = (l->column_dims & (l->column_dims - 1)) != 0;
    l->is_wide = l->rows >= SMALL || l->columns >= SMALL || l->rows * l->columns >= SMALL;
    for (int a = 0; a < p->naccesses; a++) {
        const wb_access *access = &p->accesses[a];
        l->is_linear[a] = l->is_map && wb_access_varies(l, access, true) && is_linear(p, access);
        l->is_wide = l->is_wide || reach(p, access) >= SMALL;
        if (several && !l->is_linear[a] && wb_access_varies(l, access, true)) l->decodes = true;
    }
}

/* ---- dense accesses ---- */

bool wb_access_is_dense(const wb_layout *l, int a) {
    const wb_access *access = &l->program.accesses[a];
    if (access->argument == WB_NO_VALUE || l->first_column < 0) return false;
    return l->is_map ? l->is_linear[a] : access->strides[l->first_column] == 1;
}

static int64_t size_of(const wb_access *a) { return (int64_t)wb_dtype_size((wb_dtype)a->dtype); }

/* Every row of the access begins at a multiple of this many elements, if its memory does; and so
 * does every run along the first dimension of the columns, where they have several. */
static bool begins_with_piece(const wb_layout *l, const wb_access *a, int32_t piece) {
    int64_t rest = a->offset % piece;
    if (!l->is_map && l->decodes) rest += l->program.sizes[l->first_column] % piece;
    for (int d = 0; d < l->program.ndim && !rest; d++)
        if (!l->is_map && d != l->first_column) rest = a->strides[d] % piece;
    return rest == 0;
}

/* The largest pieces, of up to 16 bytes, that all dense accesses have; 1: there are none. */
static int32_t dense_piece(const wb_layout *l) {
    enum { BYTES = 16, MOST = 8 };
    int32_t piece = MOST;
    bool is_any = false;
    for (int a = 0; a < l->program.naccesses; a++) {
        const wb_access *access = &l->program.accesses[a];
        if (!wb_access_is_dense(l, a)) continue;
        is_any = true;
        while (piece > 1 &&
               (piece * size_of(access) > BYTES || !begins_with_piece(l, access, piece)))
            piece /= 2;
    }
    return is_any ? piece : 1;
}

/* ---- pieces ---- */

int wb_shared_totals(const wb_layout *l, const wb_dialect *dialect) {
    return dialect->warp ? l->group / dialect->warp : l->group;
}

/* Checks that the shared memory of a group has room for the totals of its reductions. */
static bool fits_group(const wb_layout *l, const wb_dialect *dialect) {
    const wb_program *p = &l->program;
    enum { SHARED_BYTES = 32768, TOTAL_BYTES = 8 };
    int64_t bytes = 0;
    for (int i = 0; i < p->ninstructions; i++)
        if (wb_is_reduction(&p->instructions[i]))
            bytes += TOTAL_BYTES * (int64_t)wb_shared_totals(l, dialect);
    return bytes <= SHARED_BYTES;
}

/* A warp needs no barrier, and has most rows' columns in a few steps; where rows are few, groups
 * bring more items to each. */
static bool suits_warps(const wb_layout *l, const wb_dialect *dialect) {
    enum { MOST_STEPS = 32, MANY_ROWS = 1024 };
    if (!dialect->warp || l->is_map) return false;
    return l->columns <= dialect->group ||
           (l->columns <= MOST_STEPS * dialect->warp && l->rows >= MANY_ROWS);
}

static void choose_walk(wb_layout *l, const wb_dialect *dialect) {
    enum { FEW_SERIAL = 8, FEW_ROWS = 32 };
    const int few_columns = dialect->warp ? dialect->warp / 2 : 32;
    const bool has_rows = l->program.ndim > 0 && !wb_is_column(l, 0);
    const int64_t together = has_rows ? l->program.sizes[0] : 1; /* rows that are neighbours */
    if (dialect->is_serial && l->is_map && l->decodes && l->program.sizes[0] < WB_LONG_RUN)
        l->walk = WB_WALK_BLOCKS;
    else if (dialect->is_serial)
        l->walk = together >= FEW_SERIAL ? WB_WALK_TILES : WB_WALK_RUNS;
    else if (!l->is_map &&
             (together >= FEW_ROWS || l->columns <= few_columns || !fits_group(l, dialect)))
        l->walk = WB_WALK_ITEMS;
    else if (suits_warps(l, dialect))
        l->walk = WB_WALK_WARPS;
    else
        l->walk = WB_WALK_GROUPS;
    l->row_units = l->rows;
    if (l->walk == WB_WALK_TILES)
        l->row_units = l->rows / together * pieces(together, WB_TILE_ROWS);
    else if (l->walk == WB_WALK_ITEMS)
        l->row_units = pieces(l->rows, dialect->group);
    else if (l->walk == WB_WALK_WARPS)
        l->row_units = pieces(l->rows, dialect->group / dialect->warp);
}

static void measure_runs(wb_layout *l) {
    const int64_t run = l->walk == WB_WALK_BLOCKS  ? WB_TILE_ROWS
                        : l->walk == WB_WALK_TILES ? l->program.sizes[0]
                        : !l->decodes              ? l->columns
                                                   : l->program.sizes[l->first_column];
    l->has_long_runs = run >= WB_LONG_RUN;
}

static void cut_map(wb_layout *l, const wb_dialect *dialect) {
    enum { SERIAL_CHUNK = 8192, SERIAL_CHUNKS = 256, EACH = 8, FEW_GROUPS = 256, GROUPS = 1 << 16 };
    const int64_t group = dialect->group;
    const int64_t each = least(l->columns / (group * FEW_GROUPS), /* elements of an item */
                               most(EACH, 2 * dense_piece(l)));
    if (dialect->is_serial)
        l->chunk = most(SERIAL_CHUNK, pieces(l->columns, SERIAL_CHUNKS));
    else
        l->chunk = group * most(most(each, 1), pieces(l->columns, group * GROUPS));
    l->chunks = pieces(l->columns, l->chunk);
}

/* Few rows of many columns: the columns are shared out, too. */
static void cut_columns(wb_layout *l, const wb_dialect *dialect) {
    enum { SERIAL_UNITS = 64, UNITS = 1024 };
    const int64_t shortest = l->walk == WB_WALK_RUNS     ? 16384
                             : l->walk == WB_WALK_TILES  ? 512
                             : l->walk == WB_WALK_GROUPS ? dialect->group * 16
                             : l->walk == WB_WALK_WARPS  ? l->columns
                                                         : 64;
    const int64_t units = dialect->is_serial ? SERIAL_UNITS : UNITS;
    const int64_t wanted = l->row_units > 0 ? units / l->row_units : 1;
    l->ends_with_rows = has_row_stores(&l->program);
    const bool may_split =
        !l->is_map_of_rows && l->program.phases + l->ends_with_rows <= WB_MOST_LAUNCHES;
    const int64_t chunks = may_split ? least(wanted, l->columns / shortest) : 1;
    l->chunk = most(pieces(l->columns, most(chunks, 1)), 1);
    l->chunks = most(pieces(l->columns, l->chunk), 1);
    l->is_split = l->chunks > 1;
}

static void cut(wb_layout *l, const wb_dialect *dialect) {
    enum { ITEM = 8192, ITEMS = 1024 };
    if (l->is_map)
        cut_map(l, dialect);
    else
        cut_columns(l, dialect);
    l->units = l->row_units * l->chunks;
    l->per_item = 1;
    if (!dialect->is_serial || l->is_map) return;
    const int64_t unit = l->walk == WB_WALK_TILES ? l->chunk * WB_TILE_ROWS : l->chunk;
    l->per_item = most(most(ITEM / unit, 1), pieces(l->units, ITEMS));
}

int64_t wb_layout_groups(const wb_layout *l, const wb_dialect *dialect, bool is_rows_only) {
    const int64_t units = is_rows_only ? l->row_units : l->units;
    return dialect->is_serial ? pieces(units, l->per_item * dialect->group) : units;
}

int wb_layout_launches(const wb_layout *l) {
    if (l->units == 0) return 0;
    return l->is_split ? l->program.phases + l->ends_with_rows : 1;
}

/* A map over many long rows, not all of it dense, is walked row by row: where an element is in the
 * other dimensions is found once for the row, and not by divisions for each element. */
static bool goes_by_rows(const wb_program *p, const wb_dialect *dialect) {
    enum { LONG = 256, MANY = 256, MOST = 1 << 22 /* groups of a launch */ };
    int64_t rows = 1;
    bool is_dense = true;
    for (int d = 1; d < p->ndim; d++) rows *= p->sizes[d];
    for (int a = 0; a < p->naccesses; a++) is_dense = is_dense && is_linear(p, &p->accesses[a]);
    return !dialect->is_serial && !p->is_update && !is_dense && p->ndim > 1 &&
           p->sizes[0] >= LONG && rows >= MANY && rows <= MOST;
}

/* ---- pieces of rows ---- */

int32_t wb_layout_sharers(const wb_layout *l, const wb_dialect *dialect) {
    return l->walk == WB_WALK_GROUPS ? l->group : l->walk == WB_WALK_WARPS ? dialect->warp : 1;
}

static int64_t bytes_of_piece(const wb_layout *l, int32_t piece) {
    enum { WORD = 4 };
    int64_t bytes = 0;
    for (int i = 0; i < l->program.ninstructions; i++) {
        const wb_instruction *load = &l->program.instructions[i];
        if (load->code != WB_CODE_load || load->row) continue;
        const wb_access *access = &l->program.accesses[load->index];
        if (wb_access_varies(l, access, true)) bytes += most(piece * size_of(access), WORD);
    }
    return bytes;
}

/* Chooses pieces so that an item's registers have room for its share of the row. Short rows have
 * smaller pieces, so that every item has some. */
static bool may_hold(wb_layout *l, const wb_dialect *dialect, int64_t most_columns,
                     int64_t most_bytes) {
    const int32_t sharers = wb_layout_sharers(l, dialect);
    int32_t piece = dense_piece(l);
    while (piece > 1 && (l->columns % piece || l->columns <= sharers * piece / 2)) piece /= 2;
    const int64_t held = pieces(l->columns, (int64_t)sharers * piece);
    if (held * piece > most_columns || held * bytes_of_piece(l, piece) > most_bytes) return false;
    l->piece = piece, l->held = (int32_t)held;
    return true;
}

/* A row that is too long for a warp may suit a group, and one that is too long for a group a larger
 * one, which takes the registers of a whole multiprocessor. */
static bool hold(wb_layout *l, const wb_dialect *dialect) {
    enum { COLUMNS = 32, BYTES = 320, LONG_COLUMNS = 104, LONG_BYTES = 416 };
    const wb_walk walk = l->walk;
    const int64_t row_units = l->row_units, units = l->units;
    if (l->is_map || l->is_split || l->decodes || l->columns == 0) return false;
    if (may_hold(l, dialect, COLUMNS, BYTES)) return true;
    l->walk = WB_WALK_GROUPS;
    l->row_units = l->units = l->rows;
    if (walk == WB_WALK_WARPS && may_hold(l, dialect, COLUMNS, BYTES)) return true;
    l->group = dialect->most_group ? dialect->most_group : dialect->group;
    if (walk == WB_WALK_GROUPS && may_hold(l, dialect, LONG_COLUMNS, LONG_BYTES)) return true;
    l->walk = walk, l->group = dialect->group;
    l->row_units = row_units, l->units = units;
    return false;
}

/* Every chunk has a piece for each item, and begins with one. */
static void choose_pieces(wb_layout *l, const wb_dialect *dialect) {
    l->piece = 1;
    if ((l->walk != WB_WALK_WARPS && l->walk != WB_WALK_GROUPS) || hold(l, dialect)) return;
    l->piece = dense_piece(l);
    const int64_t sharers = wb_layout_sharers(l, dialect);
    while (l->piece > 1 && l->chunk < sharers * l->piece) l->piece /= 2;
    l->piece_bytes = bytes_of_piece(l, l->piece);
    if (l->is_split) l->chunk = l->piece * pieces(l->chunk, l->piece);
}

bool wb_layout_make(wb_layout *l, const wb_program *program, const wb_dialect *dialect) {
    const size_t count = (size_t)program->naccesses;
    *l = (wb_layout){
        .program = *program, .is_map = !has_row_values(program), .group = dialect->group};
    l->program.accesses = wb_alloc((count + 1) * sizeof *l->program.accesses);
    l->is_linear = wb_alloc((count + 1) * sizeof *l->is_linear);
    if (!l->program.accesses || !l->is_linear) {
        wb_layout_release(l);
        return false;
    }
    if (count) memcpy(l->program.accesses, program->accesses, count * sizeof *program->accesses);
    simplify(&l->program);
    if (dialect->is_serial) put_rows_first(&l->program);
    if (l->is_map && goes_by_rows(&l->program, dialect)) {
        l->is_map = false, l->is_map_of_rows = true;
        l->program.reduced = 1;
    }
    split_dims(l);
    classify(l);
    choose_walk(l, dialect);
    measure_runs(l);
    cut(l, dialect);
    choose_pieces(l, dialect);
    return true;
}

void wb_layout_release(wb_layout *l) {
    wb_release(l->program.accesses);
    wb_release(l->is_linear);
    l->program.accesses = NULL, l->is_linear = NULL;
}
