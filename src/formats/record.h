/* The contents of a file of any format: a tree of records over the file's own bytes. Each format
 * reads into it and writes from it; models, optimisers and the command line see only this. Private
 * side of weber/state.h. */
#ifndef WB_FORMATS_RECORD_H
#define WB_FORMATS_RECORD_H

#include <weber/state.h>

#include "array/array.h"
#include "base/text.h"

enum { WB_TURN_PARTS = 64 }; /* at most this many parts that an array is cut into or joined from */

/* How a rename table changes arrays when they are read from a file: several are joined; one is cut,
 * then permuted, then flipped, then given the record's number of dimensions, whose last are 1. */
typedef struct wb_turn {
    wb_record **of; /* the arrays to change: of the file, or themselves with a turn */
    int count;      /* up to WB_TURN_PARTS; above 1: they are joined along the dimension `along` */
    int along;
    int64_t begin, end; /* the range of that dimension that is cut out; both 0: all */
    bool is_permuted;   /* the new dimension i is the old one order[i] */
    int64_t pairs; /* in each run of so many of dimension 0, elements 0, 2, 4, ... come before 1, 3,
                    * 5, ...; 0: nothing moves. Done last */
    bool is_flipped;            /* all dimensions but the last two run backwards */
    uint8_t order[WB_MAX_DIMS]; /* see is_permuted */
} wb_turn;

/* What a file has in place of an array's elements, such as blocks of small integers with a scale.
 * The elements are made when they are asked for, in memory of their own. */
typedef struct wb_packed {
    const char *type; /* its name in the file: "q8_0" */
    const unsigned char *bytes;
    int64_t size_bytes;
    void (*unpack)(const unsigned char *bytes, int64_t count, void *elements);
} wb_packed;

/* A value. Records belong to the arena of their file (or of what is being written) and are reached
 * by pointers: one that is reached twice is shared, as tied weights are. Children are a list; names
 * are keys of maps and fields of structs. */
struct wb_record {
    uint8_t kind;  /* wb_record_kind */
    uint8_t dtype; /* array */
    uint8_t ndim;  /* array */
    bool boolean;  /* bool; struct: the bool that its type's first parameter is, or false */
    int32_t depth; /* of the deepest nesting below */
    /* its key in a map, or NULL; a record in two places has the name of the first (the parents'
     * `names` have both) */
    const char *name;
    /* its name in the file, if a rename table has given it another; else NULL */
    const char *origin;
    /* struct, opaque: "Flux.Dense"; a number of GGUF's metadata: its type there; array: the type as
     * which GGUF is to write it; else NULL */
    const char *type;
    int64_t integer;  /* integer */
    double real;      /* real */
    const char *text; /* text; struct: the symbol that its type's first parameter is, or NULL */
    int64_t sizes[WB_MAX_DIMS]; /* array: first dimension fastest */
    /* array: dense, data_bytes long; perhaps not aligned; in the file's mapping or in the arena */
    const void *data;
    int64_t data_bytes;
    const wb_packed *packed; /* array: what to make it of, instead of data; else NULL */
    const wb_turn *turn;     /* array: how to make it, instead of both; else NULL */
    wb_array *array;         /* when writing: instead of all three; on the host and evaluated */
    int64_t count;           /* list, map, struct, opaque */
    wb_record **children;
    const char **names; /* of the children, if they have names */
    int64_t offset;     /* of its first byte in the file; -1 */
    int64_t number;     /* scratch of a walk: 0 when it begins */
};

enum { WB_RECORD_DEPTH = 256 }; /* deeper nesting is refused */

enum { WB_ARENA_ALIGN = 16 };

/* Memory that is released all at once. */
typedef struct wb_arena {
    struct wb_arena_block *blocks;
    int64_t used_bytes,
        /* limit 0: none. Taking more fails with WB_ERROR_FORMAT: the file claims too much */
        limit_bytes;
} wb_arena;
/* zeroed, aligned for any type; NULL with the error recorded */
void *wb_arena_take(wb_arena *arena, size_t size_bytes);
void *wb_arena_list(wb_arena *arena, int64_t count, size_t item_bytes);
char *wb_arena_text(wb_arena *arena, const char *text, size_t length); /* a copy, ended */
void wb_arena_release(wb_arena *arena);

wb_record *wb_record_new(wb_arena *arena, wb_record_kind kind);
/* Room for count children (and names, with has_names), NULL each. */
bool wb_record_room(wb_arena *arena, wb_record *record, int64_t count, bool has_names);

