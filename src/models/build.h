/* Models from files: a layer is made from the text that says its structure and the tree of its
 * arrays, or from Flux's own struct. */
#ifndef WB_MODELS_BUILD_H
#define WB_MODELS_BUILD_H

#include "layers/layer.h"
#include "models/term.h"

typedef struct wb_building wb_building;

/* What one layer is made from. */
typedef struct wb_part {
    wb_building *building;
    const wb_path *path;     /* where it will be, for messages */
    const wb_term *term;     /* what the text says; NULL: record is Julia's value itself */
    const wb_record *record; /* beside a term: its part of the tree, or NULL */
} wb_part;

/* Records "FILE: PATH: ..." and that the arrays can still be loaded; NULL. */
void *wb_part_fail(const wb_part *part, wb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A field of its state or struct, wrappers looked through; NULL: it is not there. */
const wb_record *wb_part_field(const wb_part *part, const char *name);

/* The array of a field, floating, on the default device; it belongs to the scope. Places that share
 * a record share the array. ndim 0: any number of dimensions. NULL with the error recorded. */
wb_array *wb_part_weight(const wb_part *part, const char *name, int ndim);
/* A bias, or NULL where there is none; false: an error is recorded. */
bool wb_part_bias(const wb_part *part, wb_array **bias);

/* The array of a field, or NULL where the field is nothing; false: an error is recorded. */
bool wb_part_vector(const wb_part *part, const char *name, wb_array **x);

/* The activation: the i-th term, or the field of this name; NULL for the identity. False: an error
 * is recorded. */
bool wb_part_activation(const wb_part *part, int i, const char *name, wb_activation **activation);

/* A number with this key, or of this field; it stays as it is where it is not written. False: an
 * error is recorded. */
bool wb_part_real(const wb_part *part, const char *key, const char *name, double *number);

/* Up to `most` numbers from 0 to 2^31: a number or tuple with this key, or of this field. Returns
 * how many, 0 where it is not written, -1 with the error recorded. */
int wb_part_numbers(const wb_part *part, const char *name, int most, int64_t *numbers);
/* The same for a term or record. */
int wb_numbers_of(const wb_part *part, const wb_term *term, const wb_record *record, int most,
                  int64_t *numbers);

/* True if the term has at most `positional` terms without a key, and no keys but these; else an
 * error is recorded. */
bool wb_part_has_only(const wb_part *part, int positional, const char *const *keys);

/* The two of in => out, the i-th term, are these. */
bool wb_part_pair_is(const wb_part *part, int i, int64_t in, int64_t out);

/* The layers of a container: terms or records in a list, as a chain or tree. */
wb_layer *wb_part_container(const wb_part *part, const wb_record *children, const char *name,
                            bool is_tree);

/* The model at key in the file; on the default device. */
wb_layer *wb_build(wb_file *file, const char *key, const wb_record *record, const char *text);

#endif
