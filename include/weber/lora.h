/* weber/lora.h: low-rank adapters (LoRA, Hu et al. 2021), for training a large model a little.
 *
 * The weight W (out, in) of a Dense layer stays as it is; a product of two small matrices beside it
 * is trained:
 *
 *     y = activation(W x + b + (alpha / rank) B (A x))      A (rank, in)     B (out, rank)
 *
 *     wb_lora(model, .rank = 8, .alpha = 16);                       // in each attention
 *     wb_optimiser *adam = wb_setup(wb_adamw(.eta = 1e-4), model);  // of A and B alone
 *     ... wb_train(...) ...
 *     wb_lora_save("adapter", model);                               // A and B alone
 *     wb_lora_merge(model);                                         // into W
 *
 * Everything else works with adapters, too: wb_save, wb_clone, wb_generate. Adapters of float16 and
 * bfloat16 weights are f32. Errors: weber/error.h; on failure nothing has changed. */
#ifndef WEBER_LORA_H
#define WEBER_LORA_H

#include <math.h>

#include "desc.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WB_LORA_TARGETS = 16 };

typedef struct wb_lora_desc {
    WB_START_MEMBER;
    wb_layer *model;
    int64_t rank WB_DEFAULT(8);
    double alpha WB_DEFAULT(NAN); /* default: rank, so that B A is added as it is */
    /* paths of the Dense layers: a Dense or what contains it, "layers.4"; * matches any characters;
     * default {"*.q_proj", "*.v_proj"} */
    const char *targets[WB_LORA_TARGETS];
} wb_lora_desc;

/* Adds an adapter to each Dense layer that .targets match, and freezes all else
 * (wb_set_trainable) but adapters that the model has already. A's numbers are uniform within
 * 1 / sqrt(in), as PEFT's are; B is zero, so the model computes the same at first. Fails with
 * WB_ERROR_ARGUMENT if a target matches no Dense, if one has an adapter already, and if rank is not
 * positive or alpha not finite.
 * wb_lora(model, .targets = {"*.q_proj", "*.k_proj"}). */
#define wb_lora(...) WB_MAKE(wb_lora_make, lora, __VA_ARGS__)
WB_API wb_status wb_lora_make(wb_lora_desc desc);

/* W becomes W + (alpha / rank) B A, the adapters are gone, and all layers are trainable again. A
 * weight that is tied to another array gets one of its own. */
WB_API wb_status wb_lora_merge(wb_layer *model);
/* The adapters are gone, and all layers are trainable again: the model as it was. */
WB_API wb_status wb_lora_remove(wb_layer *model);

typedef struct wb_lora_save_desc {
    WB_START_MEMBER;
    const char *path;
    wb_layer *model;
    /* the folder of Hugging Face's from which the model was loaded: names are those of its arrays,
     * and PEFT can load the adapters into that model; default: names are Weber's paths */
    const char *base;
} wb_lora_save_desc;

/* Writes the adapters into a folder, which is made if it does not exist, in the form of Hugging
 * Face's library PEFT: adapter_model.safetensors, then adapter_config.json; files of these names
 * are replaced. Fails with WB_ERROR_ARGUMENT if the model has no adapters, or some of different
 * rank or alpha. wb_lora_save("adapter", model, .base = "llama"). */
#define wb_lora_save(...) WB_MAKE(wb_lora_save_make, lora_save, __VA_ARGS__)
WB_API wb_status wb_lora_save_make(wb_lora_save_desc desc);

/* Reads such a folder, PEFT's or Weber's, into the model that it was trained on, and freezes all
 * else; all adapters that the model has are replaced. Names may be those of Hugging
 * Face's models (GPT-2, Llama, Mistral, Qwen2, BERT). Fails with WB_ERROR_FORMAT, naming it, on
 * what PEFT has besides: DoRA, biases, other modules saved with the adapters, embeddings; with
 * WB_ERROR_SHAPE if sizes do not fit. */
WB_API wb_status wb_lora_load(const char *path, wb_layer *model);

#ifdef __cplusplus
}
#endif
#endif
