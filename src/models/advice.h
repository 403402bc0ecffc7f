/* What people may have meant whose file does not fit a model: added to the error. */
#ifndef WB_MODELS_ADVICE_H
#define WB_MODELS_ADVICE_H

#include "models/load.h"

/* Of a record with other sizes than the place has; "": none. */
const char *wb_advice_on_sizes(const wb_record *record, const wb_array *place);

/* Of a path that is not in the source; the place there is a model's. */
void wb_advise_on_name(const wb_source *source, const char *path, const wb_array *place);

/* Of a source whose names are PyTorch's. */
void wb_advise_on_torch(const wb_source *source);

#endif
