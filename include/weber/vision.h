/* weber/vision.h: known models of images, made of the layers in weber/layers.h.
 *
 *     wb_layer *model = wb_resnet(18);                      1000 classes, as ImageNet has
 *     wb_layer *model = wb_resnet(50, .classes = 10, .channels = 1);
 *
 * x  (width, height, channels, N)      y  (classes, N), before softmax
 *
 * Each is a chain. With .classes = 0 the last Dense layer is left out, and y is (features, N), for
 * another last layer:
 *
 *     wb_layer *body = wb_resnet(18, .classes = 0);
 *     wb_layer *model = wb_chain(body, wb_dense(512, 10));
 *
 * Layers, their order and their settings are those of torchvision 0.14, so that its weights are
 * loaded by wb_load(path, model, .from = "torch"); the U-Net is that of mateuszbuda's
 * brain-segmentation-pytorch. Convolutions are CrossCors. Their weights are initialised by
 * wb_kaiming_normal, those of Dense layers by wb_glorot_uniform, unless the comment of a model says
 * otherwise.
 *
 * The makers fail with WB_ERROR_ARGUMENT on a depth that the model does not come in, and on sizes,
 * channels, classes and probabilities outside of their range. */
#ifndef WEBER_VISION_H
#define WEBER_VISION_H

#include "desc.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_resnet_desc {
    WB_START_MEMBER;
    int64_t depth;                    /* 18, 34, 50, 101 or 152 */
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features, 512 or, from depth 50 on, 2048 */
} wb_resnet_desc;

/* Residual networks (He et al. 2015): blocks of two 3 x 3 convolutions, or of 1 x 1, 3 x 3 (with
 * the stride) and 1 x 1 from depth 50 on. wb_resnet(50). */
#define wb_resnet(...) WB_MAKE(wb_resnet_make, resnet, __VA_ARGS__)
WB_API wb_layer *wb_resnet_make(wb_resnet_desc desc);

typedef struct wb_vgg_desc {
    WB_START_MEMBER;
    int64_t depth;                    /* 11, 13, 16 or 19 */
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features, 4096 */
    bool norm;                        /* a BatchNorm after each convolution */
    double dropout WB_DEFAULT(0.5);   /* between the Dense layers */
} wb_vgg_desc;

/* Convolutions of 3 x 3, and three Dense layers (Simonyan and Zisserman 2014). x's width and height
 * are at least 32. wb_vgg(16, .norm = true). */
#define wb_vgg(...) WB_MAKE(wb_vgg_make, vgg, __VA_ARGS__)
WB_API wb_layer *wb_vgg_make(wb_vgg_desc desc);

typedef struct wb_mobilenet_desc {
    WB_START_MEMBER;
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features, 1280 */
    double dropout WB_DEFAULT(0.2);   /* before the last layer */
} wb_mobilenet_desc;

/* Blocks that are wider inside than at their ends, with one convolution for each channel: MobileNet
 * V2 (Sandler et al. 2018). wb_mobilenet_v2(.classes = 10). */
#define wb_mobilenet_v2(...) WB_MAKE(wb_mobilenet_v2_make, mobilenet, __VA_ARGS__)
WB_API wb_layer *wb_mobilenet_v2_make(wb_mobilenet_desc desc);

typedef struct wb_mobilenet_v3_desc {
    WB_START_MEMBER;
    bool small;                       /* the smaller of the two */
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features, 1280, or 1024 if small */
    double dropout WB_DEFAULT(0.2);   /* before the last layer */
} wb_mobilenet_v3_desc;

/* The same with squeeze and excitation and hardswish (Howard et al. 2019). wb_mobilenet_v3(.small =
 * true). */
#define wb_mobilenet_v3(...) WB_MAKE(wb_mobilenet_v3_make, mobilenet_v3, __VA_ARGS__)
WB_API wb_layer *wb_mobilenet_v3_make(wb_mobilenet_v3_desc desc);

typedef struct wb_efficientnet_desc {
    WB_START_MEMBER;
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features, 1280 */
    double dropout WB_DEFAULT(0.2);   /* before the last layer */
    /* in training, a block is left out of an image with a probability that rises to this one from
     * the first to the last block (stochastic depth, Huang et al. 2016) */
    double block_dropout WB_DEFAULT(0.2);
} wb_efficientnet_desc;

