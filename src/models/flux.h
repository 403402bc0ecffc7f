/* What Julia's values mean where arrays, functions and layers are looked for. */
#ifndef WB_MODELS_FLUX_H
#define WB_MODELS_FLUX_H

#include "formats/record.h"

/* r, or what it wraps: TrackedArray and Param their array, Params and Buffer their list. */
const wb_record *wb_flux_look(const wb_record *r);

/* True for an array in the memory of a device, which a file does not have. */
bool wb_flux_is_on_device(const wb_record *r);

/* A name without its modules: "Dense" of "Flux.Dense". */
const char *wb_flux_last(const char *name);

#endif
