"""Peak resident memory of `lancet generate` on a random Llama of 1.1 B weights: as it is, quantised while it is loaded, and from a
bitsandbytes checkpoint of the same matrices.

VmHWM of the process: what it held in memory at its fullest, with the program and torch (the last line shows these alone). Files are read
by `pread`, so the page cache that holds them is no part of it. The models are made by another process, since a process begins with
the peak of the one that starts it.

.venv/bin/python bench/quantised_memory.py [--folder DIR] [--lancet build/lancet] [--tokens 4]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
LAYERS, D, FFN, HEADS, KV_HEADS, VOCABULARY, BLOCK = 22, 2048, 5632, 32, 4, 32000, 64
CONFIG = dict(
    architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=D, intermediate_size=FFN, num_hidden_layers=LAYERS, eos_token_id=2,
    num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, vocab_size=VOCABULARY, max_position_embeddings=2048, rms_norm_eps=1e-5,
    rope_theta=10000.0, tie_word_embeddings=False, torch_dtype="bfloat16",
)  # fmt: skip
BITSANDBYTES = dict(
    quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=False,
    bnb_4bit_compute_dtype="bfloat16", llm_int8_threshold=6.0,
)  # fmt: skip


def matrices():
    kv = D // HEADS * KV_HEADS
    for layer in range(LAYERS):
        for name, rows, columns in (
            ("self_attn.q_proj", D, D), ("self_attn.k_proj", kv, D), ("self_attn.v_proj", kv, D), ("self_attn.o_proj", D, D),
            ("mlp.gate_proj", FFN, D), ("mlp.up_proj", FFN, D), ("mlp.down_proj", D, FFN),
        ):  # fmt: skip
            yield f"model.layers.{layer}.{name}.weight", rows, columns


def nf4(name, rows, columns):
    """A matrix as bitsandbytes writes it, and the same unpacked, to bf16."""
    import torch

    sys.path.insert(0, str(ROOT / "tests" / "oracle"))
    from quantised import NF4

    codes = torch.randint(0, 16, (rows * columns,), dtype=torch.uint8)
    scales = (0.5 + torch.rand(rows * columns // BLOCK)) * columns**-0.5
    table = torch.tensor(NF4)
    record = json.dumps({"quant_type": "nf4", "blocksize": BLOCK, "dtype": "bfloat16", "shape": [rows, columns]})
    weight = (table[codes.int()].view(-1, BLOCK) * scales[:, None]).view(rows, columns).bfloat16()
    return weight, {
        name: (codes[0::2] * 16 + codes[1::2])[:, None], f"{name}.absmax": scales, f"{name}.quant_map": table,
        f"{name}.quant_state.bitsandbytes__nf4": torch.frombuffer(bytearray(record.encode()), dtype=torch.uint8),
    }  # fmt: skip


def make_models(folder):
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    plain = {f"model.layers.{layer}.{norm}_layernorm.weight": torch.ones(D, dtype=torch.bfloat16)
             for layer in range(LAYERS) for norm in ("input", "post_attention")}  # fmt: skip
    plain["model.norm.weight"] = torch.ones(D, dtype=torch.bfloat16)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        plain[name] = (torch.randn(VOCABULARY, D) * 0.02).bfloat16()
    packed = dict(plain)
    for name, rows, columns in matrices():
        plain[name], parts = nf4(name, rows, columns)
        packed |= parts
    for name, tensors, config in (("bf16", plain, CONFIG), ("nf4", packed, CONFIG | {"quantization_config": BITSANDBYTES})):
        (folder / name).mkdir()
        save_file(tensors, folder / name / "model.safetensors", metadata={"format": "pt"})
        (folder / name / "config.json").write_text(json.dumps(config))
        shutil.copy(ROOT / "data" / "demo-model" / "tokenizer.json", folder / name)


def measure(command):
    """Peak resident bytes, seconds and answer of a process."""
    read, write = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.execv(command[0], command)
    os.close(write)
    answer = b"".join(iter(lambda: os.read(read, 65536), b""))
    _, status, usage = os.wait4(child, 0)
    assert status == 0, command
    return usage.ru_maxrss * 1024, time.monotonic() - begun, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="/tmp", help="where the models (2.8 GB) are made, and removed again")
    parser.add_argument("--lancet", default=str(ROOT / "build" / "lancet"))
    parser.add_argument("--tokens", type=int, default=4)
    parser.add_argument("--make", type=pathlib.Path, help="make the models in this folder, and do nothing else")
    arguments = parser.parse_args()
    if arguments.make:
        return make_models(arguments.make)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = pathlib.Path(folder)
        subprocess.run([sys.executable, __file__, "--make", folder], check=True)
        answers = {}
        for model, quantise_base in (("bf16", "none"), ("bf16", "int8"), ("bf16", "fp8"), ("bf16", "nf4"), ("nf4", "none")):
            command = [arguments.lancet, "generate", "--model", str(folder / model), "--quantise-base", quantise_base, "--prompt", "The river is",
                       "--tokens", str(arguments.tokens), "--devices", "cpu", "--quiet", "--json"]  # fmt: skip
            peak, seconds, answer = measure(command)
            answers[model, quantise_base] = json.loads(answer).get("text", answer.decode())
            print(f"{model} checkpoint, --quantise-base {quantise_base}: peak {peak / 1e9:.2f} GB, {seconds:.1f} s")
        assert answers["nf4", "none"] == answers["bf16", "none"], "the quantised checkpoint has the same weights"
    print(f"the program alone: {measure([arguments.lancet, 'presets'])[0] / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
