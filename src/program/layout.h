/* How a kernel walks a program's domain: rows, and columns in each.
 *
 * The columns are the reduced dimensions; of a map, all dimensions. Rows are cut into units and
 * columns into chunks by shape alone, so that results do not depend on the machine. */
#ifndef WB_PROGRAM_LAYOUT_H
#define WB_PROGRAM_LAYOUT_H

#include <weber/plugin.h>

typedef enum wb_walk {
    /* serial: an item takes row after row and runs along the first dimension of the columns */
    WB_WALK_RUNS,
    WB_WALK_TILES, /* serial: an item takes neighbouring rows together and runs along them */
    /* serial, a map whose first dimension is short: an item takes elements in the order of memory,
     * and tracks their positions */
    WB_WALK_BLOCKS,
    WB_WALK_ITEMS,  /* each item of a group takes a row */
    WB_WALK_WARPS,  /* each warp of a group takes a row, its items share out the columns */
    WB_WALK_GROUPS, /* a group takes a row, its items share out the columns */
} wb_walk;

enum {
    WB_TILE_ROWS = 64,
    WB_LONG_RUN = 32, /* from this many elements on the widest vectors pay */
    WB_MOST_LAUNCHES = 4,
};

typedef struct wb_layout {
    wb_program program; /* the same program with a simplified domain and its own list of accesses */
    bool *is_linear;    /* by access: its offset is the number of the column; only in maps */
    wb_walk walk;
    bool is_map;           /* no row values */
    bool is_map_of_rows;   /* a map that is walked row by row: columns are dimension 0; no is_map */
    bool is_wide;          /* places need 64 bits */
    bool has_long_runs;    /* serial: the innermost loops are */
    bool decodes;          /* positions in more than one dimension of the columns are needed */
    uint32_t column_dims;  /* bit d: dimension d is one of the columns */
    int32_t first_column;  /* the first of them; -1: none */
    int64_t rows, columns; /* products of the sizes */
    int64_t row_units; /* number of items, tiles or groups, each of which takes one row or more */
    int64_t chunks, chunk; /* pieces of the columns, and columns in each */
    /* units = row_units * chunks; per_item: how many units a serial item takes */
    int64_t units, per_item;
    /* partial results of chunks are combined in scratch memory: a launch for each phase, and one
     * for the rows */
    bool is_split;
    bool ends_with_rows; /* the last launch of a split program stores row values */
    /* An item takes this many columns side by side: 1, 2, 4 or 8, moved at once where memory is
     * aligned; and holds this many such pieces of its row through all phases, so that each is
     * loaded once. 0: the row is walked again in each phase. */
    int32_t piece, held;
    int64_t piece_bytes; /* of what an item loads for a piece, in whole words */
    int32_t group;       /* items of a group */
} wb_layout;

/* False when out of memory. */
bool wb_layout_make(wb_layout *layout, const wb_program *program, const wb_dialect *dialect);
void wb_layout_release(wb_layout *layout);

/* Groups of the launch; the last one of a split program that ends with rows has no chunks. */
int64_t wb_layout_groups(const wb_layout *layout, const wb_dialect *dialect, bool is_rows_only);
int wb_layout_launches(const wb_layout *layout);

/* How many items share the columns of a row; and whether an access moves along them by single
 * elements of memory, so that pieces of it can be moved. */
int32_t wb_layout_sharers(const wb_layout *layout, const wb_dialect *dialect);
bool wb_access_is_dense(const wb_layout *layout, int access);

/* Number of totals that a group shares in a reduction: one of each warp, or of each item if there
 * are no warps. */
int wb_shared_totals(const wb_layout *layout, const wb_dialect *dialect);

static inline bool wb_is_reduction(const wb_instruction *i) {
    return i->code == WB_CODE_sum || i->code == WB_CODE_max_reduce;
}

/* A group takes several rows, and the last group may have fewer. */
static inline bool wb_is_guarded(const wb_layout *l) {
    return l->walk == WB_WALK_ITEMS || l->walk == WB_WALK_WARPS;
}

static inline bool wb_is_number(const wb_instruction *i) {
    return i->code == WB_CODE_constant || i->code == WB_CODE_late;
}

static inline bool wb_is_column(const wb_layout *layout, int d) {
    return layout->column_dims >> d & 1;
}

/* Whether the access moves along some dimension of the columns, or of the rows. */
bool wb_access_varies(const wb_layout *layout, const wb_access *access, bool along_columns);

#endif
