"""What the headers cannot say about Weber's functions in Python. All else is generated from api.json."""

# Functions whose Python name is not the C name without wb_ and _make: the Array API's name where it has one.
NAMES = {
    "wb_neg": "negative", "wb_sub": "subtract", "wb_mul": "multiply", "wb_div": "divide", "wb_mod": "remainder",
    "wb_max": "maximum", "wb_min": "minimum", "wb_maximum_make": "max", "wb_minimum_make": "min",
    "wb_eq": "equal", "wb_ne": "not_equal", "wb_lt": "less", "wb_le": "less_equal", "wb_gt": "greater", "wb_ge": "greater_equal",
    "wb_and": "logical_and", "wb_or": "logical_or", "wb_not": "logical_not", "wb_recip": "reciprocal",
    "wb_permute_make": "permute_dims", "wb_unsqueeze": "expand_dims", "wb_expand_make": "broadcast_to",
    "wb_gather": "take", "wb_take_along": "take_along_axis", "wb_rebuild": "rebuild", "wb_cache": "key_value_cache",
    "wb_softmax_make": "softmax", "wb_logsoftmax_make": "logsoftmax", "wb_glu_dim": "glu",
    "wb_matmul_precision": "set_matmul_precision", "wb_remove_weight_norms": "remove_weight_norms", "wb_chain_slice": "chain_slice",
    "wb_chain_get": "chain_get",
}

# Layers and rules are capitalised, as in Flux and PyTorch: lstm_cell is LSTMCell.
CAPITALS = {
    "batchnorm": "BatchNorm", "layernorm": "LayerNorm", "groupnorm": "GroupNorm", "instancenorm": "InstanceNorm", "rmsnorm": "RMSNorm",
    "maxpool": "MaxPool", "meanpool": "MeanPool", "lppool": "LPPool", "lstm": "LSTM", "gru": "GRU", "rnn": "RNN", "gru_v3": "GRUv3",
    "lstm_cell": "LSTMCell", "gru_cell": "GRUCell", "rnn_cell": "RNNCell", "gru_v3_cell": "GRUv3Cell",
    "global_meanpool": "GlobalMeanPool", "global_maxpool": "GlobalMaxPool", "adaptive_maxpool": "AdaptiveMaxPool",
    "adaptive_meanpool": "AdaptiveMeanPool", "skip": "SkipConnection", "reshape_layer": "Reshape", "flatten": "Flatten",
    "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam", "rmsprop": "RMSProp", "adamax": "AdaMax", "amsgrad": "AMSGrad",
    "adagrad": "AdaGrad", "adadelta": "AdaDelta", "rprop": "RProp", "oadam": "OAdam", "adabelief": "AdaBelief", "lamb": "LAMB",
    "ema": "EMA", "rule_chain": "RuleChain",
}

# Reductions take axis (None: all), keepdims, and the settings named here, with their usual values.
REDUCTIONS = {
    "wb_sum_make": {"dtype": "dtype"}, "wb_maximum_make": {}, "wb_minimum_make": {}, "wb_mean_make": {}, "wb_prod_make": {"dtype": "dtype"}, "wb_any_make": {},
    "wb_all_make": {}, "wb_logsumexp_make": {}, "wb_var_make": {"corrected": "correction"}, "wb_std_make": {"corrected": "correction"},
    "wb_norm_make": {"p": "ord"},
}
# Parameters that may be left out in Python, and what C gets then. An axis is counted from the end in C: the last one is 0.
OMITTED = {
    ("wb_softmax_make", "axis"): "-1", ("wb_logsoftmax_make", "axis"): "-1", ("wb_glu_dim", "axis"): "-1",
    ("wb_cumsum", "axis"): "-1", ("wb_cumprod", "axis"): "-1", ("wb_sort", "axis"): "-1", ("wb_argsort", "axis"): "-1",
    ("wb_sort", "descending"): "False", ("wb_argsort", "descending"): "False", ("wb_top_k", "axis"): "-1",
    ("wb_take_along", "axis"): "-1", ("wb_categorical", "axis"): "-1",
    ("wb_tril", "k"): "0", ("wb_triu", "k"): "0", ("wb_diag", "k"): "0", ("wb_pad", "value"): "0.0",
    ("wb_normalise_make", "eps"): "1e-5", ("wb_normalise_make", "axis"): "-1", ("wb_rescale", "eps"): "1e-8",
    ("wb_standardise", "eps"): "1e-8", ("wb_full_make", "dtype"): '"float32"',
    ("wb_uniform_make", "dtype"): '"float32"', ("wb_normal_make", "dtype"): '"float32"',
    ("wb_linspace_make", "dtype"): '"float32"', ("wb_truncated_normal_make", "dtype"): '"float32"', ("wb_iota_make", "dtype"): '"float32"',
    ("wb_load_model", "key"): "None", ("wb_load_model_as", "key"): "None",
}

