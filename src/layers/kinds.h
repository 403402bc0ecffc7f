/* One row for each kind of field: how it is read, written and checked. */
#ifndef WB_LAYERS_KINDS_H
#define WB_LAYERS_KINDS_H

#include "layers/layer.h"

enum { WB_FIELD_KINDS = WB_FIELD_OTHER + 1 };

/* A text of at most size bytes, the final 0 included. */
typedef struct wb_writer {
    char *text;
    size_t size, used;
    wb_real_writer *real;
} wb_writer;
void wb_put(wb_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "(3, 3)"; "3" if all are equal and is_short. */
void wb_put_numbers(wb_writer *writer, int count, const int64_t *numbers, bool is_short);

/* A field of a layer, and a pointer to its value, typed by kind. */
typedef struct wb_member {
    const wb_layer *layer;
    const wb_field *field;
    const int64_t *sizes; /* the layer's SIZES */
    int n;                /* how many there are */
    union {
        void *at; /* for a MODE, the mode of the layer */
        wb_array **array;
        int64_t *numbers;
        double *reals;
        bool *flag;
        int *choice;
        char *name;
        unsigned *dims;
        wb_activation **activation;
        wb_connection **connection;
    };
} wb_member;
wb_member wb_member_of(const wb_layer *layer, const wb_field *field);
/* False, with "Dense: ..." recorded as WB_ERROR_ARGUMENT. */
bool wb_member_fail(const wb_member *member, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

typedef struct wb_kind_row {
    size_t bytes; /* size of the member, or of each of its numbers; VALUE: up to the next field */
    int (*count)(const wb_field *field); /* how many numbers; NULL: one */
    int per_size;                        /* lists with a number for each of the layer's SIZES */
    bool is_positional;                  /* in text */
    /* not written if it has its usual value, even if positional, unless `usual` is -1 */
    bool is_optional;
    bool is_function;  /* not sent by ranks */
    bool is_ended;     /* a text that ends with 0 */
    uint8_t most_byte; /* what its byte is at most; 0: anything */

    /* May be NULL. begin: sets the start value in a new struct. derive: takes it from the array
     * that the row's given_by names. complete: fills in what was not given, once; false with the
     * error recorded. */
    void (*begin)(const wb_member *member);
    void (*derive)(const wb_member *member, const wb_array *given);
    bool (*complete)(const wb_member *member);
    bool (*check)(const wb_member *member); /* checks its range; false with the error recorded */

    void (*put)(wb_writer *writer, const wb_member *member); /* its value */
    /* whether it has its usual value, which is not written; NULL: if its bytes are 0 */
    bool (*is_usual)(const wb_member *member);
    /* For the list of all layers: writes the default (NULL: the name if it is positional, "p=0.5"
     * if not), and the names of its possible values. */
    void (*put_default)(wb_writer *writer, const wb_field *field);
    void (*put_names)(wb_writer *writer, const wb_field *field);
} wb_kind_row;

extern const wb_kind_row wb_kind_rows[WB_FIELD_KINDS]; /* by wb_field_kind */
static inline const wb_kind_row *wb_kind_of(const wb_field *field) {
    return &wb_kind_rows[field->kind];
}

/* Writes the range of a numeric setting: "from 0 to 1". */
void wb_range_text(const wb_field *field, char *text, size_t size_bytes);

/* The number that x stands for: WB_NONE_ is a 0 that was given. */
static inline int64_t wb_said(int64_t x) { return x == WB_NONE_ ? 0 : x; }

/* The groups of numbers in a PAIR: "(in, in2) => out" has 2, of 2 numbers and 1. */
enum { WB_MOST_GROUPS = 4 };
const char *wb_pair_form(const wb_field *field);
int wb_pair_groups(const wb_field *field, int counts[WB_MOST_GROUPS]);

#endif
