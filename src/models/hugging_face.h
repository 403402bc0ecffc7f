/* Models of language from folders of Hugging Face's: config.json says the architecture. */
#ifndef WB_MODELS_HUGGING_FACE_H
#define WB_MODELS_HUGGING_FACE_H

#include "layers/layer.h"

/* The folder's model with its weights; NULL with an error. */
wb_layer *wb_hugging_face_model(const char *folder);

#endif
