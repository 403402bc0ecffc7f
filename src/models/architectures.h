/* The architectures of Hugging Face's folders and of GGUF files that can be made, as rows
 * (architectures.c, gguf_architectures.c).
 * Settings, their names and their defaults are those of `transformers` 4 and 5
 * (configuration_gpt2.py, ..., modeling_*.py). */
#ifndef WB_MODELS_ARCHITECTURES_H
#define WB_MODELS_ARCHITECTURES_H

#include <weber/language.h>

typedef enum wb_config_kind {
    WB_CONFIG_INTEGER,
    WB_CONFIG_REAL,
    WB_CONFIG_POSITIVE, /* a real; the desc takes 0 for its default */
    WB_CONFIG_BOOL,
    WB_CONFIG_ACTIVATION,
    WB_CONFIG_FALSE,
    WB_CONFIG_TRUE,
    WB_CONFIG_ABSENT,
    /* of an array: whether it is there or not, and its second size; name is the array's */
    WB_CONFIG_HAS_ARRAY,
    WB_CONFIG_LACKS_ARRAY,
    WB_CONFIG_ROWS_OF_ARRAY
} wb_config_kind;

/* A setting of config.json, and the member of the desc that gets it. null counts as absent, and
 * what is absent keeps the desc's own default. */
typedef struct wb_config_setting {
    const char *name;
    wb_config_kind kind;
    size_t offset;
} wb_config_setting;

/* A row of the rename table, where @ is the prefix of the names, and # the number of the layer
 * after the blocks. */
typedef struct wb_name_row {
    const char *row;
    const char *only_if; /* the row counts only if the file has this array; NULL: always */
} wb_name_row;

typedef union wb_architecture_desc {
    wb_gpt2_desc gpt2;
    wb_llama_desc llama;
    wb_bert_desc bert;
} wb_architecture_desc;

typedef struct wb_language_model wb_language_model; /* language_model.h */

typedef struct wb_family {
    void (*begin)(wb_architecture_desc *d); /* the settings that config.json need not have */
    const wb_config_setting *settings;
    const wb_name_row *names;
    const char *embedding;       /* the first array's name, by which the prefix is found */
    const char *const *prefixes; /* ends with NULL */
    int64_t before;              /* layers before the blocks */
    double (*least)(const wb_architecture_desc *d); /* numbers that the model has at least */
    size_t layers, head, tied; /* offsets of members; tied 0: there is no head */
    size_t init, dtype;
    wb_layer *(*make)(const wb_architecture_desc *d);
    const char *head_name; /* the array of the last layer; NULL: there is no head */
    /* settings of positions that one row cannot say; NULL: there are none */
    bool (*positions)(wb_language_model *m);
    bool has_pairs; /* rotary positions turn neighbours in the file, and halves in Weber */
} wb_family;

/* By the first of config.json's "architectures". */
typedef struct wb_architecture {
    const char *name;
    const wb_family *family;
    bool has_head;    /* the logits of the next token; else the features before them */
    const char *lost; /* what the architecture has beyond that, for a warning; NULL: nothing */
} wb_architecture;
extern const wb_architecture wb_architectures[];
extern const int wb_architecture_count;

/* The array of GGUF with what divides the rates of rotary positions, in models that scale them as
 * Llama 3.1 does. */
#define WB_GGUF_RATES "rope_freqs.weight"

/* By general.architecture of a GGUF file; names of settings are those of its metadata, without the
 * architecture before them. */
extern const wb_architecture wb_gguf_architectures[];
extern const int wb_gguf_architecture_count;

/* Of families: what settings are before any is read, the numbers that a model has at least, the
 * maker. */
void wb_begin_gpt2(wb_architecture_desc *d);
double wb_least_of_gpt2(const wb_architecture_desc *d);
wb_layer *wb_make_gpt2(const wb_architecture_desc *d);
void wb_begin_llama(wb_architecture_desc *d);
double wb_least_of_llama(const wb_architecture_desc *d);
wb_layer *wb_make_llama(const wb_architecture_desc *d);
void wb_begin_bert(wb_architecture_desc *d);
double wb_least_of_bert(const wb_architecture_desc *d);
wb_layer *wb_make_bert(const wb_architecture_desc *d);

/* Of GGUF's metadata. */
bool wb_gguf_rotary(wb_language_model *m);
/* Of config.json. */
bool wb_config_positions(wb_language_model *m);
bool wb_config_rotary(wb_language_model *m);

/* By the names of transformers. */
typedef struct wb_named_activation {
    const char *name;
    wb_activation *activation;
} wb_named_activation;
extern const wb_named_activation wb_named_activations[];
extern const int wb_named_activation_count;

#endif
