/* How a kernel walks a program's domain: rows, and columns in each.
 *
 * The columns are the reduced dimensions; of a map, all dimensions. Rows and their columns are cut
 * into pieces (units and chunks) by shape alone, so that results do not depend on the machine. */
#ifndef WB_PROGRAM_LAYOUT_H
#define WB_PROGRAM_LAYOUT_H

#include <weber/plugin.h>

typedef enum wb_walk {
    /* serial: an item takes row after row and runs along the first dimension of the columns */
    WB_WALK_RUNS,
    WB_WALK_TILES, /* serial: an item takes neighbouring rows together and runs along them */
    /* serial, a map whose first dimension is short: an item takes elements as they lie, and
     * keeps their positions */
    WB_WALK_BLOCKS,
    WB_WALK_ITEMS,  /* each item of a group takes a row */
    WB_WALK_WARPS,  /* each warp of a group takes a row, its items share out the columns */
    WB_WALK_GROUPS, /* a group takes a row, its items share out the columns */
} wb_walk;

enum {
    WB_TILE_ROWS = 64,
    WB_LONG_RUN = 32, /* elements that are worth the widest vectors */
    WB_MOST_LAUNCHES = 4,
};

typedef struct wb_layout {
    wb_program program; /* the same one, its domain simplified; with accesses of its own */
    bool *is_linear;    /* by access: the place is the number of the column; only maps have such */
    wb_walk walk;
    bool is_map;             /* no row values */
    bool is_wide;            /* places need 64 bits */
    bool has_long_runs;      /* serial: the innermost loops are */
    bool decodes;            /* positions in more than one dimension of the columns are wanted */
    uint32_t column_dims;    /* bit d: dimension d is one of the columns */
    int32_t first_column;    /* the first of them; -1: none */
    int64_t rows, columns;   /* products of the sizes */
    int64_t row_units;       /* what takes a row or several: items, tiles or groups */
    int64_t chunks, chunk;   /* pieces of the columns, and columns in each */
    int64_t units, per_item; /* row_units * chunks; how many a serial item takes */
    /* chunks meet in scratch memory: a launch for each phase, and one for the rows */
    bool is_split;
    bool ends_with_rows; /* the last launch of a split program stores row values */
} wb_layout;

/* False when out of memory. */
bool wb_layout_make(wb_layout *layout, const wb_program *program, const wb_dialect *dialect);
void wb_layout_release(wb_layout *layout);

/* Groups of the launch; the last one of a split program that ends with rows has no chunks. */
int64_t wb_layout_groups(const wb_layout *layout, const wb_dialect *dialect, bool is_rows_only);
int wb_layout_launches(const wb_layout *layout);

/* Totals that a group shares for a reduction: one of each warp, or of each item where there are
 * none. */
int wb_shared_totals(const wb_dialect *dialect);

static inline bool wb_is_reduction(const wb_instruction *i) {
    return i->code == WB_CODE_sum || i->code == WB_CODE_max_reduce;
}

/* Groups take several rows, of which the last ones may not be there. */
static inline bool wb_is_guarded(const wb_layout *l) {
    return l->walk == WB_WALK_ITEMS || l->walk == WB_WALK_WARPS;
}

static inline bool wb_is_number(const wb_instruction *i) {
    return i->code == WB_CODE_constant || i->code == WB_CODE_late;
}

static inline bool wb_is_column(const wb_layout *layout, int d) {
    return layout->column_dims >> d & 1;
}

/* The access moves along some dimension of the rows, or of the columns. */
bool wb_access_varies(const wb_layout *layout, const wb_access *access, bool along_columns);

#endif
