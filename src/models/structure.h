/* Writes the structure of a model as text; term.h reads it. */
#ifndef WB_MODELS_STRUCTURE_H
#define WB_MODELS_STRUCTURE_H

#include "formats/record.h"
#include "layers/layer.h"

/* "Chain(Dense(10 => 5, relu), Dense(5 => 2))", all on one line, and a line for each array that is
 * a transpose of another. In the arena; NULL with the error recorded. */
const char *wb_structure_text(wb_layer *model, wb_arena *arena);

/* The key of this text: the model's key and "_structure". */
const char *wb_structure_key(const char *key, wb_arena *arena);

#endif
