/* Julia's JLD2 files: a subset of HDF5 (https://support.hdfgroup.org/documentation/hdf5/latest/
 * _f_m_t3.html, the file format specification 3.0) with a description of Julia's types
 * (https://github.com/JuliaIO/JLD2.jl, docs/src/internals.md).
 *
 *     jld2_file.c     the superblock, object headers and their messages, heaps
 *     jld2_types.c    datatypes: how a value's bytes are laid out
 *     jld2_julia.c    Julia's types: names, parameters, fields without data
 *     jld2_data.c     the bytes of a dataset: sizes, layout, filters
 *     jld2_records.c  records and lists, within the limits of memory and depth
 *     jld2_values.c   values as records
 *     jld2_structs.c  tuples, structs and dictionaries as records
 *     jld2.c          groups, and the file
 *
 * All numbers have their least significant byte first. An address counts from the superblock on;
 * offsets, in messages, from the beginning of the file. Julia's sizes are reversed in the file, so
 * that the first dimension is fastest. */
#ifndef WB_FORMATS_JLD2_H
#define WB_FORMATS_JLD2_H

#include "base/table.h"
#include "formats/julia.h"

typedef struct wb_jld2_type wb_jld2_type;

/* What was found at an address. */
typedef struct wb_jld2_entry {
    wb_record *record;           /* its value */
    const wb_jld2_type *type;    /* a committed datatype */
    struct wb_jld2_julia *julia; /* a dataset that is a type */
    wb_record *without;          /* the value of this type, which has no data */
    bool is_value;               /* a dataset that is no type */
    bool is_open;                /* its value, or its type, is being read */
    const int64_t *heap;         /* a heap: the offsets of its objects by index */
    int64_t heap_count;
} wb_jld2_entry;

/* A file being read. Once status is an error, it stays, and nothing more is found. */
typedef struct wb_jld2 {
    wb_file *file;
    wb_status status;
    int64_t base; /* offset of the superblock */
    uint64_t root;
    bool is_old; /* of JLD2 before 0.5: fields without data are not listed */
    /* bytes that may still be looked at one by one; limits what overlaps */
    int64_t steps;
    int depth; /* containers around the current value */
    int calls; /* objects around the current one */
    int64_t inflated_bytes;
    wb_table addresses;
    wb_jld2_entry *entries; /* by number in addresses */
    int64_t entries_room;
} wb_jld2;

/* Records the error and makes it r's status. */
#define wb_jld2_fault(r, offset, ...)                                                              \
    ((void)((r)->status = wb_file_fault((r)->file, offset, __VA_ARGS__)))

/* ---- jld2_file.c ---- */

/* A range of the file, by offsets. */
typedef struct wb_jld2_span {
    int64_t at, end;
} wb_jld2_span;

/* The next bytes of the span, which must be there; NULL, 0 with the error recorded. */
const unsigned char *wb_jld2_skip(wb_jld2 *r, wb_jld2_span *span, int64_t size_bytes);
uint64_t wb_jld2_take(wb_jld2 *r, wb_jld2_span *span, int size_bytes);
/* The offset of what is at an address and has this size; -1 with the error recorded. `from` is the
 * offset at which the address stands. */
int64_t wb_jld2_place(wb_jld2 *r, uint64_t address, int64_t size_bytes, int64_t from);

/* Counts bytes that are looked at; false once they are too many. */
bool wb_jld2_spend(wb_jld2 *r, int64_t bytes, int64_t offset);

enum { WB_JLD2_UNDEFINED = -1 }; /* an address as int64_t */

typedef enum wb_jld2_attribute_name {
    WB_JLD2_JULIA_TYPE,
    WB_JLD2_WRITTEN_TYPE,
    WB_JLD2_EMPTY,
    WB_JLD2_FIELD_NAMES,
    WB_JLD2_FIELD_TYPES,
    WB_JLD2_FIELD_DATATYPES,
    WB_JLD2_DIMENSIONS,
    WB_JLD2_ATTRIBUTES
} wb_jld2_attribute_name;

/* What an object header says; messages that it lacks are {0, 0}. */
typedef struct wb_jld2_object {
    int64_t offset;
    wb_jld2_span space, type, layout, filters, attributes[WB_JLD2_ATTRIBUTES];
    bool is_shared; /* `type` is the address of a committed datatype */
    bool is_group;
} wb_jld2_object;

