/* Models of language from GGUF files: the metadata has the settings. */
#ifndef WB_MODELS_GGUF_MODEL_H
#define WB_MODELS_GGUF_MODEL_H

#include "formats/record.h"
#include "layers/layer.h"

/* True for a GGUF file, unless wb_save wrote a model into it. */
bool wb_is_gguf_model(const wb_file *file);
/* The file's model with its weights; NULL with an error. */
wb_layer *wb_gguf_model(wb_file *file);
/* The token that ends texts; -1: the file names none, and with an error. */
int64_t wb_gguf_end_token(const wb_file *file);

#endif