/* EfficientNet-B0 (Tan and Le 2019). wb_efficientnet(.classes = 10). */
#define wb_efficientnet(...) WB_MAKE(wb_efficientnet_make, efficientnet, __VA_ARGS__)
WB_API wb_layer *wb_efficientnet_make(wb_efficientnet_desc desc);

typedef struct wb_vit_desc {
    WB_START_MEMBER;
    int64_t image WB_DEFAULT(224); /* width and height of x: a multiple of patch */
    int64_t patch WB_DEFAULT(16);  /* width and height of a patch, which becomes a token */
    int64_t features WB_DEFAULT(768);
    int64_t layers WB_DEFAULT(12);    /* blocks, 1 to 1024 */
    int64_t heads WB_DEFAULT(12);     /* of attention; they divide features */
    int64_t hidden;                   /* of the feed-forward parts; default 4 times features */
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features */
    double dropout; /* after the positions and in the blocks, in training; default 0 */
} wb_vit_desc;

/* The Vision Transformer (Dosovitskiy et al. 2020): patches of the image and a class token, whose
 * features are the result. The defaults are ViT-B/16; ViT-B/32 has .patch = 32, ViT-L/16 .features
 * = 1024, .layers = 24, .heads = 16.
 *
 * Each patch has a learnt position, so that x must have the sizes of `image`: another size is
 * WB_ERROR_SHAPE, and the weights of a model with another number of patches are not loaded. To
 * train pretrained weights on other images, resize the images.
 *
 *     wb_layer *body = wb_vit(.classes = 0);
 *     wb_load("vit_b_16.pt", body, .from = "torch", .rename = "heads.head.* ->");
 *     wb_layer *model = wb_chain(body, wb_dense(768, 10)); */
#define wb_vit(...) WB_MAKE(wb_vit_make, vit, __VA_ARGS__)
WB_API wb_layer *wb_vit_make(wb_vit_desc desc);

typedef struct wb_convnext_desc {
    WB_START_MEMBER;
    int64_t depths[4];                /* blocks of each stage; default {3, 3, 9, 3}, as in tiny */
    int64_t width WB_DEFAULT(96);     /* channels of the first stage; twice as many in each next */
    int64_t channels WB_DEFAULT(3);   /* of x */
    int64_t classes WB_DEFAULT(1000); /* 0: y is the features, 8 times width */
    /* in training, a block is left out of an image with a probability that rises from 0 to this one
     * from the first to the last block; torchvision has 0.4 in small, 0.5 in base and large */
    double block_dropout WB_DEFAULT(0.1);
} wb_convnext_desc;

/* ConvNeXt (Liu et al. 2022). The defaults are ConvNeXt-T; small has .depths = {3, 3, 27, 3}, base
 * also .width = 128, large .width = 192. x's width and height are at least 32. Weights are
 * initialised by a normal distribution with standard deviation 0.02. wb_convnext(.classes = 10). */
#define wb_convnext(...) WB_MAKE(wb_convnext_make, convnext, __VA_ARGS__)
WB_API wb_layer *wb_convnext_make(wb_convnext_desc desc);

typedef struct wb_unet_desc {
    WB_START_MEMBER;
    int64_t channels WB_DEFAULT(3); /* of x */
    int64_t classes WB_DEFAULT(1);
    int64_t width WB_DEFAULT(32); /* channels at the full size; twice as many at each half */
    int64_t levels WB_DEFAULT(4); /* how often the size is halved, and doubled again; 1 to 10 */
} wb_unet_desc;

/* A number for each class and pixel: y (width, height, classes, N), before sigmoid. Width and
 * height are multiples of 2^levels. Each level keeps its result for the way back, where it is
 * joined to what comes from the smaller sizes. (Ronneberger et al. 2015, with BatchNorm)
 * wb_unet(.classes = 2). */
#define wb_unet(...) WB_MAKE(wb_unet_make, unet, __VA_ARGS__)
WB_API wb_layer *wb_unet_make(wb_unet_desc desc);

#ifdef __cplusplus
}
#endif

#endif
