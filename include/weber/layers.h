/* weber/layers.h: the layers, their settings and makers.
 *
 * Those over sequences, which this header includes: weber/sequences.h. What layers and models are,
 * and functions on them: weber/model.h. */
#ifndef WEBER_LAYERS_H
#define WEBER_LAYERS_H

#include "initialisers.h"
#include "model.h"
#include "sequences.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers ---- */

typedef struct wb_dense_desc {
    WB_START_MEMBER;
    int64_t in, out;           /* features, positive; required without given_weight */
    wb_activation *activation; /* default: identity */
    bool bias WB_DEFAULT(true);
    wb_init *init;          /* of the weight; default wb_glorot_uniform */
    wb_dtype dtype;         /* default f32 */
    wb_array *given_weight; /* (out, in), instead of init */
    wb_array *given_bias;   /* (out), instead of zeros */
} wb_dense_desc;

/* y = activation(W x + b).
 *
 * x  (in, ...)     W  (out, in)     b  (out)     y  (out, ...)
 *
 * Fails with WB_ERROR_SHAPE if x's first size is not `in`. x is converted to the type of W, with a
 * warning the first time. */
#define wb_dense(...) WB_MAKE(wb_dense_make, dense, __VA_ARGS__)
WB_API wb_layer *wb_dense_make(wb_dense_desc desc);

typedef struct wb_bilinear_desc {
    WB_START_MEMBER;
    int64_t in, in2, out;      /* features; required without given_weight; in2 default in */
    wb_activation *activation; /* default: identity */
    bool bias WB_DEFAULT(true);
    wb_init *init;          /* of the weight; default wb_glorot_uniform */
    wb_dtype dtype;         /* default f32 */
    wb_array *given_weight; /* (out, in, in2), instead of init */
    wb_array *given_bias;   /* (out), instead of zeros */
} wb_bilinear_desc;

/* z_k = activation(x' W_k y + b_k), where W_k is W at first index k. wb_apply(l, x) uses x as y,
 * too. wb_bilinear(8, 16, 4).
 *
 * x  (in[, N])     y  (in2[, N])     W  (out, in, in2)     b  (out)     z  (out[, N])
 *
 * Fails with WB_ERROR_SHAPE where features or N do not fit. (Flux) */
#define wb_bilinear(...) WB_MAKE(wb_bilinear_make, bilinear, __VA_ARGS__)
WB_API wb_layer *wb_bilinear_make(wb_bilinear_desc desc);

typedef struct wb_conv_desc {
    WB_START_MEMBER;
    /* one size for each spatial dimension of x; required without given_weight */
    int64_t kernel[3];
    int64_t in, out; /* channels; required without given_weight */
    wb_activation *activation;
    int64_t stride[3]; /* default 1; the last number given repeats */
    /* on both sides: WB_ALL(1) in all dimensions, WB_EACH(1, 0) in each; default 0 */
    int64_t pad[3];
    int64_t pad_more[3]; /* added to the padding after x */
    int64_t dilation[3]; /* default 1; the last number given repeats */
    int64_t groups;      /* divides in and out; default 1 */
    bool same_pad;       /* result sizes are ceil(size / stride) */
    bool bias WB_DEFAULT(true);
    wb_init *init;          /* default wb_glorot_uniform */
    wb_dtype dtype;         /* default f32 */
    wb_array *given_weight; /* (kernel..., in / groups, out), instead of init */
    wb_array *given_bias;   /* (out), instead of zeros */
} wb_conv_desc;

/* y = activation(w * x + b): a true convolution (the kernel is flipped), as in Flux's Conv.
 * wb_cross_cor does not flip the kernel, as PyTorch's Conv2d.
 *
 * x  (W, [H, [D,]] in, N)     w  (kernel..., in / groups, out)     b  (out)
 * y  (W', ..., out, N) */
#define wb_conv(...)      WB_MAKE(wb_conv_make, conv, __VA_ARGS__)
#define wb_cross_cor(...) WB_MAKE(wb_cross_cor_make, conv, __VA_ARGS__)
WB_API wb_layer *wb_conv_make(wb_conv_desc desc);
WB_API wb_layer *wb_cross_cor_make(wb_conv_desc desc);

