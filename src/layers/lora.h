/* The adapter of a Dense: a product of low rank beside its weight (weber/lora.h). */
#ifndef WB_LAYERS_LORA_H
#define WB_LAYERS_LORA_H

#include <weber/lora.h>

#include "layers/layer.h"

extern const wb_layer_class wb_lora_class;

/* A layer of that class. */
typedef struct wb_lora_layer {
    wb_layer layer;
    wb_array *a, *b, *scale; /* (rank, in), (out, rank), a number */
} wb_lora_layer;

/* Adapters that a model is to get. Initialise with {0}; end it in any case. */
typedef struct wb_lora_plan {
    struct wb_lora_entry {
        wb_layer *dense, *adapter;
    } * entries;
    int64_t count, capacity;
} wb_lora_plan;

/* Adds an adapter for the Dense layer; false with an error if the sizes do not fit. */
bool wb_lora_plan_add(wb_lora_plan *plan, wb_layer *dense, wb_array *a, wb_array *b, double scale);
typedef enum wb_lora_end { WB_LORA_GIVE_UP, WB_LORA_ADD, WB_LORA_REPLACE } wb_lora_end;
/* The layers get their adapters, beside those that the model has or instead of all of them, and all
 * layers but adapters are frozen; or nothing changes. */
void wb_lora_plan_end(wb_lora_plan *plan, wb_layer *model, wb_lora_end end);

/* The adapter of a layer; NULL: it has none, or is no Dense. */
wb_lora_layer *wb_lora_of(wb_layer *layer);
/* The place of a Dense layer's adapter; NULL if the layer is no Dense. */
wb_layer **wb_dense_adapter(wb_layer *layer);

#endif