# Matrices are transposed in memory, so that functions of a matrix are turned: which ones, and how. The functions of the package
# with these names do it (weber/_arrays.py); what is generated for them has an underscore in front.
TURNED = {
    "wb_tril": "is triu of -k", "wb_triu": "is tril of -k", "wb_diag": "-k",
    "wb_outer": "arguments exchanged", "wb_where": "rows reversed", "wb_einsum_make": "letters of each term reversed",
}

# What the package wraps: generated with an underscore in front.
WRAPPED = {
    "wb_full_make", "wb_uniform_make", "wb_normal_make", "wb_linspace_make", "wb_reshape_make", "wb_concat_make", "wb_flip",
    "wb_load_model", "wb_load_model_as", "wb_chain_make", "wb_pow", "wb_round", "wb_floor", "wb_ceil", "wb_trunc", "wb_gather", "wb_take_along", "wb_repeat", "wb_roll", "wb_sort", "wb_argsort",
}

# Members of descs whose values are names of an enum, though C has an int there.
CHOICES = {
    ("wb_upsample_desc", "mode"): "wb_upsample_mode", ("wb_embedding_bag_desc", "reduction"): "wb_bag_reduction",
    ("wb_grid_sample_desc", "padding"): "wb_grid_padding", ("wb_image_resize_desc", "filter"): "wb_image_filter",
    ("wb_image_prepare_desc", "filter"): "wb_image_filter",
}
# Lists in descs that are not sizes, so that their order stays.
IN_ORDER = {"at", "counts", "depths", "mean", "std"}
# Paddings: a number is for all dimensions, a list has one for each.
PADDINGS = {"pad", "pad_more", "outpad", "image"}
# Members that other names serve better in Python.
MEMBERS = {"in": "in_", "lambda": "lambda_", "given_weight": "weight", "given_bias": "bias_array", "given_token": "token"}

# Layers that a function takes over, beside those of makers.
TAKES = {("wb_remove_weight_norms", "model")}

# Where a comment of the headers is about several functions, or about what is different in Python.
DOCS = {
    "wb_maxpool_make": "The largest number of each window; x (N, C, [[D,] H,] W). The stride is the kernel's size if it is not given.",
    "wb_meanpool_make": "The mean of each window, padding counted as zeros; x (N, C, [[D,] H,] W). The stride is the kernel's size if it is not given.",
    "wb_conv_make": "y = activation(w * x + b): a true convolution (the kernel is flipped), as in Flux; CrossCor is PyTorch's Conv2d.\n\n"
                    "x (N, in, [[D,] H,] W)     w (out, in / groups, kernel...)     b (out)     y (N, out, ..., W')",
    "wb_cross_cor_make": "y = activation(w * x + b), the kernel not flipped: PyTorch's Conv1d, Conv2d and Conv3d.\n\n"
                         "x (N, in, [[D,] H,] W)     w (out, in / groups, kernel...)     b (out)     y (N, out, ..., W')",
    "wb_scatter_add": "base, with each slice of updates added at its position along the axis: slice k of updates goes to position index[k].",
}

# Functions that compute, read files or wait: other threads of the interpreter run meanwhile.
RELEASES = {
    "wb_where", "wb_onehot", "wb_device_sync", "wb_barrier", "wb_clone", "wb_oversample_make", "wb_undersample_make", "wb_model_as",
}