/* wb_conv with groups = in, one for each channel: x (W, [H, [D,]] in, N), w (kernel..., 1, out),
 * where in divides out. It is a Conv and is printed as one, as in Flux. wb_depthwise_conv({3, 3},
 * 3, 6). Fails as wb_conv, and with WB_ERROR_ARGUMENT for other groups. */
#define wb_depthwise_conv(...) WB_MAKE(wb_depthwise_conv_make, conv, __VA_ARGS__)
WB_API wb_layer *wb_depthwise_conv_make(wb_conv_desc desc);

typedef struct wb_pool_desc {
    WB_START_MEMBER;
    int64_t kernel[3]; /* required */
    int64_t stride[3]; /* default: the kernel; the last number given repeats */
    /* on both sides: WB_ALL(1) in all dimensions, WB_EACH(1, 0) in each; default 0 */
    int64_t pad[3];
    int64_t pad_more[3];
    bool same_pad;
} wb_pool_desc;

/* x (W, [H, [D,]] C, N): the largest of each window, or its mean, padding counted as zeros. */
#define wb_maxpool(...)  WB_MAKE(wb_maxpool_make, pool, __VA_ARGS__)
#define wb_meanpool(...) WB_MAKE(wb_meanpool_make, pool, __VA_ARGS__)
WB_API wb_layer *wb_maxpool_make(wb_pool_desc desc);
WB_API wb_layer *wb_meanpool_make(wb_pool_desc desc);

typedef struct wb_lppool_desc {
    WB_START_MEMBER;
    int64_t kernel[3]; /* required */
    int64_t stride[3]; /* this and the next three as in wb_pool_desc */
    int64_t pad[3];
    int64_t pad_more[3];
    bool same_pad;
    double p WB_DEFAULT(2); /* above 0, finite */
} wb_lppool_desc;

/* wb_lppool_op as a layer: wb_lppool({2, 2}, .p = 3). (PyTorch's LPPool) */
#define wb_lppool(...) WB_MAKE(wb_lppool_make, lppool, __VA_ARGS__)
WB_API wb_layer *wb_lppool_make(wb_lppool_desc desc);

/* Merges all dimensions but the last: (5, 5, 3, N) to (75, N). */
WB_API wb_layer *wb_flatten(void);

typedef struct wb_reshape_layer_desc {
    WB_START_MEMBER;
    int64_t dims[WB_MAX_DIMS - 1]; /* required: the sizes of an observation */
} wb_reshape_layer_desc;

/* x (..., N) to (dims..., N): reshapes each observation. wb_reshape_layer({8, 8, 3}). (Lux's
 * ReshapeLayer) Fails with WB_ERROR_SHAPE on observations of another number of elements. */
#define wb_reshape_layer(...) WB_MAKE(wb_reshape_layer_make, reshape_layer, __VA_ARGS__)
WB_API wb_layer *wb_reshape_layer_make(wb_reshape_layer_desc desc);

typedef enum wb_upsample_mode {
    WB_UPSAMPLE_NEAREST,
    WB_UPSAMPLE_LINEAR, /* x (W, C, N) */
    WB_UPSAMPLE_BILINEAR,
    WB_UPSAMPLE_TRILINEAR
} wb_upsample_mode;

typedef struct wb_upsample_desc {
    WB_START_MEMBER;
    int mode; /* wb_upsample_mode; default nearest */
    /* the factor for each dimension; a single number is for all */
    double scale[3];
    double size[3]; /* or the sizes of the result, integers, likewise; give scale or size */
    /* for the linear modes; false: pixels are areas, PyTorch's default */
    bool align_corners WB_DEFAULT(true);
    /* with .align_corners = false and scale: use 1 / scale instead of W / W' below, as PyTorch does
     * without recompute_scale_factor; default: W / W', as in NNlib */
    bool by_scale;
} wb_upsample_desc;

