/* Julia's BSON files: their bytes (bson.c), how BSON.jl encodes Julia's values (bson_julia.c),
 * reading records (bson_read.c, bson_reader.h) and writing them (bson_write.c, bson_writer.h).
 *
 * It does not use libbson: BSON.jl writes nine types of BSON, which a page of code can read.
 * libbson would be a dependency that few machines have; it does not say where a file is damaged,
 * and all lengths within binaries would have to be checked here anyway. */
#ifndef WB_FORMATS_BSON_H
#define WB_FORMATS_BSON_H

#include "formats/julia.h"

/* ---- bytes ---- */

typedef enum wb_bson_type {
    WB_BSON_NONE = 0, /* also the byte that ends a document */
    WB_BSON_DOUBLE = 0x01,
    WB_BSON_STRING = 0x02,
    WB_BSON_DOCUMENT = 0x03,
    WB_BSON_ARRAY = 0x04,
    WB_BSON_BINARY = 0x05,
    WB_BSON_BOOL = 0x08,
    WB_BSON_NULL = 0x0A,
    WB_BSON_INT32 = 0x10,
    WB_BSON_INT64 = 0x12
} wb_bson_type;

/* Levels of documents: a record takes two, a type within its type four. With this limit Weber can
 * read all that it writes. */
enum { WB_BSON_DEPTH = 4 * WB_RECORD_DEPTH };

typedef struct wb_bson_element {
    uint8_t type;      /* wb_bson_type */
    int64_t offset;    /* of its type byte */
    const char *key;   /* in the file */
    int64_t key_bytes; /* without the zero byte after it */
    int64_t at; /* offset of its value: a text, data, a number, or a document with its length */
    int64_t size_bytes; /* of the value; of a text without the zero byte after it */
} wb_bson_element;

typedef struct wb_bson_cursor {
    int64_t at, end; /* end: offset of the zero byte that ends the document */
} wb_bson_cursor;

/* An entry of _backrefs. */
typedef struct wb_bson_entry {
    int64_t offset;
    wb_record *record; /* set when it is first met */
    int64_t expanded;  /* records in it, shared ones counted each time; 0: it is not complete */
} wb_bson_entry;

/* A file being read. Once status is an error, it stays, and nothing more is found. */
typedef struct wb_bson {
    wb_file *file;      /* for its arena, and for messages */
    wb_mapping map;     /* the bytes that are read: the file, or an entry of it */
    int64_t map_offset; /* of its first byte in the file */
    wb_status status;
    /* how many more elements may be visited; limits back-references that lead to the same bytes
     * again and again */
    int64_t steps;
    wb_bson_entry *entries;
    int64_t nentries, entries_end;
} wb_bson;

/* Records the error and makes it b's status. */
#define wb_bson_fault(b, offset, ...)                                                              \
    ((void)((b)->status = wb_file_fault((b)->file, (b)->map_offset + (offset), __VA_ARGS__)))

/* Whether the arena may still give so much. To be asked before each wb_arena_take of a size from
 * the file. */
bool wb_bson_may_take(wb_bson *b, int64_t size_bytes, int64_t offset);

/* Checks the structure of the whole file, so that later code has to check only what the values
 * mean; *top is its document. */
wb_status wb_bson_check(wb_bson *b, wb_bson_element *top);

/* The elements of a document or array, each with its lengths checked: while (wb_bson_next(b,
 * &cursor, &element)). */
wb_bson_cursor wb_bson_enter(const wb_bson_element *document);
bool wb_bson_next(wb_bson *b, wb_bson_cursor *cursor, wb_bson_element *element);
int64_t wb_bson_count(wb_bson *b, const wb_bson_element *document);

bool wb_bson_key_is(const wb_bson_element *element, const char *key);
const unsigned char *wb_bson_bytes(const wb_bson *b, const wb_bson_element *element);
/* Of a string element: whether it equals text; whether it can be a C string. */
bool wb_bson_text_is(const wb_bson *b, const wb_bson_element *element, const char *text);
bool wb_bson_is_plain(const wb_bson *b, const wb_bson_element *element);
/* Of an int32, int64. */
bool wb_bson_is_integer(const wb_bson_element *element);
int64_t wb_bson_integer(const wb_bson *b, const wb_bson_element *element);

/* ---- Julia ---- */

/* A document with a tag. Fields that it lacks are WB_BSON_NONE. */
typedef struct wb_bson_fields {
    wb_bson_element tag, type, size, data, name, params, ref, path;
} wb_bson_fields;

/* An element, with all back-references followed. */
typedef struct wb_bson_value {
    wb_bson_element element;
    wb_bson_fields fields; /* of a document */
    wb_bson_entry *entry;  /* the entry of _backrefs that it is, or NULL */
} wb_bson_value;

enum { WB_BSON_NAME_BYTES = 1024 };

typedef struct wb_bson_typename {
    char buffer[WB_BSON_NAME_BYTES];
    /* "Flux.Dense": modules and name, without Main; or the tag if it is not a plain type */
    const char *text;
    bool is_plain;          /* a datatype */
    wb_bson_element params; /* a datatype's */
} wb_bson_typename;

/* Checks a tagged document by itself, also one that no value read refers to: its tag, the name of a
 * type. */
void wb_bson_check_tagged(wb_bson *b, const wb_bson_element *document);
/* Finds the entries of _backrefs. */
bool wb_bson_index(wb_bson *b, const wb_bson_element *top);
bool wb_bson_resolve(wb_bson *b, const wb_bson_element *element, wb_bson_value *value);
bool wb_bson_has_tag(const wb_bson *b, const wb_bson_value *value, const char *tag);
/* The same for a field of a tagged document, which must be there and of this type. */
bool wb_bson_field(wb_bson *b, const wb_bson_value *owner, const wb_bson_element *field,
                   wb_bson_type type, wb_bson_element *found);
bool wb_bson_type_of(wb_bson *b, const wb_bson_value *owner, wb_bson_typename *name);
/* A list of strings, joined by dots. */
bool wb_bson_path(wb_bson *b, const wb_bson_element *list, wb_bson_typename *name);
/* A string or symbol that can be a C string. */
bool wb_bson_symbol(wb_bson *b, const wb_bson_element *element, wb_bson_element *text);

/* ---- the format ---- */

wb_status wb_bson_read(wb_file *file);
wb_status wb_bson_write(const wb_record *root, const wb_record *metadata, wb_text *out);

const char *wb_bson_refuses(const wb_record *record);

/* For a tree whose arrays are stored elsewhere: an array is a struct of this type with a text, the
 * name of the array. Other structs keep type and fields. Julia need not be able to read it. */
#define WB_BSON_ARRAY_TYPE "Weber.Array"
wb_status wb_bson_write_tree(const wb_record *root, wb_text *out);
/* The tree in these bytes, which are at the offset in the file, or in its arena; NULL with the
 * error recorded. */
wb_record *wb_bson_read_tree(wb_file *file, const wb_mapping *map, int64_t offset);

#endif