# Written by hand in src/: the reason is in the file.
BY_HAND = {
    "wb_apply": "a call of a Layer", "wb_apply_many": "a call of a Layer", "wb_train_step": "train.c", "wb_withgradient": "train.c",
    "wb_withgradient_for": "train.c", "wb_update": "train.c", "wb_gradient_of": "derivatives.c", "wb_pullback": "derivatives.c", "wb_setup_make": "train.c",
    "wb_train_make": "train.c", "wb_evaluate_make": "train.c", "wb_next_gradient": "Gradients.items",
    "wb_eval_make": "array.c", "wb_item": "Array.item", "wb_read_begin": "buffers", "wb_read_end": "buffers",
    "wb_from_make": "array", "wb_borrow_make": "from_dlpack", "wb_number": "numbers in arguments", "wb_whole_number": "numbers in arguments", "wb_live": "live", "wb_plan_status": "plans",
    "wb_cast": "astype", "wb_loader_make": "data.c", "wb_next": "a loop over a Loader", "wb_next_parameter": "Layer.parameters",
    "wb_next_module": "Layer.modules", "wb_get": "model[path]", "wb_set": "model[path] = x", "wb_chain_at": "chain[i]", "wb_show_text": "repr",
    "wb_share": "share", "wb_share_array": "share", "wb_training": "training", "wb_list_append": "Module", "wb_layer_new": "Module", "wb_register_layer": "register", "wb_fn_with_make": "functions in a chain",
    "wb_set_context_device": "device", "wb_get_device_named": "device", "wb_to_make": "to", "wb_device_of": "Array.device", "wb_save_make": "save",
    "wb_load_named_make": "load", "wb_checkpoint_save_make": "checkpoint_save", "wb_checkpoint_load_make": "checkpoint_load",
    "wb_save_memory_make": "save_bytes", "wb_open_memory": "load_bytes", "wb_load_named_from_make": "load_bytes", "wb_fail": "exceptions in functions",
    "wb_recompute": "derivatives.c", "wb_jvp": "derivatives.c", "wb_hvp": "derivatives.c", "wb_schedule_of": "train.c", "wb_tree_named_make": "tree", "wb_chain_named_make": "Chain",
    "wb_file_model": "load_bytes", "wb_schedule_sequence_make": "schedule_sequence", "wb_schedule_loop": "train.c", "wb_schedule_stretch": "train.c",
    "wb_schedule_shift": "train.c", "wb_slice": "x[a:b]", "wb_slice_set": "x.at[a:b].set",
    "wb_map": "map_model", "wb_walk": "map_model", "wb_rule_chain_make": "RuleChain", "wb_params": "setup", "wb_unstack": "unstack",
    "wb_outputsize_make": "outputsize", "wb_splitobs_make": "splitobs", "wb_splitobs_all_make": "splitobs", "wb_function_make": "function",
    "wb_argmax": "argmax", "wb_argmin": "argmin", "wb_squeeze": "squeeze", "wb_text_make": "save", "wb_file_text": "load",
    "wb_scan_make": "tools.c", "wb_show_sizes_make": "summary", "wb_draw_model_make": "tools.c", "wb_watch_layers": "tools.c", "wb_activations": "tools.c", "wb_apply_tree": "tools.c", "wb_memory_status": "tools.c",
    "wb_memory_holders": "tools.c", "wb_device_properties": "tools.c", "wb_distributed_initialize_make": "tools.c", "wb_synchronize": "tools.c",
    "wb_plateau_step": "Plateau", "wb_random_state": "random_state", "wb_hook": "hook, by function()", "wb_gradient_check": "derivatives.c",
    "wb_matmul": "@", "wb_dot": "@", "wb_transpose": "x.T, x.mT", "wb_stack_make": "stack", "wb_eye_make": "eye",
    "wb_jacobian": "derivatives.c", "wb_hessian": "derivatives.c", "wb_hessian_diagonal": "derivatives.c",
    "wb_tokenizer_load": "Tokenizer", "wb_tokenizer_size": "len(tokenizer)", "wb_tokenizer_id": "Tokenizer.id", "wb_tokenizer_token": "Tokenizer.token",
    "wb_generate_make": "text.c", "wb_encode_make": "Tokenizer.encode", "wb_decode_make": "Tokenizer.decode",
    "wb_gradient_each": "derivatives.c", "wb_log_to": "log.c",
    "wb_image_folder_open_make": "ImageFolder", "wb_image_folder_count": "len(folder)", "wb_image_folder_path": "ImageFolder.paths",
    "wb_image_folder_labels": "ImageFolder.labels", "wb_image_folder_class": "ImageFolder.classes", "wb_image_folder_vocabulary": "ImageFolder.classes",
}

