/* Models of language from folders of Hugging Face's: config.json says the architecture. */
#ifndef WB_MODELS_HUGGING_FACE_H
#define WB_MODELS_HUGGING_FACE_H

#include "formats/record.h"
#include "layers/layer.h"

/* The folder's model with its weights; NULL with an error. */
wb_layer *wb_hugging_face_model(const char *folder);

/* The folder's weights under Weber's paths; each record's origin is its name in the files, which
 * are opened as *weights. *own: the prefix of those names; *wanted: that of the modules, which
 * files may lack. */
const wb_record *wb_hugging_face_names(const char *folder, wb_file **weights, const char **own,
                                       const char **wanted);

#endif
