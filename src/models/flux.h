/* What Julia's values mean where arrays, functions and layers are looked for. */
#ifndef WB_MODELS_FLUX_H
#define WB_MODELS_FLUX_H

#include "formats/record.h"
#include "layers/layer.h"

/* r, or what it wraps: TrackedArray and Param their array, Params and Buffer their list. */
const wb_record *wb_flux_look(const wb_record *r);
/* The same, to be changed. */
wb_record *wb_flux_unwrapped(wb_record *r);

/* True for an array in the memory of a device, which a file does not have. */
bool wb_flux_is_on_device(const wb_record *r);

/* A name without its modules: "Dense" of "Flux.Dense". */
const char *wb_flux_last(const char *name);

/* The class of a struct of Julia's by its name, or NULL. */
const wb_layer_class *wb_flux_class(const wb_record *r);

/* What a setting or array is called in Flux's struct. */
const char *wb_flux_name(const wb_field *field);

/* The name of a record's child: its own, or that of the struct's field; NULL: it has none. */
const char *wb_flux_field(const wb_record *r, int64_t i);

/* The child of that name, as Weber's row calls it; an item of a tuple, where the struct's version
 * has several arrays as one. NULL: there is none. */
const wb_record *wb_flux_child(const wb_record *r, const char *name);

/* True if it has all the fields that the newest version's struct has. */
bool wb_flux_is_newest(const wb_layer_class *layer_class, const wb_record *r);

#endif
