/* What each kind of field does: one row a kind. */
#ifndef WB_LAYERS_KINDS_H
#define WB_LAYERS_KINDS_H

#include "layers/layer.h"

enum { WB_FIELD_KINDS = WB_FIELD_OTHER + 1 };

/* Text of at most size bytes, its end included. */
typedef struct wb_writer {
    char *text;
    size_t size, used;
    wb_real_writer *real;
} wb_writer;
void wb_put(wb_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "(3, 3)"; "3" if all are equal and is_short. */
void wb_put_numbers(wb_writer *writer, int count, const int64_t *numbers, bool is_short);

/* A field of a layer's, and its place, as what its kind has there. */
typedef struct wb_member {
    const wb_layer *layer;
    const wb_field *field;
    const int64_t *sizes; /* the layer's SIZES */
    int n;                /* how many there are */
    union {
        void *at; /* of a MODE that of the layer */
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
    size_t bytes; /* of the member, or of each of its numbers; VALUE: as many as there is room */
    int (*count)(const wb_field *field); /* how many numbers; NULL: one */
    int per_size;                        /* lists with a number for each of the layer's SIZES */
    bool is_positional;                  /* in text */
    bool is_optional;  /* not written where it is usual, even if positional, unless `usual` is -1 */
    bool is_function;  /* not sent by ranks */
    bool is_ended;     /* its bytes have a 0 */
    uint8_t most_byte; /* what its byte is at most; 0: anything */

    /* What they do; NULL: nothing. In a new struct; from the array that the row is given by; in
     * place of what is not given, once: false with the error recorded. */
    void (*begin)(const wb_member *member);
    void (*derive)(const wb_member *member, const wb_array *given);
    bool (*complete)(const wb_member *member);
    bool (*check)(const wb_member *member); /* its range; false with the error recorded */

    void (*put)(wb_writer *writer, const wb_member *member); /* its value */
    bool (*is_usual)(const wb_member *member); /* then not written; NULL: if its bytes are 0 */
    /* For the list of all layers: the default (NULL: the name if it is positional, "p=0.5" if not),
     * and the names that its range is of. */
    void (*put_default)(wb_writer *writer, const wb_field *field);
    void (*put_names)(wb_writer *writer, const wb_field *field);
} wb_kind_row;

extern const wb_kind_row wb_kind_rows[WB_FIELD_KINDS]; /* by wb_field_kind */
static inline const wb_kind_row *wb_kind_of(const wb_field *field) {
    return &wb_kind_rows[field->kind];
}

/* "from 0 to 1", of a setting that is numbers. */
void wb_range_text(const wb_field *field, char *text, size_t size_bytes);

/* A 0 that counts. */
static inline int64_t wb_said(int64_t x) { return x == WB_NONE_ ? 0 : x; }

/* The numbers of a PAIR: "(in, in2) => out" is 2 groups, of 2 and 1. */
enum { WB_MOST_GROUPS = 4 };
const char *wb_pair_form(const wb_field *field);
int wb_pair_groups(const wb_field *field, int counts[WB_MOST_GROUPS]);

#endif
