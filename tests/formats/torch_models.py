#!/usr/bin/env python3
"""tests/formats/torch_models.py FOLDER: PyTorch's modules that Weber loads without a table, and what they make of an input.

Into FOLDER: for each module NAME.pt and NAME.safetensors (which has no order), NAME.npz with inputs x1, x2 and the result y. MODULES says which
model of Weber's has the same form; tests/formats/peers.py loads it. Runs in the Python that has torch; the list alone needs none."""
import sys

# name: PyTorch's module, Weber's structure, shapes of the inputs (a number: words up to it)
MODULES = {
    "linear": ("nn.Linear(3, 4)", "Dense(3 => 4)", [(5, 3)]),
    "linear_without_bias": ("nn.Linear(3, 4, bias=False)", "Dense(3 => 4; bias=false)", [(5, 3)]),
    "conv1d": ("nn.Conv1d(2, 4, 3)", "Conv((3,), 2 => 4)", [(2, 2, 9)]),
    "conv2d": ("nn.Conv2d(2, 4, (3, 2), stride=2, padding=1)", "Conv((2, 3), 2 => 4; stride=2, pad=1)", [(2, 2, 9, 8)]),
    "conv3d": ("nn.Conv3d(2, 3, 2)", "Conv((2, 2, 2), 2 => 3)", [(1, 2, 4, 5, 3)]),
    "conv_in_groups": ("nn.Conv2d(4, 6, 3, groups=2)", "Conv((3, 3), 4 => 6; groups=2)", [(1, 4, 5, 6)]),
    "depthwise": ("nn.Conv2d(4, 8, 3, groups=4)", "DepthwiseConv((3, 3), 4 => 8)", [(1, 4, 5, 6)]),
    "cross_cor": ("nn.Conv2d(2, 4, 3)", "CrossCor((3, 3), 2 => 4)", [(1, 2, 5, 6)]),
    "conv_transpose": ("nn.ConvTranspose2d(3, 4, (3, 2), stride=2)", "ConvTranspose((2, 3), 3 => 4; stride=2)", [(2, 3, 4, 5)]),
    "conv_transpose_in_groups": ("nn.ConvTranspose2d(4, 6, 3, groups=2)", "ConvTranspose((3, 3), 4 => 6; groups=2)", [(1, 4, 4, 5)]),
    "embedding": ("nn.Embedding(7, 4)", "Embedding(7 => 4)", [(7, 3, 5)]),
    "embedding_bag": ("nn.EmbeddingBag(7, 4, mode='mean')", "EmbeddingBag(7 => 4, mean)", [(7, 3, 5)]),
    "bilinear": ("nn.Bilinear(3, 4, 5)", "Bilinear((3, 4) => 5)", [(6, 3), (6, 4)]),
    "batchnorm": ("nn.BatchNorm2d(3)", "BatchNorm(3)", [(2, 3, 4, 5)]),
    "batchnorm_plain": ("nn.BatchNorm1d(3, affine=False)", "BatchNorm(3; affine=false)", [(4, 3)]),
    "layernorm": ("nn.LayerNorm(6)", "LayerNorm(6)", [(4, 6)]),
    "layernorm_of_two": ("nn.LayerNorm((3, 6))", "LayerNorm(6, 3)", [(4, 3, 6)]),
    "groupnorm": ("nn.GroupNorm(2, 6)", "GroupNorm(6, 2)", [(2, 6, 4, 5)]),
    "instancenorm": ("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", "InstanceNorm(3; affine=true, track_stats=true)", [(2, 3, 4, 5)]),
    "rmsnorm": ("RMSNorm(6)", "RMSNorm(6)", [(4, 6)]),
    "rnn": ("First(nn.RNN(3, 4, batch_first=True))", "RNN(3 => 4; bias_h=true)", [(5, 2, 3)]),
    "lstm": ("First(nn.LSTM(3, 4, batch_first=True))", "LSTM(3 => 4; bias_h=true)", [(5, 2, 3)]),
    "lstm_without_bias": ("First(nn.LSTM(3, 4, bias=False, batch_first=True))", "LSTM(3 => 4; bias=false)", [(5, 2, 3)]),
    "gru": ("First(nn.GRU(3, 4, batch_first=True))", "GRU(3 => 4; bias_h=true)", [(5, 2, 3)]),
    "rnn_of_two": ("First(nn.RNN(4, 4, num_layers=2, batch_first=True))", "Chain(RNN(4 => 4; bias_h=true), RNN(4 => 4; bias_h=true))", [(5, 2, 4)]),
    **{f"{kind.lower()}_both_ways": (f"First(nn.{kind}(3, 4, num_layers=2, bidirectional=True, batch_first=True))", "Chain(" + ", ".join(
        f"Bidirectional({kind}({size} => 4; bias_h=true), {kind}({size} => 4; bias_h=true))" for size in (3, 8)) + ")", [(5, 2, 3)])
       for kind in ("RNN", "LSTM", "GRU")},
    "two_lstms": ("Steps(a=First(nn.LSTM(4, 4, batch_first=True)), b=First(nn.LSTM(4, 4, batch_first=True)))", "Chain(a = LSTM(4 => 4; bias_h=true), b = LSTM(4 => 4; bias_h=true))", [(5, 2, 4)]),
    "rnn_cell": ("nn.RNNCell(3, 4)", "RNNCell(3 => 4; bias_h=true)", [(2, 3)]),
    "lstm_cell": ("First(nn.LSTMCell(3, 4))", "LSTMCell(3 => 4; bias_h=true)", [(2, 3)]),
    "gru_cell": ("nn.GRUCell(3, 4)", "GRUCell(3 => 4; bias_h=true)", [(2, 3)]),
    "attention": ("Itself(nn.MultiheadAttention(8, 2, batch_first=True))", "MultiHeadAttention(8; nheads=2, bias=true)", [(5, 3, 8)]),
    "attention_without_bias": ("Itself(nn.MultiheadAttention(8, 2, bias=False, batch_first=True))", "MultiHeadAttention(8; nheads=2)", [(5, 3, 8)]),
    "attention_of_others": ("Crosswise(nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True))", "MultiHeadAttention((8, 6, 6) => (8, 8) => 8; nheads=2, bias=true)",
                            [(3, 5, 8), (3, 4, 6)]),
    "attention_by_hand": ("Attention(8, 2, 'key', 'query', 'value', 'proj')", "MultiHeadAttention(8; nheads=2, bias=true)", [(5, 3, 8)]),
    "attention_as_in_gpt": ("Attention(8, 2, 'qkv', 'proj')", "MultiHeadAttention(8; nheads=2, bias=true)", [(5, 3, 8)]),
    **{f"encoder{'_norm_first' * first}": (f"nn.TransformerEncoderLayer(8, 2, 12, norm_first={first}, activation='gelu', batch_first=True)", f"ENCODER({first})", [(5, 3, 8)])
       for first in (False, True)},
    **{f"decoder{'_norm_first' * first}": (f"nn.TransformerDecoderLayer(8, 2, 12, norm_first={first}, activation='gelu', batch_first=True)", f"DECODER({first})", [(3, 5, 8), (3, 4, 8)])
       for first in (False, True)},
    "encoder_of_two": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, norm_first=True, activation='gelu', batch_first=True), 2, nn.LayerNorm(8))",
                       "Chain(ENCODER(True), ENCODER(True), LayerNorm(8))", [(5, 3, 8)]),
    "gpt": ("GPT(8, 2, 2)", "Chain(Embedding(7 => 8), PositionEmbedding(5 => 8), GPT, GPT, LayerNorm(8), Dense(8 => 7; bias=false))", [(7, 3, 5)]),
    "gpt2": ("GPT(8, 2, 2, GPT2Block)", "Chain(Embedding(7 => 8), PositionEmbedding(5 => 8), GPT, GPT, LayerNorm(8), Dense(8 => 7; bias=false))", [(7, 3, 5)]),
    "bert": ("nn.Sequential(BertLayer(8, 2, 12), BertLayer(8, 2, 12))", "Chain(ENCODER(False), ENCODER(False))", [(3, 5, 8)]),
    "lenet": ("nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5), nn.Tanh(), nn.Linear(5, 5), nn.Linear(5, 5))",
              "Chain(Conv((3, 3), 1 => 3), BatchNorm(3, relu), MaxPool((2, 2)), flatten, Dense(36 => 5, tanh), Dense(5 => 5), Dense(5 => 5))", [(4, 1, 8, 10)]),
    "names": ("Steps(conv1=nn.Conv2d(1, 4, 3), bn1=nn.BatchNorm2d(4), conv2=nn.Conv2d(4, 4, 3), bn2=nn.BatchNorm2d(4), flat=nn.Flatten(), fc1=nn.Linear(96, 6), fc2=nn.Linear(6, 6), fc10=nn.Linear(6, 6))",
              "Chain(Conv((3, 3), 1 => 4), BatchNorm(4), Conv((3, 3), 4 => 4), BatchNorm(4), flatten, Dense(96 => 6), Dense(6 => 6), Dense(6 => 6))", [(2, 1, 8, 10)]),
    "parallel_module": ("nn.DataParallel(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))", "Chain(Dense(3 => 4, relu), Dense(4 => 2))", [(5, 3)]),
    "resnet": ("ResNet()", "RESNET", [(2, 3, 16, 16)]),
    "vision_transformer": ("ViT(8, 2)", "Chain(PatchEmbedding((4, 4), 3 => 8; image=8), ClassToken(8), PositionEmbedding(5 => 8), ENCODER(True), LayerNorm(8), FirstToken(), "
                           "Dense(8 => 5))", [(2, 3, 8, 8)]),
    "convnext_block": ("ConvNeXtBlock(4)", "SkipConnection(Chain(CrossCor((3, 3), 4 => 4; groups=4, pad=1), Pixelwise(Chain(LayerNorm(4), Dense(4 => 8, gelu_erf), Dense(8 => 4))), "
                       "Scale(1, 1, 4; bias=false)), +)", [(2, 4, 5, 6)]),
    "bottleneck": ("Bottleneck(4, 4)", "BOTTLENECK", [(2, 4, 6, 6)]),
}

