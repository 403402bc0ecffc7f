"""What PyTorch's and NumPy's names are here: said by the AttributeError that they raise."""
from typing import Any, Callable

from ._weber import Array, Layer, Optimiser

_NN = "nn has no counterpart: layers, losses and rules are in weber itself"
MODULE = {
    "one_hot": "onehot(y, classes)", "dropout": "dropout_op(x, p=0.5)",
    "tensor": "array([1.0, 2.0])", "as_tensor": "asarray", "from_numpy": "array", "randn": "normal((2, 3))", "rand": "uniform((2, 3))", 
    "randperm": "permutation(n)", "manual_seed": "seed(1)", "cat": "concat([x, x], axis=0)", "no_grad": "nothing: gradients are of functions; stop_gradient(x) makes a constant",
    "Tensor": "Array", "nn": _NN, "optim": _NN, "Linear": "Dense(2, 3)", "ModuleList": "LayerList, or a list that is an attribute of a Module", "ModuleDict": "LayerDict, or a dict that is an attribute of a Module",
    "ParameterList": "LayerList, or a list of Parameters that is an attribute of a Module", "ParameterDict": "LayerDict, or a dict of Parameters that is an attribute of a Module", "Sequential": "Chain(a, b)", "Conv1d": "CrossCor((3,), 1, 8, pad=1)",
    "Conv2d": "CrossCor((3, 3), 1, 8, pad=1)", "Conv3d": "CrossCor((3, 3, 3), 1, 8, pad=1)", "ConvTranspose2d": "ConvTranspose((3, 3), 1, 8)", "ReLU": "relu", "GELU": "gelu_erf", "Sigmoid": "sigmoid",
    "Tanh": "tanh", "SiLU": "swish", "silu": "swish", "Softmax": "softmax", "log_softmax": "logsoftmax", "LeakyReLU": "leakyrelu", "leaky_relu": "leakyrelu", "ELU": "elu", "BatchNorm1d": "BatchNorm(8)", "BatchNorm2d": "BatchNorm(8)",
    "InstanceNorm2d": "InstanceNorm(8)", "MaxPool2d": "MaxPool((2, 2))", "MaxPool1d": "MaxPool((2,))", "AvgPool2d": "MeanPool((2, 2))", "AdaptiveAvgPool2d": "AdaptiveMeanPool((1, 1))", "AdaptiveMaxPool2d": "AdaptiveMaxPool((1, 1))",
    "MultiheadAttention": "MultiHeadAttention(64, heads=8)", "TransformerEncoderLayer": "TransformerEncoder(64, heads=8)", "TransformerDecoderLayer": "TransformerDecoder(64, heads=8)",
    "scaled_dot_product_attention": "attention(q, k, v)", "CrossEntropyLoss": "logitcrossentropy(p, y)", "cross_entropy": "logitcrossentropy(p, y)", "MSELoss": "mse(p, y)", "mse_loss": "mse(p, y)", "L1Loss": "mae(p, y)",
    "l1_loss": "mae(p, y)", "BCELoss": "binarycrossentropy(p, y)", "BCEWithLogitsLoss": "logitbinarycrossentropy(p, y)", "binary_cross_entropy_with_logits": "logitbinarycrossentropy(p, y)", "NLLLoss": "crossentropy(p, y)", "nll_loss": "crossentropy(p, y)",
    "KLDivLoss": "kldivergence(p, y)", "CTCLoss": "ctc_loss(p, y)", "SmoothL1Loss": "huber_loss(p, y)", "SGD": "Descent(0.1), or Momentum(0.1, 0.9)", "Dataset": "any object with __len__ and __getitem__",
    "TensorDataset": "DataLoader(x, y, batchsize=64)", "cuda": "device('CUDA:0')", "backward": "gradient(f, x), or train_step(loss, model, optimiser, x, y)", "autograd": "gradient, grad, jacobian, hvp",
    "view": "reshape", "permute": "permute_dims(x, (1, 0))", "unsqueeze": "expand_dims(x, 0)", "mm": "a @ b", "bmm": "a @ b", "gather": "take_along_axis(x, indices, axis)", "index_select": "take(x, indices, axis)",
    "masked_fill": "where(mask, value, x)", "repeat_interleave": "repeat(x, n, axis)", "eq": "equal", "lt": "less", "gt": "greater", "mul": "multiply", "div": "divide", "sub": "subtract", "neg": "negative", "chunk": "split",
    "std_mean": "std and mean", "topk": "top_k", "flatten": "x.flatten()", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "vmap": "axes: functions work on batches",
    "relu_": "relu", "checkpoint": "recompute(f, x)", "compile": "nothing: calls are planned and fused as they are", "lr_scheduler": "train(..., schedules={'eta': schedule_cosine(...)}), or adjust(optimiser, eta)",
    "array_equal": "(a == b).all()", "ndarray": "Array", "random": "normal, uniform, permutation", "linalg": "norm, matmul, outer, einsum: there are no decompositions",
}
ARRAY = {
    "view": "reshape", "permute": "weber.permute_dims(x, (1, 0))", "unsqueeze": "weber.expand_dims(x, 0)", "dim": "x.ndim", "numel": "x.size", "float": "x.astype('float32')", "double": "x.astype('float64')",
    "half": "x.astype('float16')", "long": "x.astype('int64')", "int": "x.astype('int32')", "bool": "x.astype('bool')", "type": "x.astype", "cpu": "x.to('CPU')", "cuda": "x.to('CUDA')", "detach": "weber.stop_gradient(x)",
    "clone": "nothing: arrays do not change", "contiguous": "nothing: arrays have one layout", "backward": "gradient(f, x), or train_step(loss, model, optimiser, x, y)", "grad": "gradient(f, x)",
    "requires_grad": "nothing: gradients are of functions", "requires_grad_": "nothing: gradients are of functions", "zero_": "weber.zeros_like(x)", "fill_": "weber.full_like(x, value)", "add_": "x = x + y", "mul_": "x = x * y",
    "expand": "weber.broadcast_to(x, shape)", "gather": "x.take_along_axis(indices, axis)", "index_select": "x.take(indices, axis)", "masked_fill": "weber.where(mask, value, x)", "topk": "weber.top_k(x, k)", "ravel": "x.flatten()",
    "repeat_interleave": "x.repeat(n, axis)", "scatter_": "x.at[key].set(value)", "t": "x.T", "mm": "a @ b", "matmul": "a @ b", "amax": "x.max", "amin": "x.min", "itemsize": "x.dtype.itemsize", "strides": "nothing: arrays have one layout",
}
LAYER = {
    "train": "nothing: train_step, withgradient and train set training mode; weber.train_mode(m) fixes it", "eval": "nothing: a call is in test mode outside of train_step, withgradient and train; weber.test_mode(m) fixes it",
    "state_dict": "m.parameters(all=True), or weber.save(path, m)", "load_state_dict": "weber.load(path, m), or m[path] = x", "named_parameters": "m.parameters().items()", "named_modules": "m.modules().items()", "children": "list(m), or m.modules()",
    "zero_grad": "nothing: gradients are results of withgradient", "apply": "weber.map_model(f, m)", "double": "m.to(weber.float64)", "half": "m.to(weber.float16)", "float": "m.to(weber.float32)", "cuda": "m.to('CUDA')", "cpu": "m.to('CPU')",
    "requires_grad_": "weber.set_trainable(model, path, False), weber.freeze(optimiser, path)", "add_module": "self.name = layer in a weber.Module", "register_buffer": "self.name = weber.State(x)", "register_parameter": "self.name = weber.Parameter(x)", "num_parameters": "weber.parameter_count(m)",
    "summary": "weber.summary(m, (1, 3, 32, 32))", "append": "weber.Chain(*m, layer)", "step": "train_step(loss, model, optimiser, x, y), or update(optimiser, model, gradients)",
}
OPTIMISER = {
    "step": "update(optimiser, model, gradients), or train_step(loss, model, optimiser, x, y)", "zero_grad": "nothing: gradients are results of withgradient", "param_groups": "setup(rule, model, paths={'*.bias': other_rule})",
    "state_dict": "weber.save(path, optimiser=o), or pickle", "load_state_dict": "weber.load(path, optimiser=o)", "lr": "weber.optimiser_setting(o, None, 'eta'), weber.adjust(o, 0.01)",
}