/* x (W, [H, [D,]] C, N) to (W', ..., C, N), W' = floor(scale W) or size. nearest: each pixel is
 * repeated, so scale must be an integer, or size a multiple of W. linear, bilinear and trilinear
 * are for one, two and three spatial dimensions: y_i is interpolated between the two pixels next to
 * place i (W - 1) / (W' - 1), counted from 0, so that corners keep their values, as in Flux; with
 * .align_corners = false the place is max(0, (i + 1/2) W / W' - 1/2).
 * wb_upsample(WB_UPSAMPLE_BILINEAR, {2}). (Flux)
 *
 * Fails with WB_ERROR_ARGUMENT if both or none of scale and size are given, or a number is not an
 * integer where it must be; with WB_ERROR_SHAPE on an x with other dimensions, and for nearest if
 * size is not a multiple of x's. */
#define wb_upsample(...) WB_MAKE(wb_upsample_make, upsample, __VA_ARGS__)
WB_API wb_layer *wb_upsample_make(wb_upsample_desc desc);

/* The same as a function: wb_upsample_op(x, WB_UPSAMPLE_BILINEAR, {2}). */
#define wb_upsample_op(x, ...) WB_MAKE_OF(wb_upsample_op_make, x, upsample, __VA_ARGS__)
WB_API wb_array *wb_upsample_op_make(wb_array *x, wb_upsample_desc desc);

/* A set of dimensions: WB_DIM(2) | WB_DIM(3). */
#define WB_DIM(dim) (1u << (dim))

typedef struct wb_dropout_desc {
    WB_START_MEMBER;
    double p;      /* probability of a zero, 0 to 1; default 0 */
    unsigned dims; /* the mask varies along these, and is the same along others; default: all */
} wb_dropout_desc;

/* In training, each element becomes 0 with probability p, else x / (1 - p); in test mode the result
 * is x. Integers become f32 in both modes. (Srivastava et al. 2014) */
#define wb_dropout(...) WB_MAKE(wb_dropout_make, dropout, __VA_ARGS__)
WB_API wb_layer *wb_dropout_make(wb_dropout_desc desc);

/* The same as a function: wb_dropout_op(x, 0.5). It drops elements whenever it is called, also in
 * test mode, as NNlib's dropout does. Fails with WB_ERROR_ARGUMENT unless 0 <= p <= 1. */
#define wb_dropout_op(x, ...) WB_MAKE_OF(wb_dropout_op_make, x, dropout, __VA_ARGS__)
WB_API wb_array *wb_dropout_op_make(wb_array *x, wb_dropout_desc desc);

typedef struct wb_batchnorm_desc {
    WB_START_MEMBER;
    int64_t channels; /* required without given_gamma */
    wb_activation *activation;
    double eps;                      /* above 0; default 1e-5 */
    double momentum WB_DEFAULT(0.1); /* 0 to 1; 0: running statistics do not change */
    bool affine WB_DEFAULT(true), track_stats WB_DEFAULT(true);
    wb_dtype dtype;                        /* default f32 */
    wb_array *given_beta, *given_gamma;    /* (channels), instead of zeros and ones */
    wb_array *given_mean, *given_variance; /* (channels), instead of zeros and ones */
    bool sync; /* in training, use the batches of all ranks together (weber/distributed.h) */
} wb_batchnorm_desc;

/* y = activation(γ (x - μ) / √(σ² + eps) + β), for each channel by itself; x (..., channels, N). In
 * training μ and σ² are those of the batch's n numbers in the channel, with σ² divided by n. Test
 * mode uses running values. Each forward pass in training updates them: μ = (1 - momentum) μ +
 * momentum μ_batch, and likewise σ², where the batch's σ² is divided by n - 1. (Ioffe and Szegedy
 * 2015; Flux) Paths: "β", "γ"; and the states "μ", "σ²", which are moved and saved but not trained.
 * They do not change for channels in which the batch's values are not finite.
 *
 * .affine = false: no γ and β. .track_stats = false: test mode uses the batch's μ and σ², too.
 * Training on a batch with one number for each channel is WB_ERROR_ARGUMENT. .sync = true takes two
 * all-reduces forward and two backward; all ranks must call the layer, even those without
 * observations; with one rank it has no effect. */