ATTENTION = "MultiHeadAttention(8; nheads=2, bias=true%s)"
FEED = "Chain(Dense(8 => %d, gelu_erf), Dense(%d => 8))"
CAUSAL = ", causal=true"


def encoder(first, hidden=12, more=""):
    return (f"TransformerEncoderBlock(norm_first={str(first).lower()}, attention = {ATTENTION % more}, norm1 = LayerNorm(8), feed_forward = {FEED % (hidden, hidden)}, "
            "norm2 = LayerNorm(8), dropout = Dropout(0))")


def decoder(first):
    return (f"TransformerDecoderBlock(norm_first={str(first).lower()}, attention = {ATTENTION % ''}, norm1 = LayerNorm(8), cross_attention = {ATTENTION % ''}, "
            f"norm2 = LayerNorm(8), feed_forward = {FEED % (12, 12)}, norm3 = LayerNorm(8), dropout = Dropout(0))")


def conv(size, sizes, more):
    return f"Conv(({size}, {size}), {sizes[0]} => {sizes[1]}; bias=false{more})"


def basic(inner, outer, stride):
    main = (f"Chain({conv(3, (inner, outer), f', pad=1, stride={stride}')}, BatchNorm({outer}, relu), {conv(3, (outer, outer), ', pad=1')}, BatchNorm({outer}))")
    if inner == outer and stride == 1:
        return f"SkipConnection({main}, +), relu"
    return f"Parallel(+, Chain({conv(1, (inner, outer), f', stride={stride}')}, BatchNorm({outer})), {main}), relu"


