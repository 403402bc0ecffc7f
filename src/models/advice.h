/* Hints for errors when a file does not fit a model. */
#ifndef WB_MODELS_ADVICE_H
#define WB_MODELS_ADVICE_H

#include "models/load.h"

/* A hint for a record whose sizes are not those of the place; "": none. */
const char *wb_advice_on_sizes(const wb_record *record, const wb_array *place);

/* Adds a hint about a path that the model has and the source lacks. */
void wb_advise_on_name(const wb_source *source, const char *path);

/* Adds the names of a file's dictionaries, of which a key would choose one. */
void wb_advise_on_keys(const wb_file *file);

/* Adds a hint about a source whose names are PyTorch's. */
void wb_advise_on_torch(const wb_source *source);

#endif