#define wb_batchnorm(...) WB_MAKE(wb_batchnorm_make, batchnorm, __VA_ARGS__)
WB_API wb_layer *wb_batchnorm_make(wb_batchnorm_desc desc);

typedef struct wb_conv_transpose_desc {
    WB_START_MEMBER;
    int64_t kernel[3]; /* this and the following members as in wb_conv_desc */
    int64_t in, out;
    wb_activation *activation;
    int64_t stride[3];
    int64_t pad[3];
    int64_t pad_more[3];
    int64_t dilation[3];
    int64_t outpad[3]; /* added to the result's size at its end, for each dimension (PyTorch's
                          output_padding); default 0 */
    int64_t groups;
    /* result sizes are size * stride; needs dilation 1 and a kernel of at least the stride */
    bool same_pad;
    bool bias WB_DEFAULT(true);
    wb_init *init;
    wb_dtype dtype;
    wb_array *given_weight; /* (kernel..., out / groups, in), instead of init */
    wb_array *given_bias;
} wb_conv_transpose_desc;

/* A transposed convolution, usually from few pixels to more: y = activation(g + b), where g is the
 * gradient of a wb_conv with respect to its input, for x as the gradient of its result.
 *
 * x  (W, [H, [D,]] in, N)     w  (kernel..., out / groups, in)     b  (out)
 * y  (stride (W - 1) + dilation (kernel - 1) + 1 - paddings + outpad, ..., out, N)
 *
 * Fails with WB_ERROR_SHAPE if the input has other channels or dimensions, or groups do not divide
 * the channels; with WB_ERROR_ARGUMENT for same_pad with a kernel smaller than the stride. (Zeiler
 * et al. 2010; Flux) */
#define wb_conv_transpose(...) WB_MAKE(wb_conv_transpose_make, conv_transpose, __VA_ARGS__)
WB_API wb_layer *wb_conv_transpose_make(wb_conv_transpose_desc desc);

/* x (W, [H, [D,]] C, N) to (1, ..., 1, C, N): the mean or the largest of each channel. Fails with
 * WB_ERROR_SHAPE on an x without spatial dimensions. */
WB_API wb_layer *wb_global_meanpool(void);
WB_API wb_layer *wb_global_maxpool(void);

typedef struct wb_adaptive_pool_desc {
    WB_START_MEMBER;
    int64_t out[3]; /* required: spatial sizes of the result */
} wb_adaptive_pool_desc;

/* Pools with windows that follow from the sizes of x: the stride is floor(size / out), the window
 * size - (out - 1) stride, so that the last window ends with x (Flux; PyTorch's windows differ
 * where out does not divide the size). Where x is smaller than out, window i is from
 * floor(i size / out) to ceil((i + 1) size / out), so that windows overlap (PyTorch).
 * wb_adaptive_meanpool({7, 7}). */
#define wb_adaptive_maxpool(...)  WB_MAKE(wb_adaptive_maxpool_make, adaptive_pool, __VA_ARGS__)
#define wb_adaptive_meanpool(...) WB_MAKE(wb_adaptive_meanpool_make, adaptive_pool, __VA_ARGS__)
WB_API wb_layer *wb_adaptive_maxpool_make(wb_adaptive_pool_desc desc);
WB_API wb_layer *wb_adaptive_meanpool_make(wb_adaptive_pool_desc desc);

/* x (W, [H, [D,]] r^d C, N) to (r W, ..., C, N): channel a + r b + r^2 c becomes pixel (a, b) of
 * channel c. (Shi et al. 2016) Fails with WB_ERROR_SHAPE where r^d does not divide the
 * channels. */
WB_API wb_layer *wb_pixel_shuffle(int64_t r);

typedef struct wb_groupnorm_desc {
    WB_START_MEMBER;
    int64_t channels, groups; /* required; groups divide the channels */
    wb_activation *activation;
    double eps; /* above 0; default 1e-5 */
    bool affine WB_DEFAULT(true);
    wb_dtype dtype;
    wb_array *given_beta, *given_gamma; /* (channels), instead of zeros and ones */
} wb_groupnorm_desc;