def structure(text):
    """The text with what stands for more of it."""
    text = text.replace("RESNET", f"Chain({conv(3, (3, 4), ', pad=1')}, BatchNorm(4, relu), {basic(4, 4, 1)}, {basic(4, 4, 1)}, {basic(4, 8, 2)}, {basic(8, 8, 1)}, "
                        "GlobalMeanPool, flatten, Dense(8 => 10))")
    main = f"Chain({conv(1, (4, 4), '')}, BatchNorm(4, relu), {conv(3, (4, 4), ', pad=1')}, BatchNorm(4, relu), {conv(1, (4, 16), '')}, BatchNorm(16))"
    text = text.replace("BOTTLENECK", f"Chain(Parallel(+, {main}, Chain({conv(1, (4, 16), '')}, BatchNorm(16))), relu)")
    for first in (False, True):
        text = text.replace(f"ENCODER({first})", encoder(first)).replace(f"DECODER({first})", decoder(first))
    return text.replace("GPT", encoder(True, 32, CAUSAL))


if __name__ == "__main__":
    import numpy
    try:
        import torch
    except ImportError as error:
        sys.exit(print(error, file=sys.stderr) or 77)
    from safetensors.torch import save_file
    nn = torch.nn

    class Wrapper(nn.Module):
        """Its module's names are the state's."""

        def __init__(self, module):
            super().__init__()
            self.module = module

    class First(Wrapper):
        def forward(self, x):
            return self.module(x)[0]

    class Itself(Wrapper):
        def forward(self, x):
            return self.module(x, x, x)[0]

    class Crosswise(Wrapper):
        def forward(self, x, memory):
            return self.module(x, memory, memory)[0]

    class RMSNorm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Steps(nn.Module):
        def __init__(self, **steps):
            super().__init__()
            for name, module in steps.items():
                setattr(self, name, module)

        def forward(self, x):
            for module in self.children():
                x = module(x)
            return x

    class Attention(nn.Module):
        """Of (batch, time, features), its Linears made in the order of their names."""

        def __init__(self, size, heads, *names, is_causal=False):
            super().__init__()
            self.names, self.heads, self.is_causal = names, heads, is_causal
            for name in names:
                setattr(self, name, nn.Linear(size, 3 * size if name == "qkv" else size))

        def forward(self, x):
            if "qkv" in self.names:
                q, k, v = self.qkv(x).chunk(3, -1)
            else:
                q, k, v = self.query(x), self.key(x), self.value(x)
            return self.proj(attend(q, k, v, self.heads, self.is_causal))

    def attend(q, k, v, heads, is_causal=False):
        q, k, v = (a.unflatten(-1, (heads, -1)).transpose(1, 2) for a in (q, k, v))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if is_causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2)

    class BertLayer(nn.Module):
        """The names of Hugging Face's."""

        def __init__(self, size, heads, hidden):
            super().__init__()
            self.heads = heads
            output = {"dense": nn.Linear(size, size), "LayerNorm": nn.LayerNorm(size)}
            self.attention = nn.ModuleDict({"self": nn.ModuleDict({name: nn.Linear(size, size) for name in ("query", "key", "value")}), "output": nn.ModuleDict(output)})
            self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, hidden)})
            self.output = nn.ModuleDict({"dense": nn.Linear(hidden, size), "LayerNorm": nn.LayerNorm(size)})

        def forward(self, x):
            heads, output = self.attention["self"], self.attention["output"]
            y = attend(heads["query"](x), heads["key"](x), heads["value"](x), self.heads)
            x = output["LayerNorm"](x + output["dense"](y))
            y = self.output["dense"](nn.functional.gelu(self.intermediate["dense"](x)))
            return self.output["LayerNorm"](x + y)

    class Block(nn.Module):
        def __init__(self, size, heads):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
            self.attn = Attention(size, heads, "qkv", "proj", is_causal=True)
            self.mlp = nn.ModuleDict({"fc": nn.Linear(size, 4 * size), "proj": nn.Linear(4 * size, size)})

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp["proj"](nn.functional.gelu(self.mlp["fc"](self.ln_2(x))))

    class GPT(nn.Module):
        def __init__(self, size, heads, count, block=None):
            super().__init__()
            self.transformer = nn.ModuleDict({"wte": nn.Embedding(7, size), "wpe": nn.Embedding(5, size),
                                              "h": nn.ModuleList([(block or OrderedBlock)(size, heads) for _ in range(count)]), "ln_f": nn.LayerNorm(size)})
            self.lm_head = nn.Linear(size, 7, bias=False)

        def forward(self, x):
            h = self.transformer["wte"](x) + self.transformer["wpe"].weight[:x.shape[1]]
            for block in self.transformer["h"]:
                h = block(h)
            return self.lm_head(self.transformer["ln_f"](h))

    class OrderedBlock(Block):
        """ln_1, attn, ln_2, mlp, as GPT-2 has them."""

        def __init__(self, size, heads):
            super().__init__(size, heads)
            for name in ("ln_2", "mlp"):
                self._modules[name] = self._modules.pop(name)
            self._modules = {name: self._modules[name] for name in ("ln_1", "attn", "ln_2", "mlp")}

    class Conv1D(nn.Module):
        """Hugging Face's, of transformers/pytorch_utils.py."""

        def __init__(self, inner, outer):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.empty(inner, outer)), nn.Parameter(torch.empty(outer))

        def forward(self, x):
            return x @ self.weight + self.bias

    class GPT2Block(nn.Module):
        """The names of Hugging Face's."""

        def __init__(self, size, heads):
            super().__init__()
            self.heads = heads
            self.ln_1 = nn.LayerNorm(size)
            self.attn = nn.ModuleDict({"c_attn": Conv1D(size, 3 * size), "c_proj": Conv1D(size, size)})
            self.ln_2 = nn.LayerNorm(size)
            self.mlp = nn.ModuleDict({"c_fc": Conv1D(size, 4 * size), "c_proj": Conv1D(4 * size, size)})

        def forward(self, x):
            x = x + self.attn["c_proj"](attend(*self.attn["c_attn"](self.ln_1(x)).chunk(3, -1), self.heads, True))
            return x + self.mlp["c_proj"](nn.functional.gelu(self.mlp["c_fc"](self.ln_2(x))))

    def branch(inner, outer, size, stride=1, padding=0):
        return nn.Conv2d(inner, outer, size, stride, padding, bias=False)

    class BasicBlock(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.conv1, self.bn1 = branch(inner, outer, 3, stride, 1), nn.BatchNorm2d(outer)
            self.conv2, self.bn2 = branch(outer, outer, 3, 1, 1), nn.BatchNorm2d(outer)
            self.downsample = nn.Sequential(branch(inner, outer, 1, stride), nn.BatchNorm2d(outer)) if inner != outer else None

        def forward(self, x):
            y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            return torch.relu(y + (self.downsample(x) if self.downsample else x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = branch(3, 4, 3, 1, 1), nn.BatchNorm2d(4)
            self.layer1 = nn.Sequential(BasicBlock(4, 4, 1), BasicBlock(4, 4, 1))
            self.layer2 = nn.Sequential(BasicBlock(4, 8, 2), BasicBlock(8, 8, 1))
            self.fc = nn.Linear(8, 10)

        def forward(self, x):
            x = self.layer2(self.layer1(torch.relu(self.bn1(self.conv1(x)))))
            return self.fc(x.mean((2, 3)))

    class Bottleneck(nn.Module):
        def __init__(self, inner, size):
            super().__init__()
            self.conv1, self.bn1 = branch(inner, size, 1), nn.BatchNorm2d(size)
            self.conv2, self.bn2 = branch(size, size, 3, 1, 1), nn.BatchNorm2d(size)
            self.conv3, self.bn3 = branch(size, 4 * size, 1), nn.BatchNorm2d(4 * size)
            self.downsample = nn.Sequential(branch(inner, 4 * size, 1), nn.BatchNorm2d(4 * size))

        def forward(self, x):
            y = self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))))
            return torch.relu(y + self.downsample(x))

    class ViT(nn.Module):
        def __init__(self, size, heads):
            super().__init__()
            self.cls_token, self.pos_embed = nn.Parameter(torch.empty(1, 1, size)), nn.Parameter(torch.empty(1, 5, size))
            self.conv_proj = nn.Conv2d(3, size, 4, 4)
            self.encoder = nn.TransformerEncoderLayer(size, heads, 12, norm_first=True, activation="gelu", batch_first=True)
            self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, 5)

        def forward(self, x):
            x = self.conv_proj(x).flatten(2).transpose(1, 2)
            x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
            return self.head(self.norm(self.encoder(x))[:, 0])

    class ConvNeXtBlock(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.layer_scale = nn.Parameter(torch.empty(size, 1, 1))
            self.conv, self.norm = nn.Conv2d(size, size, 3, padding=1, groups=size), nn.LayerNorm(size)
            self.fc1, self.fc2 = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

        def forward(self, x):
            y = self.norm(self.conv(x).permute(0, 2, 3, 1))
            y = self.fc2(nn.functional.gelu(self.fc1(y))).permute(0, 3, 1, 2)
            return x + self.layer_scale * y

    def randomise(module):
        for name, x in module.state_dict().items():
            if "num_batches" not in name:
                x.copy_(torch.rand_like(x) + 0.5 if "running_var" in name else 0.4 * torch.randn_like(x))

    def input_of(shape, words):
        if words:
            return torch.randint(shape[0], shape[1:])
        return torch.randn(shape)

    torch.manual_seed(5)
    folder = sys.argv[1]
    for name, (code, text, shapes) in MODULES.items():
        module = eval(code)
        with torch.no_grad():
            randomise(module)
        module.eval()
        inputs = [input_of(shape, text.startswith(("Embedding", "Chain(Embedding"))) for shape in shapes]
        y = module(*inputs).detach()
        inner = module.module if isinstance(module, Wrapper) else module
        torch.save(inner.state_dict(), f"{folder}/{name}.pt")
        save_file({key: x.contiguous() for key, x in inner.state_dict().items()}, f"{folder}/{name}.safetensors")
        numpy.savez(f"{folder}/{name}.npz", y=y.numpy(), **{f"x{i}": x.numpy() for i, x in enumerate(inputs, 1)})
