/* Models of language from files: settings, names of arrays, and the weights, by the rows of
 * architectures.h. Where settings and weights are is the business of hugging_face.c and
 * gguf_model.c. */
#ifndef WB_MODELS_LANGUAGE_MODEL_H
#define WB_MODELS_LANGUAGE_MODEL_H

#include "base/text.h"
#include "formats/json.h"
#include "layers/layer.h"
#include "models/architectures.h"

/* A model that is being read. */
struct wb_language_model {
    const char *path;        /* for warnings */
    const wb_file *config;   /* the file that has the settings, for messages */
    const wb_json *settings; /* an object */
    const wb_architecture *architecture;
    wb_architecture_desc desc;
    wb_file *weights;
    const char *prefix; /* of the names of arrays */
    wb_text table;
};

/* Finds the architecture of this name among the rows; false with an error at the offset. */
bool wb_find_architecture(wb_language_model *m, const wb_architecture *rows, int count,
                          const char *name, int64_t offset);
/* Sets desc by the settings. Rows that ask for arrays need the weights. */
bool wb_take_settings(wb_language_model *m);
/* The model, with the weights; NULL with an error. */
wb_layer *wb_make_language_model(wb_language_model *m);
/* The weights under Weber's paths; NULL with an error. */
const wb_record *wb_language_names(wb_language_model *m);

/* ---- settings ---- */

/* The member, which is neither absent nor null; else NULL. */
const wb_json *wb_given_setting(const wb_json *object, const char *name);
/* These record an error and return false: a value must be something else; a model with something
 * cannot be made; a member is missing. */
bool wb_want_setting(const wb_language_model *m, const wb_json *value, const char *name,
                     const char *what);
bool wb_refuse_setting(const wb_language_model *m, const wb_json *value, const char *what);
bool wb_lack_setting(const wb_language_model *m, const wb_json *object, const char *name);
/* A positive number. */
bool wb_take_positive_setting(const wb_language_model *m, const wb_json *value, const char *name,
                              double *number);
/* The array of this name, where a name that begins with @ gets the prefix; NULL: there is none. */
const wb_record *wb_language_array(const wb_language_model *m, const char *name);

#endif