/* Calls visit for the root and all records below it, containers first, shared records once. Ends
 * early, with false, when visit returns false. Uses `number`. */
typedef bool wb_record_visit(wb_record *record, void *context);
bool wb_record_walk(wb_record *root, wb_record_visit *visit, void *context);
/* Sets `number` to 0 again in all records that can be reached through records whose number is not
 * 0. */
void wb_record_forget_numbers(wb_record *root);
int64_t wb_record_arrays(wb_record *root); /* how many, each once */

/* The record at a path, or NULL: wb_record_get without an error. */
const wb_record *wb_record_below(const wb_record *record, const char *path);
/* The kind of the record, for messages: "an integer". */
const char *wb_record_noun(const wb_record *record);

/* The place of a walk in a tree, for messages: "layers.1.weight". */
typedef struct wb_branch {
    const struct wb_branch *outer; /* NULL: the root */
    const char *name;              /* NULL: the index + 1 */
    int64_t index;
    int depth;
} wb_branch;
void wb_branch_text(const wb_branch *branch, char *text, size_t size_bytes);

/* The bytes of a file, mapped read-only. */
typedef struct wb_mapping {
    const unsigned char *bytes; /* NULL for an empty file */
    int64_t size_bytes;
} wb_mapping;

struct wb_file {
    wb_object object;
    int32_t refs;   /* __atomic: arrays that borrow its bytes hold it too */
    uint32_t owner; /* the thread that it belongs to if it holds arrays */
    char *path;
    wb_mapping map; /* of the file, or of memory, which is given to `release` unless that is NULL */
    wb_release_fn *release;
    void *context;
    bool is_memory;
    const struct wb_format *format;
    wb_arena arena;
    wb_record *root;
    wb_record *metadata; /* a map of texts, of GGUF also of other values; or NULL */
    wb_array **held;     /* of a state: the model's arrays */
    int64_t held_count;
    /* of a format that keeps it: the paths of all arrays in the file's order, which the tree, whose
     * names are sorted, has lost */
    const char **order;
    int64_t order_count;
    const char **parts; /* of such a format: the names of the dictionaries of arrays in the root */
    int64_t part_count;
    struct wb_file **shards; /* of an index: the files that have its arrays */
    int64_t shard_count, shard_capacity;
    const char *rename_note; /* what wb_rename noticed, for a warning; NULL: nothing */
};

/* A file without bytes, for trees that are made in memory. */
wb_file *wb_file_new(const char *path);
/* A file whose bytes are mapped, but not yet read as a tree; NULL on failure. */
wb_file *wb_file_mapped(const char *path);
/* wb_open of a file that an index names. */
wb_file *wb_open_shard(const char *path);
bool wb_is_file(const void *object);
/* True if this thread may use the file; else with the error recorded. */
bool wb_file_check(const char *function, const wb_file *file);

/* As wb_record_array, but a copy: the file may then change or be closed. */
wb_array *wb_record_copy(const wb_file *file, const wb_record *record);

/* ---- formats ---- */

typedef struct wb_format {
    const char *name;      /* "BSON" */
    const char *extension; /* ".bson" */
    /* by the first bytes; for files whose extension says nothing */
    bool (*recognises)(const wb_mapping *map);
    /* Sets file->root (and metadata). Errors: WB_ERROR_FORMAT, "PATH, offset N: what is wrong". All
     * lengths, products, depths and references must be checked before anything is allocated or
     * followed, and no recursion may depend on the file. */
    wb_status (*read)(wb_file *file);
    /* Writes the tree, from its first byte to its last; out->path is for messages. Arrays are
     * records of kind array with `array` or `data` set. NULL: such files are only read. */
    wb_status (*write)(const wb_record *root, const wb_record *metadata, wb_text *out);
    /* A name, for messages, of a record that the format cannot hold; NULL: it can hold it. If it
     * can hold a container, the children are checked, too. */
    const char *(*refuses)(const wb_record *record);
    bool has_values; /* lists and maps may have other things than arrays in them */
    /* texts about the file have a place of their own; else they are values like all others */
    bool has_metadata;
} wb_format;

extern const wb_format wb_format_bson, wb_format_safetensors, wb_format_npy, wb_format_npz,
    wb_format_pt, wb_format_jld2, wb_format_gguf, wb_format_index;

/* Records WB_ERROR_FORMAT with path and offset; returns it. */
wb_status wb_file_fault(const wb_file *file, int64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
