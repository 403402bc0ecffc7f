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
    const wb_path *path;     /* where it will be in the model, for messages */
    const wb_term *term;     /* its text; NULL: record is Julia's own struct */
    const wb_record *record; /* with a term: its part of the tree, or NULL */
} wb_part;

/* Records an error "FILE: PATH: ..." with a note that the arrays can still be loaded. Returns
 * NULL. */
void *wb_part_fail(const wb_part *part, wb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A field of its state or struct, with wrappers removed; NULL: it is not there. */
const wb_record *wb_part_field(const wb_part *part, const char *name);

/* Finds a function by name, from the text or from Julia's value; NULL for the identity. False with
 * the error recorded. */
bool wb_part_activation(const wb_part *part, const wb_term *term, const wb_record *record,
                        wb_activation **activation);

/* An entry of a container: a layer, or, of a tree, an array, which belongs to the scope. NULL with
 * an error. */
void *wb_part_entry(const wb_part *part, bool is_tree);

/* ---- build_list.c ---- */

/* Fills the list that is the layer's field; the term's first `before` entries are settings. False
 * with an error. */
bool wb_part_read_list(const wb_part *part, wb_layer *layer, const wb_field *field, int before);

/* ---- models of texts alone (parse.c) ---- */

/* True if the layer's arrays are made, not read. */
bool wb_part_is_new(const wb_part *part);
/* The beginning of a message about a setting: "Dense: " for a text, "its " for a file's tree. */
const char *wb_part_subject(const wb_part *part, char text[WB_NAME_BYTES + 2]);
/* A layer made from the term alone. NULL with an error. */
wb_layer *wb_build_new(wb_building *building, const wb_term *term);
/* A model from a text alone. finish gets it, with the user's pointer, before the text's memory is
 * released; it returns the model, or NULL. */
typedef wb_layer *wb_finish_fn(void *user, wb_layer *model);
wb_layer *wb_build_of_text(const char *text, wb_finish_fn *finish, void *user);

/* A stand-in for the layer of the term, whose sizes are not all known: it is made when the stand-in
 * is applied. NULL with an error. */
wb_layer *wb_lazy_new(wb_building *building, const wb_term *term);
/* True if one of its own sizes (not those of layers in it) is _. */
bool wb_term_has_hole(const wb_term *term);

/* The model at key in the file; on the default device. */
wb_layer *wb_build(wb_file *file, const char *key, const wb_record *record, const char *text);

#endif