/* y = activation(γ (x - μ) / √(σ² + eps) + β) with μ and σ² of each group of consecutive channels
 * of each image; x (..., channels, N). wb_groupnorm(8, 2). (Wu and He 2018) Fails with
 * WB_ERROR_SHAPE if the groups do not divide the channels, or x has another number of channels. */
#define wb_groupnorm(...) WB_MAKE(wb_groupnorm_make, groupnorm, __VA_ARGS__)
WB_API wb_layer *wb_groupnorm_make(wb_groupnorm_desc desc);

typedef struct wb_instancenorm_desc {
    WB_START_MEMBER;
    int64_t channels; /* required without given_gamma */
    wb_activation *activation;
    double eps;                      /* above 0; default 1e-5 */
    double momentum WB_DEFAULT(0.1); /* 0 to 1; 0: running statistics do not change */
    bool affine, track_stats;
    wb_dtype dtype;
    wb_array *given_beta, *given_gamma;    /* (channels), instead of zeros and ones */
    wb_array *given_mean, *given_variance; /* (channels), instead of zeros and ones */
} wb_instancenorm_desc;

/* y = activation(γ (x - μ) / √(σ² + eps) + β) with μ and σ² of each channel of each image; x (...,
 * channels, N). wb_instancenorm(64). (Ulyanov, Vedaldi and Lempitsky 2016; Flux)
 *
 * .affine = true: with γ and β. .track_stats = true: test mode uses running μ and σ², as BatchNorm
 * does; training updates them with the means of μ and σ² over the images. For x without spatial
 * dimensions the result is β. Fails with WB_ERROR_SHAPE on input with other channels; with
 * WB_ERROR_ARGUMENT in training with track_stats if each channel of an image has one number. */
#define wb_instancenorm(...) WB_MAKE(wb_instancenorm_make, instancenorm, __VA_ARGS__)
WB_API wb_layer *wb_instancenorm_make(wb_instancenorm_desc desc);

typedef struct wb_rmsnorm_desc {
    WB_START_MEMBER;
    int64_t size[WB_MAX_DIMS]; /* the first sizes of x; required */
    double eps;                /* above 0; default 1e-5 */
    wb_dtype dtype;
    wb_array *given_scale; /* (size...), instead of ones */
} wb_rmsnorm_desc;

/* y = scale x / √(mean(x²) + eps), the mean over the first dimensions of each observation.
 * wb_rmsnorm({64}). (Zhang and Sennrich 2019) Fails with WB_ERROR_SHAPE where x does not begin with
 * these sizes. */
#define wb_rmsnorm(...) WB_MAKE(wb_rmsnorm_make, rmsnorm, __VA_ARGS__)
WB_API wb_layer *wb_rmsnorm_make(wb_rmsnorm_desc desc);

/* Dropout for selu: in training an element becomes selu's lowest value with probability p; then all
 * are scaled and shifted so that mean 0 and variance 1 are preserved. In test mode the result is x.
 * Integers become f32 in both modes. p must be from 0 to 1, else WB_ERROR_ARGUMENT. (Klambauer et
 * al. 2017) */
WB_API wb_layer *wb_alpha_dropout(double p);

typedef struct wb_scale_desc {
    WB_START_MEMBER;
    int64_t size[WB_MAX_DIMS]; /* required without given_scale */
    wb_activation *activation;
    bool bias WB_DEFAULT(true);
    wb_init *init; /* of the scale; default wb_ones_init */
    wb_dtype dtype;
    wb_array *given_scale, *given_bias; /* (size...), instead of ones and zeros */
} wb_scale_desc;

/* y = activation(scale x + bias), elementwise with broadcasting. wb_scale({3, 4}, wb_relu). (Flux;
 * called Diagonal before 0.13) Fails with WB_ERROR_SHAPE if x and size do not broadcast. */
#define wb_scale(...) WB_MAKE(wb_scale_make, scale, __VA_ARGS__)
WB_API wb_layer *wb_scale_make(wb_scale_desc desc);

typedef struct wb_layernorm_desc {
    WB_START_MEMBER;
    int64_t size[WB_MAX_DIMS]; /* the first sizes of x; required */
    wb_activation *activation;
    double eps; /* above 0; default 1e-5 */
    bool affine WB_DEFAULT(true);
    bool bias WB_DEFAULT(true); /* false: only a scale */
    wb_dtype dtype;
} wb_layernorm_desc;

