/* Reads the structure of a model from text, as a person writes it in Flux.
 *
 *     Chain(Conv((5, 5), 1 => 6, relu; pad = 2), MaxPool((2, 2)), flatten, Dense(256 => 10))
 *     layers.2.weight = transpose(layers.1.weight)
 *
 * Nothing is looked up or computed here. Recursion does not depend on the text, and a term takes at
 * most a small multiple of its text's memory. */
#ifndef WB_MODELS_TERM_H
#define WB_MODELS_TERM_H

#include "formats/record.h"

typedef enum wb_term_kind {
    WB_TERM_INTEGER,
    WB_TERM_REAL,
    WB_TERM_BOOL,
    WB_TERM_NAME, /* relu */
    WB_TERM_CALL, /* Dense(...) */
    WB_TERM_TUPLE,
    WB_TERM_PAIR /* 10 => 5: two terms */
} wb_term_kind;

typedef struct wb_term {
    wb_term_kind kind;
    int32_t count;         /* of the terms in it */
    const char *key;       /* pad, of pad = 2; NULL: none */
    const char *name;      /* of a name or call, without modules; else NULL */
    int64_t integer;       /* integer; bool: 0 or 1 */
    double real;           /* real */
    struct wb_term *first; /* in it */
    struct wb_term *next;  /* the next term beside it */
    const char *text;      /* where it is in the text */
    int64_t text_bytes;
} wb_term;

/* to = permutedims(from, dims), or transpose(from): the two share memory. */
typedef struct wb_term_tie {
    const char *to, *from;
    int ndim;
    int64_t dims[WB_MAX_DIMS]; /* from 0 */
    struct wb_term_tie *next;
} wb_term_tie;

typedef struct wb_structure {
    const wb_term *model;
    const wb_term_tie *ties;
} wb_structure;

enum { WB_TERM_DEPTH = WB_RECORD_DEPTH };

/* Parses text into the arena; `where` is for messages. WB_ERROR_FORMAT if it is not such a text. */
wb_status wb_structure_read(wb_structure *structure, const char *text, const char *where,
                            wb_arena *arena);

/* The i-th term without a key, from 0; and the term with this key. NULL: there is none. */
const wb_term *wb_term_at(const wb_term *term, int64_t i);
const wb_term *wb_term_keyed(const wb_term *term, const char *key);

/* The shortest text that is read as exactly this number: 0.5, 0.1; 0.1f0 if it is a float's
 * value. */
void wb_real_text(double value, char *text, size_t size_bytes);

/* True if a name or key can be written as it is; others are written as var"...". */
bool wb_is_word(const char *text);

#endif
