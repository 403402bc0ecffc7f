/* A decoder of GPT-2's kind (Radford et al. 2019) as a model, composed of Weber's operations: case
 * e, and GPT-2 itself in larger sizes.
 *
 *     x = tokens[:, symbol] + places[:, time]
 *     x = x + out(attention(norm(x)));  x = x + down(gelu(up(norm(x))))          in each layer
 *     logits = tokens' norm(x)                                                   a tied head
 *
 * attention: softmax over earlier places and its own of (k'q / sqrt(width / heads)), times v, for
 * each head. gelu is the tanh form. No dropout. Weights start uniform with a deviation of 0.02,
 * gains as 1, biases as 0. */
#ifndef BENCH_TRANSFORMER_H
#define BENCH_TRANSFORMER_H

#include <weber.h>

typedef struct bench_transformer {
    int64_t layers, width, heads, context, symbols, batch;
    /* Of the residual stream, the norms, the softmax and the parameters; f32 unless compute is
     * f64. */
    wb_dtype stream;
    /* Of the products and what is between them: weights and activations are converted to it on the
     * way. */
    wb_dtype compute;
} bench_transformer;

/* "layers,width,heads,context,symbols,batch,type": GPT-2's are "12,768,12,1024,50257,8,bf16". False
 * if it is something else. */
bool bench_transformer_parse(const char *text, bench_transformer *sizes);

/* symbols (context, batch), i32, give logits (symbols, context, batch). Parameters: token (width,
 * symbols), place (width, context), layers.I.{norm1,norm2}.{gain,bias},
 * layers.I.{qkv,out,up,down}.{weight,bias}, norm.{gain,bias}. NULL, with Weber's error pending, on
 * failure. */
wb_layer *bench_transformer_make(const bench_transformer *sizes);

#endif
