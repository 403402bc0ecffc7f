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

/* A function by its name, which is written or Julia's; NULL for the identity. False: an error is
 * recorded. */
bool wb_part_activation(const wb_part *part, const wb_term *term, const wb_record *record,
                        wb_activation **activation);

/* ---- models of texts alone (parse.c) ---- */

/* True if the layer's arrays are made, not read. */
bool wb_part_is_new(const wb_part *part);
/* What a message on a setting begins with: "Dense: " of a text, "its " of a file's tree. */
const char *wb_part_subject(const wb_part *part, char text[WB_NAME_BYTES + 2]);
/* A layer of the term alone. NULL with an error. */
wb_layer *wb_build_new(wb_building *building, const wb_term *term);
/* The model of a text alone; finish, with the user's pointer, gets it before the text's memory
 * goes, and returns what is to be given back: the same, or NULL. */
typedef wb_layer *wb_finish_fn(void *user, wb_layer *model);
wb_layer *wb_build_of_text(const char *text, wb_finish_fn *finish, void *user);

/* A stand-in for the layer of the term, whose sizes are not all known: it is made when the stand-in
 * is applied. NULL with an error. */
wb_layer *wb_lazy_new(wb_building *building, const wb_term *term);
/* True if a size in it, not in its layers, is _. */
bool wb_term_has_hole(const wb_term *term);

/* The model at key in the file; on the default device. */
wb_layer *wb_build(wb_file *file, const char *key, const wb_record *record, const char *text);

#endif
