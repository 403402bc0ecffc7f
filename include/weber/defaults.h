/* weber/defaults.h: the members of descs that do not begin as 0, by desc; made by scripts/defaults.
 * Above a maker's arguments they are what its caller does not write (weber/desc.h). */
#ifndef WEBER_DEFAULTS_H
#define WEBER_DEFAULTS_H
/* clang-format off */

#define WB_DEFAULTS_accum_grad .n = 1,
#define WB_DEFAULTS_adabelief .eta = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-16,
#define WB_DEFAULTS_adadelta .rho = 0.9, .epsilon = 1e-8,
#define WB_DEFAULTS_adagrad .eta = 0.1, .epsilon = 1e-8,
#define WB_DEFAULTS_adam .eta = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8,
#define WB_DEFAULTS_adaptive_pool
#define WB_DEFAULTS_attention .heads = 1,
#define WB_DEFAULTS_batchnorm .momentum = 0.1, .affine = true, .track_stats = true,
#define WB_DEFAULTS_bert                                                                           \
    .vocabulary = 30522, .positions = 512, .types = 2, .features = 768, .layers = 12,              \
    .heads = 12,
#define WB_DEFAULTS_bilinear .bias = true,
#define WB_DEFAULTS_class_token
#define WB_DEFAULTS_clip_grad .delta = 10,
#define WB_DEFAULTS_clip_norm .omega = 10, .p = 2,
#define WB_DEFAULTS_conv .bias = true,
#define WB_DEFAULTS_conv_transpose .bias = true,
#define WB_DEFAULTS_convert
#define WB_DEFAULTS_convnext .width = 96, .channels = 3, .classes = 1000, .block_dropout = 0.1,
#define WB_DEFAULTS_csv .header = true,
#define WB_DEFAULTS_decay .lambda = 5e-4,
#define WB_DEFAULTS_decode
#define WB_DEFAULTS_dense .bias = true,
#define WB_DEFAULTS_descent .eta = 0.1,
#define WB_DEFAULTS_distributed .choose_device = true,
#define WB_DEFAULTS_dropout
#define WB_DEFAULTS_efficientnet                                                                   \
    .channels = 3, .classes = 1000, .dropout = 0.2, .block_dropout = 0.2,
#define WB_DEFAULTS_ema .decay = 0.999,
#define WB_DEFAULTS_embedding .padding_idx = -1,
#define WB_DEFAULTS_embedding_bag
#define WB_DEFAULTS_encode .special = true,
#define WB_DEFAULTS_evaluate .k = 5, .ignore = INT64_MIN, .threshold = 0.5,
#define WB_DEFAULTS_fn_with
#define WB_DEFAULTS_function
#define WB_DEFAULTS_generate .temperature = 1, .top_p = 1, .repetition = 1, .end = -1,
#define WB_DEFAULTS_get_device
#define WB_DEFAULTS_gpt2                                                                           \
    .vocabulary = 50257, .positions = 1024, .features = 768, .layers = 12, .heads = 12,            \
    .tied = true, .head = true,
#define WB_DEFAULTS_gpu_device
#define WB_DEFAULTS_grid_sample .align_corners = true,
#define WB_DEFAULTS_groupnorm .affine = true,
#define WB_DEFAULTS_host_function
#define WB_DEFAULTS_image_folder .channels = 3, .prepare = WB_NOT_GIVEN_(wb_image_prepare_desc),
#define WB_DEFAULTS_image_prepare                                                                  \
    .resize = 256, .crop = 224, .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