/* y = activation(scale (x - μ) / √(σ² + eps) + bias); μ and σ² are the mean and variance of each
 * observation over its first dimensions, whose sizes are `size`. wb_layernorm({64}).
 *
 * x (size..., ...)     scale, bias (size...), at "diag.scale" and "diag.bias"
 *
 * (Ba, Kiros and Hinton 2016; Flux 0.16.11. Flux 0.15 to 0.16.10 had √(σ² + eps²), older versions σ
 * + eps.) Fails with WB_ERROR_SHAPE if the first sizes of x differ. */
#define wb_layernorm(...) WB_MAKE(wb_layernorm_make, layernorm, __VA_ARGS__)
WB_API wb_layer *wb_layernorm_make(wb_layernorm_desc desc);

typedef struct wb_weight_norm_desc {
    WB_START_MEMBER;
    wb_layer *layer;   /* required; it belongs to the result, also on failure */
    const char *which; /* path of its array v, at most 47 bytes; default "weight" */
    unsigned dims;     /* dimensions of the norm, WB_DIM(0) | ...; default: the last */
    wb_array *given_g; /* instead of v's norm; v's sizes, but 1 in dims */
} wb_weight_norm_desc;

/* The layer with its array v replaced by g v / √(sum(v²) + e), so that length g and direction are
 * learnt separately; the sum is over dims, and e is the type's machine epsilon. Initially g =
 * √(sum(v²) + e), so the layer computes the same as before. wb_weight_norm(wb_dense(2, 3)). v has
 * the path "layer.weight", g "g". The default of dims is Flux's; PyTorch has the same for Linear,
 * but all dimensions except the last for convolutions. (Salimans and Kingma 2016; Flux)
 *
 * Fails with WB_ERROR_ARGUMENT if the layer has no such array, or it is all zeros; with
 * WB_ERROR_SHAPE on a given_g of other sizes. */
#define wb_weight_norm(...) WB_MAKE(wb_weight_norm_make, weight_norm, __VA_ARGS__)
WB_API wb_layer *wb_weight_norm_make(wb_weight_norm_desc desc);

/* The model with each WeightNorm replaced by its layer, whose array is the normalised one. Takes
 * the model over, also on failure. (Flux's remove_weight_norms) */
WB_API wb_layer *wb_remove_weight_norms(wb_layer *model);

/* ---- layers of several arrays, wb_apply_many ----
 *
 * These layers own the layers that they are given, as chains do. */

/* A list of layers as two arguments, count and pointer. */
#define WB_LAYERS(...)                                                                             \
    (int64_t)(sizeof((wb_layer *const[]){__VA_ARGS__}) / sizeof(wb_layer *)),                      \
        (wb_layer *const[]) {                                                                      \
        __VA_ARGS__                                                                                \
    }

/* Makes one array of several: their sum, their product, or their concatenation along the first
 * dimension (vcat), the second (hcat), or the channels, the last dimension but one. A connection
 * that is NULL passes all arrays on. */
typedef wb_array *wb_connection(int count, wb_array *const *arrays);
WB_API wb_connection wb_connect_add, wb_connect_mul, wb_connect_vcat, wb_connect_hcat,
    wb_connect_channels;

/* y = connection(layer(x), x): a skip connection around a layer, wb_skip(layer, wb_connect_add).
 * (He et al. 2015; Flux's SkipConnection) A layer that is already in a container is
 * WB_ERROR_ARGUMENT. */
WB_API wb_layer *wb_skip(wb_layer *layer, wb_connection *connection);

/* y = the layer applied to the channels of each pixel: the layer gets x (W, [H, [D,]] C, N) as
 * (C, W, ..., N), and its result is turned back. wb_pixelwise(wb_layernorm({96})) normalises each
 * pixel over its channels; wb_pixelwise(wb_dense(96, 384)) is a convolution with a kernel of 1.
 * Fails with WB_ERROR_SHAPE if the layer changes other sizes than the first. */