typedef struct wb_jld2_attribute {
    wb_jld2_span type, space, data;
    bool is_shared;
} wb_jld2_attribute;

/* A name in a group. */
typedef struct wb_jld2_link {
    const char *name; /* in the file */
    int64_t name_bytes, offset;
    uint64_t address;
    bool is_hard; /* else address is 0 */
} wb_jld2_link;
typedef void wb_jld2_visit(wb_jld2 *r, const wb_jld2_link *link, void *context);

bool wb_jld2_open(wb_jld2 *r, wb_file *file);
void wb_jld2_close(wb_jld2 *r);
/* Where the superblock is; -1: nowhere. */
int64_t wb_jld2_find(const wb_mapping *map);

bool wb_jld2_object_at(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_object *object);
bool wb_jld2_links(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_visit *visit, void *context);
/* False without a fault: it has none. */
bool wb_jld2_attribute_of(wb_jld2 *r, const wb_jld2_object *object, wb_jld2_attribute_name name,
                          wb_jld2_attribute *attribute);
/* The entry of an address, a new one for a new address; NULL when out of memory. It moves when
 * another one is made. */
wb_jld2_entry *wb_jld2_entry_of(wb_jld2 *r, uint64_t address);
/* The bytes that a value of 16 bytes refers to: a number of elements, and an object of a heap.
 * NULL: it refers to nothing, with *count 0, or with the error recorded. */
const unsigned char *wb_jld2_heap(wb_jld2 *r, const unsigned char *bytes, int64_t element_bytes,
                                  int64_t offset, int64_t *count);

/* ---- jld2_types.c ---- */

typedef enum wb_jld2_class {
    WB_JLD2_INTEGER = 0,
    WB_JLD2_REAL = 1,
    WB_JLD2_TEXT = 3,
    WB_JLD2_BITS = 4, /* Bool */
    WB_JLD2_OPAQUE = 5,
    WB_JLD2_COMPOUND = 6,
    WB_JLD2_REFERENCE = 7,
    WB_JLD2_LENGTH = 9, /* a number of elements in a heap */
    WB_JLD2_OTHER       /* one that is not read */
} wb_jld2_class;

typedef struct wb_jld2_member {
    const char *name;
    int64_t offset;
    const wb_jld2_type *type;
} wb_jld2_member;

/* A field of a Julia struct. */
typedef struct wb_jld2_field {
    const char *name;
    int member;         /* -1: it has no data */
    uint64_t committed; /* address of its committed datatype; 0: as the member says */
} wb_jld2_field;

struct wb_jld2_type {
    uint8_t class_; /* wb_jld2_class */
    bool is_signed, is_text;
    bool has_references; /* anywhere in it */
    int64_t size, offset;
    int64_t count; /* compound */
    wb_jld2_member *members;
    const wb_jld2_type *element; /* WB_JLD2_LENGTH */
    /* of committed datatypes: */
    uint64_t address;                      /* or 0 */
    struct wb_jld2_julia *julia, *written; /* written: the form that it has in the file */
    bool is_empty;                         /* it has no data */
    bool has_names;                        /* all fields are listed */
    int64_t field_count;
    wb_jld2_field *fields;
};

/* The type in a message; is_shared as in wb_jld2_object. */
const wb_jld2_type *wb_jld2_type_of(wb_jld2 *r, wb_jld2_span message, bool is_shared);
/* A committed datatype. */
const wb_jld2_type *wb_jld2_type_at(wb_jld2 *r, uint64_t address, int64_t from);

/* ---- jld2_julia.c ---- */

/* A type by name. */
typedef struct wb_jld2_julia {
    const char *name; /* "Flux.Dense" */
    int64_t count, offset;
    const unsigned char *parameters; /* addresses */
    /* what its first parameter says, once it was read: a bool, a symbol */
    bool is_noted, boolean;
    const char *text;
} wb_jld2_julia;

enum { WB_JLD2_JULIA_BYTES = 32 }; /* of a type in the file */

/* A parameter of a type: a committed datatype (and the type that it is of), a type, or a value. */
typedef struct wb_jld2_parameter {
    const wb_jld2_type *type;
    wb_jld2_julia *julia;
    wb_record *value;
} wb_jld2_parameter;

wb_jld2_julia *wb_jld2_julia_of(wb_jld2 *r, const unsigned char *bytes, int64_t offset);
bool wb_jld2_is_type_of_types(const wb_jld2_type *type);
bool wb_jld2_parameter_at(wb_jld2 *r, wb_jld2_julia *julia, int64_t i,
                          wb_jld2_parameter *parameter);
