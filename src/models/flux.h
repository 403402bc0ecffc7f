/* Reading Julia's values as arrays, functions and layers. */
#ifndef WB_MODELS_FLUX_H
#define WB_MODELS_FLUX_H

#include "formats/record.h"
#include "layers/layer.h"

/* r, or what it wraps: the array of a TrackedArray or Param, the list of a Params or Buffer. */
const wb_record *wb_flux_look(const wb_record *r);
/* The same, for callers that change it. */
wb_record *wb_flux_unwrapped(wb_record *r);

/* True for an array that was in a device's memory: its numbers are not in the file. */
bool wb_flux_is_on_device(const wb_record *r);

/* A name without its modules: "Dense" of "Flux.Dense". */
const char *wb_flux_last(const char *name);

/* The class for a Julia struct, by the struct's name, or NULL. */
const wb_layer_class *wb_flux_class(const wb_record *r);

/* The name of a setting or array in Flux's struct. */
const char *wb_flux_name(const wb_field *field);

/* The name of a record's child: its own, or that of the struct's field; NULL: it has none. */
const char *wb_flux_field(const wb_record *r, int64_t i);

/* The child with this name in Weber's row; an item of a tuple if that version of the struct keeps
 * several arrays in one field. NULL: there is none. */
const wb_record *wb_flux_child(const wb_record *r, const char *name);

/* True if it has all the fields that the newest version's struct has. */
bool wb_flux_is_newest(const wb_layer_class *layer_class, const wb_record *r);

#endif