WB_API wb_layer *wb_pixelwise(wb_layer *layer);

/* y = connection(layer1(x1), layer2(x2), ...). A single array goes to all layers; otherwise array i
 * goes to layer i; if there is one layer, it is applied to each array. Any other number of arrays
 * is WB_ERROR_ARGUMENT, and so are no layer and more than WB_MOST_ARRAYS. (Flux)
 * wb_parallel(wb_connect_vcat, wb_dense(2, 4), wb_dense(3, 6)). */
#define wb_parallel(connection, ...) wb_parallel_make(connection, WB_LAYERS(__VA_ARGS__))
WB_API wb_layer *wb_parallel_make(wb_connection *connection, int64_t count,
                                  wb_layer *const *layers);

/* y1 = layer1(x1), y2 = layer2(connection(y1, x2)), ...: returns as many arrays as there are
 * layers. A single array is used for all of x1, x2, ... Without a connection (NULL) a layer gets
 * both arrays, y2 = layer2(y1, x2); a chain that begins with wb_fn_with joins them by a closure.
 * Any other number of arrays, no layer, and more than WB_MOST_ARRAYS are WB_ERROR_ARGUMENT.
 * (Flux) */
#define wb_pairwise_fusion(connection, ...)                                                        \
    wb_pairwise_fusion_make(connection, WB_LAYERS(__VA_ARGS__))
WB_API wb_layer *wb_pairwise_fusion_make(wb_connection *connection, int64_t count,
                                         wb_layer *const *layers);

/* y = max(layer1(x), layer2(x), ...), elementwise. No layer is WB_ERROR_ARGUMENT. (Goodfellow et
 * al. 2013) */
#define wb_maxout(...) wb_maxout_make(WB_LAYERS(__VA_ARGS__))
WB_API wb_layer *wb_maxout_make(int64_t count, wb_layer *const *layers);

/* A function as a layer. For printing and files it has the name of its operation, or the name that
 * wb_register_function gave it; wb_fn_named sets another name for printing. */
WB_API wb_layer *wb_fn(wb_activation *function);
WB_API wb_layer *wb_fn_named(const char *name, wb_activation *function);

/* Writes its results and returns their number, 1 to WB_MOST_ARRAYS, or 0 with the error recorded
 * (wb_fail). inputs are valid during the call; results belong to the scope, as results of
 * operations do. */
typedef int wb_arrays_fn(void *context, int count, wb_array *const *inputs, wb_array **results);

typedef struct wb_fn_with_desc {
    WB_START_MEMBER;
    wb_arrays_fn *function; /* required */
    void *context;          /* passed to it at each call */
    /* called with the context when the layer and its last copy are freed, also when the maker
     * fails; on the thread that frees it. Default: nothing */
    void (*release)(void *context);
    const char *name; /* for printing and messages, copied, at most 47 bytes; default "function" */
} wb_fn_with_desc;

/* A closure as a layer: results = function(context, inputs). It gets all arrays that the layer is
 * applied to.
 *
 *     static int scaled(void *context, int count, wb_array *const *x, wb_array **y) {
 *         if (count != 1) return (void)wb_fail(WB_ERROR_ARGUMENT, "takes one array"), 0;
 *         y[0] = wb_mul_number(x[0], *(const double *)context);
 *         return y[0] ? 1 : 0;
 *     }
 *     wb_chain(wb_dense(2, 3), wb_fn_with(scaled, &factor, .name = "scaled"))
 *
 * Wherever you need a function with a context, use wb_fn_with:
 *
 *     an activation     after the layer: wb_chain(wb_dense(2, 3), wb_fn_with(f, c))
 *                       in an RNN: wb_recurrence(wb_chain(wb_rnn_cell(2, 3, wb_identity),
 *                       wb_fn_with(f, c))); in a transformer: its .feed_forward
 *     a connection      after a container without a connection:
 *                       wb_chain(wb_skip(block, NULL), wb_fn_with(f, c)), where inputs are
 *                       block(x) and x; likewise with wb_parallel(NULL, ...); before a layer of
 *                       wb_pairwise_fusion(NULL, a, wb_chain(wb_fn_with(f, c), b))
 *     an initialiser    not wb_fn_with, but wb_walk (weber/model.h), whose function gets a context,
 *                       the path and the array; or .given_weight
 *
 * Copies of a model (wb_clone, wb_map, wb_share) share the function
 * and the context; a copy on another thread calls the function there. wb_save saves the model's
 * other layers and warns that wb_load_model cannot make this model again; wb_load into an existing
 * model works. A layer that must be saved with its settings has to be a struct of your own. */