/* The value of a type without data: `nothing`, (), a function. */
wb_record *wb_jld2_without_data(wb_jld2 *r, wb_jld2_julia *julia, int64_t offset);
/* The same for a parameter, and for a committed datatype. */
wb_record *wb_jld2_without_data_at(wb_jld2 *r, uint64_t address, int64_t from);
/* Upsample{:nearest, ...}, LSTM{true, ...}: what a symbol or bool says is noted in the struct. */
bool wb_jld2_note_parameter(wb_jld2 *r, wb_jld2_julia *julia, wb_record *record);
bool wb_jld2_is_function(const wb_jld2_julia *julia);
bool wb_jld2_is_tuple(const wb_jld2_julia *julia); /* Tuple, NTuple */
/* "Main.#3#4": only the program that wrote it has such a function. */
bool wb_jld2_is_anonymous(const wb_jld2_julia *julia);
#define WB_JLD2_ANONYMOUS "anonymous function " /* before its name, in an opaque record */

/* ---- jld2_data.c ---- */

typedef struct wb_jld2_shape {
    int kind; /* 0 scalar, 1 array, 2 one value without data */
    int ndim;
    int64_t sizes[WB_MAX_DIMS]; /* first dimension fastest */
    int64_t count;              /* their product; not known if is_too_big */
    bool is_too_big;            /* more dimensions than Weber has */
    bool is_null;               /* there are no bytes */
} wb_jld2_shape;

typedef struct wb_jld2_data {
    const unsigned char *bytes;
    int64_t size_bytes, offset;
    const char *why_not; /* NULL; else why the bytes are not read */
    bool is_inflated;    /* they are not in the file */
} wb_jld2_data;

bool wb_jld2_shape_of(wb_jld2 *r, const wb_jld2_object *object, wb_jld2_shape *shape);
/* The bytes of shape->count elements of the size. */
bool wb_jld2_data_of(wb_jld2 *r, const wb_jld2_object *object, const wb_jld2_shape *shape,
                     int64_t element_bytes, wb_jld2_data *data);

/* ---- jld2_records.c ---- */

wb_record *wb_jld2_make(wb_jld2 *r, wb_record_kind kind, int64_t offset);
wb_record *wb_jld2_make_opaque(wb_jld2 *r, const char *before, const char *type, int64_t offset);
const char *wb_jld2_copy(wb_jld2 *r, const void *text, int64_t size_bytes, int64_t offset);
/* Memory for a list from the arena, within the limit of the file. */
void *wb_jld2_list(wb_jld2 *r, int64_t count, size_t item_bytes, int64_t offset);
/* A record with room for children; until wb_jld2_end it is around what is read. */
wb_record *wb_jld2_begin(wb_jld2 *r, wb_record_kind kind, int64_t count, bool has_names,
                         int64_t offset);
bool wb_jld2_put(wb_jld2 *r, wb_record *parent, int64_t i, wb_record *child);
/* A list becomes a map with these texts as names; both have as many. */
bool wb_jld2_name(wb_jld2 *r, wb_record *list, const wb_record *names, int64_t offset);
wb_record *wb_jld2_end(wb_jld2 *r, wb_record *record); /* NULL once status is an error */

/* ---- jld2_values.c ---- */

/* "Int64" for plain numbers, else the Julia type. */
const char *wb_jld2_name_of(const wb_jld2_type *type);
/* The object at an address: the value of a dataset, or a group. */
wb_record *wb_jld2_read(wb_jld2 *r, uint64_t address, int64_t from);
/* A value of the type in these bytes. */
wb_record *wb_jld2_value(wb_jld2 *r, const wb_jld2_type *type, const unsigned char *bytes,
                         int64_t offset);

/* ---- jld2_structs.c ---- */

wb_record *wb_jld2_compound(wb_jld2 *r, const wb_jld2_type *type, const unsigned char *bytes,
                            int64_t offset);
/* A committed datatype of which Julia makes another type when it reads it. */
wb_record *wb_jld2_converted(wb_jld2 *r, const wb_jld2_type *type, const unsigned char *bytes,
                             int64_t offset);

/* ---- jld2.c ---- */

wb_record *wb_jld2_group(wb_jld2 *r, uint64_t address, int64_t from);

#endif