#define WB_DEFAULTS_image_read
#define WB_DEFAULTS_image_resize
#define WB_DEFAULTS_instancenorm .momentum = 0.1,
#define WB_DEFAULTS_lamb .eta = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6,
#define WB_DEFAULTS_layernorm .affine = true, .bias = true,
#define WB_DEFAULTS_lion .eta = 0.001, .beta1 = 0.9, .beta2 = 0.99,
#define WB_DEFAULTS_llama .rotary = 10000, .head = true,
#define WB_DEFAULTS_load
#define WB_DEFAULTS_load_from
#define WB_DEFAULTS_loader .batchsize = 1, .background = true,
#define WB_DEFAULTS_lora .rank = 8, .alpha = NAN,
#define WB_DEFAULTS_lora_save
#define WB_DEFAULTS_loss                                                                           \
    .ignore = INT64_MIN, .eps = -1, .delta = 1, .beta = 0.7, .gamma = 2, .margin = 1,              \
    .smooth = 1, .temperature = 0.1, .blank = -1,
#define WB_DEFAULTS_lppool .p = 2,
#define WB_DEFAULTS_mobilenet .channels = 3, .classes = 1000, .dropout = 0.2,
#define WB_DEFAULTS_mobilenet_v3 .channels = 3, .classes = 1000, .dropout = 0.2,
#define WB_DEFAULTS_momentum .eta = 0.01, .rho = 0.9,
#define WB_DEFAULTS_multi_head_attention .heads = 8, .out_bias = true,
#define WB_DEFAULTS_muon .eta = 0.02, .rho = 0.95,
#define WB_DEFAULTS_nesterov .eta = 0.001, .rho = 0.9,
#define WB_DEFAULTS_oadam .eta = 0.001, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-8,
#define WB_DEFAULTS_one_cycle .first = NAN, .last = NAN, .percent = 0.25,
#define WB_DEFAULTS_outputsize
#define WB_DEFAULTS_parse
#define WB_DEFAULTS_patch_embedding
#define WB_DEFAULTS_plateau .factor = 0.1, .patience = 10, .threshold = 1e-4,
#define WB_DEFAULTS_pool
#define WB_DEFAULTS_position_embedding
#define WB_DEFAULTS_progress
#define WB_DEFAULTS_recurrence
#define WB_DEFAULTS_recurrent .bias = true,
#define WB_DEFAULTS_reshape_layer
#define WB_DEFAULTS_resnet .channels = 3, .classes = 1000,
#define WB_DEFAULTS_rmsnorm
#define WB_DEFAULTS_rmsprop .eta = 0.001, .rho = 0.9, .epsilon = 1e-8,
#define WB_DEFAULTS_rotary .heads = 1, .base = 10000,
#define WB_DEFAULTS_rotary_positions .heads = 1, .base = 10000,
#define WB_DEFAULTS_rprop .eta = 0.001, .ell1 = 0.5, .ell2 = 1.2, .gamma1 = 1e-6, .gamma2 = 50,
#define WB_DEFAULTS_sample .fraction = 1,
#define WB_DEFAULTS_scale .bias = true,
#define WB_DEFAULTS_scan .steps = -1, .dim = -1,
#define WB_DEFAULTS_schedule_free .eta = 0.0025, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8,
#define WB_DEFAULTS_setup .loss_scale_interval = 2000, .compare_every = 1000,
#define WB_DEFAULTS_sign_decay .lambda = 1e-3,
#define WB_DEFAULTS_split
#define WB_DEFAULTS_to
#define WB_DEFAULTS_token_embedding .types = 2,
#define WB_DEFAULTS_train                                                                          \
    .epochs = 1, .keep = 3, .metrics = WB_NOT_GIVEN_(wb_evaluate_desc),                            \
    .plateau = WB_NOT_GIVEN_(wb_plateau),
#define WB_DEFAULTS_transformer_block .heads = 8, .bias = true,
#define WB_DEFAULTS_unet .channels = 3, .classes = 1, .width = 32, .levels = 4,
#define WB_DEFAULTS_upsample .align_corners = true,
#define WB_DEFAULTS_vgg .channels = 3, .classes = 1000, .dropout = 0.5,
#define WB_DEFAULTS_vit                                                                            \
    .image = 224, .patch = 16, .features = 768, .layers = 12, .heads = 12, .channels = 3,          \
    .classes = 1000,
#define WB_DEFAULTS_wave .decay = 1,
#define WB_DEFAULTS_weight_norm
#define WB_DEFAULTS_window

#endif