#define wb_fn_with(...) WB_MAKE(wb_fn_with_make, fn_with, __VA_ARGS__)
WB_API wb_layer *wb_fn_with_make(wb_fn_with_desc desc);

/* Registers a function of your own under a name: as a layer's activation and in wb_fn it is printed
 * and saved by this name, and wb_load_model and wb_parse find it; for the whole process, from then
 * on. name has at most 47 letters, digits and _. Fails with WB_ERROR_ARGUMENT on another name, and
 * on the name of another function. */
WB_API wb_status wb_register_function(const char *name, wb_activation *function);

/* Applies layers one after another; wb_chain() is the identity. If a layer is NULL (its maker
 * failed), wb_chain fails with an error that says which, and releases the others. */
#define wb_chain(...)                                                                              \
    wb_chain_make((int64_t)(sizeof((wb_layer *const[]){NULL, __VA_ARGS__}) / sizeof(wb_layer *)) - \
                      1,                                                                           \
                  (wb_layer *const[]){NULL, __VA_ARGS__} + 1)
WB_API wb_layer *wb_chain_make(int64_t count, wb_layer *const *layers);

/* How many layers a chain has; -1 if the layer is not a Chain. */
WB_API int64_t wb_chain_count(wb_layer *chain);

/* wb_chain_at: layer i, counted from 1, or from the end (-1 is the last one). wb_chain_get: the
 * layer with this name. It belongs to the chain. NULL with WB_ERROR_ARGUMENT if there is none. */
WB_API wb_layer *wb_chain_at(wb_layer *chain, int64_t i);
WB_API wb_layer *wb_chain_get(wb_layer *chain, const char *name);

/* A chain of the layers first to last, both included, counted as in wb_chain_at; the layers are
 * shared with the first chain, and keep their names. Flux's chain[first:last].
 * wb_chain_slice(chain, 2, -1). */
WB_API wb_layer *wb_chain_slice(wb_layer *chain, int64_t first, int64_t last);

/* Appends a layer, with a name if the chain's layers have names, else NULL. The chain takes it
 * over, also on failure, when the chain does not change. An optimiser of the chain does not train
 * the new layer: set up another one. A layer that is the chain itself, or contains it, is an error
 * and stays the caller's. */
WB_API wb_status wb_chain_append(wb_layer *chain, const char *name, wb_layer *layer);

/* A chain with names: wb_chain_named({"encoder", a}, {"decoder", b}), paths
 * "layers.encoder.weight". A name must not be a number or "layers", and must not contain a dot. */
#define wb_chain_named(...)                                                                        \
    wb_chain_named_make((int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),     \
                        (const wb_named[]){__VA_ARGS__})
WB_API wb_layer *wb_chain_named_make(int64_t count, const wb_named *layers);

/* A list or a dictionary of arrays, layers and trees. It can be used as a model, except in
 * wb_apply. It owns its layers, and holds a reference to its arrays. Paths: "1", "2.weight", or the
 * names. */
#define wb_tree(...)                                                                               \
    wb_tree_make((int64_t)(sizeof((void *const[]){NULL, __VA_ARGS__}) / sizeof(void *)) - 1,       \
                 (void *const[]){NULL, __VA_ARGS__} + 1)
#define wb_tree_named(...)                                                                         \
    wb_tree_named_make((int64_t)(sizeof((const wb_named[]){__VA_ARGS__}) / sizeof(wb_named)),      \
                       (const wb_named[]){__VA_ARGS__})
WB_API wb_layer *wb_tree_make(int64_t count, void *const *objects);
WB_API wb_layer *wb_tree_named_make(int64_t count, const wb_named *objects);

#ifdef __cplusplus
}
#endif
#endif
