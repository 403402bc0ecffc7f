/* The layers that models in files are made of: one table from the names of Flux's structs to
 * Weber's layers, and back. A new layer is a row. */
#ifndef WB_MODELS_CATALOGUE_H
#define WB_MODELS_CATALOGUE_H

#include "layers/layer.h"
#include "models/build.h"

enum { WB_ROW_FIELDS = 12 };

typedef struct wb_layer_row {
    const char *name; /* in text, and the last part of the struct's name */
    const wb_layer_class *layer_class;
    /* Of Flux's struct, in the order of all its versions (later ones have more), and of Flux.state.
     * Those that are Weber's too are its arrays and layers. */
    const char *fields[WB_ROW_FIELDS];
    /* The layer of a part; NULL with the error recorded. */
    wb_layer *(*make)(const wb_part *part);
    /* What Flux.state says of a field that is not Weber's; NULL on failure. */
    wb_record *(*value)(wb_arena *arena, const wb_layer *layer, const char *field);
    /* What a person writes for it; NULL: its description, which says all. */
    void (*print)(FILE *file, const wb_layer *layer);
} wb_layer_row;

const wb_layer_row *wb_row_of_class(const wb_layer_class *layer_class);
const wb_layer_row *wb_row_named(const char *name); /* modules are passed over */

/* The row of a struct of Julia's, or NULL. */
const wb_layer_row *wb_row_of_struct(const wb_record *r);

/* The name of a record's child: its own, or that of Flux's field; NULL: it has none. */
const char *wb_row_field(const wb_record *r, int64_t i);

#endif