def hint(names: dict[str, str], what: str) -> Callable[[Any, str], Any]:
    """A __getattr__ that says what the name is here."""

    def missing(self: Any, name: str) -> Any:
        text = "%s has no '%s'" % (what, name)
        raise AttributeError("%s; here it is %s" % (text, names[name]) if name in names else text, name=name, obj=self)

    return missing


def _layer_attribute(self: Layer, name: str) -> Any:
    """layer.weight: its array or layer of this name."""
    if not name.startswith("_") and name not in LAYER:
        try:
            return self[name]
        except (ValueError, RuntimeError):
            pass
    return hint(LAYER, type(self).__name__ if type(self) is not Layer else "a %s" % self.type)(self, name)


def _set_layer_attribute(self: Layer, name: str, value: Any) -> None:
    """layer.weight = x, as layer["weight"] = x."""
    if name.startswith("__"):
        object.__setattr__(self, name, value)
    else:
        self[name] = value


def _no_rate(self: Any, rate: Any) -> None:
    raise AttributeError("an Optimiser's rate is set by weber.adjust(optimiser, %r)" % (rate,))


setattr(Layer, "__setattr__", _set_layer_attribute)
setattr(Array, "__getattr__", hint(ARRAY, "an Array"))
setattr(Layer, "__getattr__", _layer_attribute)
setattr(Optimiser, "lr", property(lambda self: hint(OPTIMISER, "an Optimiser")(self, "lr"), _no_rate))