# Not for Python, each with its reason.
NOT_FOR_PYTHON = {
    "what the interpreter does itself": [
        "wb_scope_open", "wb_scope_close", "wb_scope_leave", "wb_keep", "wb_free", "wb_take", "wb_give", "wb_forget_recipe", "wb_keep_layer",
        "wb_context_new", "wb_context_enter", "wb_context_leave", "wb_hand_over", "wb_gradients_keep", "wb_batch_end",
        "wb_sizes_slowest_first", "wb_status_text", "wb_failed", "wb_error_status", "wb_error_message", "wb_report", "wb_take_error", "wb_clear_error", "wb_try",
    ],
    "a property or method of an Array, or a word of the language": [
        "wb_dtype_of", "wb_ndim", "wb_size", "wb_sizes", "wb_count", "wb_dtype_name", "wb_dtype_size", "wb_dtype_is_float", "wb_at_make",
        "wb_read", "wb_read_make", "wb_read_f64", "wb_read_f32", "wb_approx", "wb_show", "wb_show_array", "wb_copy", "wb_numobs",
        "wb_device_name", "wb_promote", "wb_scalar", "wb_vector_make", "wb_matrix_make", "wb_adopt_make", "wb_late", "wb_text_of_entry",
    ],
    "forms for C of what Python has with keywords": [
        "wb_add_number", "wb_sub_number", "wb_mul_number", "wb_div_number", "wb_pow_number", "wb_number_sub", "wb_number_div",
        "wb_number_pow", "wb_glu", "wb_matmul_transposed", "wb_load_make", "wb_load_from_make", "wb_fn", "wb_fn_named", "wb_gpu", "wb_cpu",
        "wb_move_make", "wb_chain_append", "wb_get_device_make", "wb_register_function", "wb_batch_get", "wb_batch_to",
        "wb_gradient", "wb_params_delete", "wb_update_params", "wb_params_optimiser", "wb_layer_complete", "wb_nfan",
        "wb_conv_data_make", "wb_conv_filter_make", "wb_first", "wb_getobs", "wb_loader_to", "wb_state", "wb_tree_make",
    ],
    "for layers, rules and plugins written in C": [
        "wb_setting", "wb_setting_rest", "wb_setting_unbiased", "wb_setting_is", "wb_rule_make", "wb_is_active",
    ],
    "NumPy, pandas and Python's own tools do it": [
        "wb_read_csv_make", "wb_csv_rows", "wb_csv_columns", "wb_csv_name", "wb_csv_text", "wb_csv_column", "wb_csv_matrix", "wb_csv_labels",
        "wb_csv_vocabulary", "wb_csv_labels_in", "wb_vocabulary_size", "wb_csv_label", "wb_filterobs", "wb_patience_is_over",
        "wb_throttle_passes", "wb_throttle_has_rest", "wb_progress_make", "wb_progress_step", "wb_progress_note", "wb_progress_end",
        "wb_plot_curves_make", "wb_groupobs", "wb_frequencies", "wb_preference_file",
    ],
    "Python's own words do it: a loop over items(), a slice, a comparison, train(patience=...), DataLoader(map=...)": [
        "wb_gradients_map", "wb_chunk", "wb_chunk_sizes", "wb_onehot_of", "wb_early_stopping_ends", "wb_standstill_is_over", "wb_mapobs",
    ],
    "scikit-learn does it: KFold, StratifiedKFold, TimeSeriesSplit, LeavePOut, shuffle": [
        "wb_shuffleobs", "wb_kfolds", "wb_kfolds_stratified", "wb_timeseries_kfolds", "wb_leavepout", "wb_leavepout_folds",
    ],
    "functional and functional_part do it in Python": ["wb_call_with"],
    "parts of load_tree and save_bytes": [
        "wb_open", "wb_file_root", "wb_file_format", "wb_file_size", "wb_file_bytes", "wb_file_metadata", "wb_file_array", "wb_record_kind_of",
        "wb_record_type", "wb_record_count", "wb_record_at", "wb_record_name", "wb_record_get", "wb_record_dtype", "wb_record_ndim", "wb_record_size",
        "wb_record_bytes", "wb_record_bool", "wb_record_integer", "wb_record_real", "wb_record_text", "wb_record_array",
    ],
    "device_properties(device) and show_devices() tell it, once the device is open": ["wb_device_properties_at", "wb_device_choice"],
    "function(value, pullback, x) differentiates what Python computes, as long as it computes with arrays": ["wb_host_function_make"],
    "weber convert --from=torch prints it": ["wb_torch_table", "wb_torch_table_back"],
    "its shift has no size that the generator knows": ["wb_identity_init_with"],
}
