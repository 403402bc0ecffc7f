/* The adapter of a Dense: a product of low rank beside its weight (weber/lora.h). */
#ifndef WB_LAYERS_LORA_H
#define WB_LAYERS_LORA_H

#include "layers/layer.h"

/* The parts of an adapter, which is a layer of the class wb_lora_class. */
typedef struct wb_lora_layer {
    wb_layer layer;
    wb_array *a, *b, *scale; /* (rank, in), (out, rank), a number */
} wb_lora_layer;

/* An adapter of these arrays, which it holds; NULL with an error. */
wb_layer *wb_lora_new(wb_array *a, wb_array *b, double scale);

/* The place of a Dense layer's adapter; NULL if the layer is no Dense. */
wb_layer **wb_dense_adapter(wb_layer *layer);
/* Gives a Dense layer this adapter, or, with NULL, none; an earlier one is released. */
void wb_dense_adapt(wb_layer *dense, wb_layer *adapter);

/* All parameters of the model but those of adapters are frozen. */
wb_status wb_lora_freeze(wb_layer *model);

#endif
