/* The settings of layers in files: read from text or Flux's structs, written as in Flux.state. */
#ifndef WB_MODELS_SETTINGS_H
#define WB_MODELS_SETTINGS_H

#include "layers/kinds.h"
#include "models/build.h"

/* Reads the setting from its term if the layer is made from a text (NULL: the text does not have
 * it), else from the field of the struct. A setting that is not there stays as it is; a 0 that is
 * there becomes -0.0 or WB_NONE_, which count as given. False with the error recorded. */
bool wb_setting_read(const wb_part *part, wb_layer *layer, const wb_field *field,
                     const wb_term *term);

/* Kinds of settings, by wb_field_kind: read sets the value from a source, write makes the record
 * for Flux.state. */
struct wb_source;
typedef struct wb_file_row {
    bool (*read)(const struct wb_source *source);
    wb_record *(*write)(wb_arena *arena, const wb_member *member);
} wb_file_row;
extern const wb_file_row wb_file_rows[WB_FIELD_KINDS];

/* The record of the setting in Flux.state; NULL on failure. */
wb_record *wb_setting_record(wb_arena *arena, const wb_layer *layer, const wb_field *field);

#endif
