"""Quantised matrices from the definitions of their layouts, in plain Python: codes, scales and zero points are drawn, the weights follow by
the format's formula, and the codes are packed. Nothing here unpacks anything. Blocks of GGUF files are in gguf_files.py.
"""
import json
from dataclasses import dataclass

import numpy as np
import torch

NAME = "model.layers.0.mlp.down_proj.weight"
MODULE = NAME.removesuffix(".weight")


@dataclass
class Quantised:
    """`weight`: the numbers in the type that the format computes them in."""

    config: dict
    tensors: dict
    weight: torch.Tensor


def pack(codes, bits):
    """Codes along the first dimension as words of 32 bits, low bits first, each column one long whole number."""
    assert codes.min() >= 0 and codes.max() < 2**bits
    digits = (codes.numpy()[:, None] >> np.arange(bits)[:, None]) & 1  # [codes, bits, columns], the lowest first
    digits = digits.reshape(-1, codes.shape[1]).T.astype(np.uint8)
    whole = np.ascontiguousarray(digits[:, : digits.shape[1] // 32 * 32])
    words = np.packbits(whole, axis=1, bitorder="little").view(np.dtype("<i4"))
    return torch.from_numpy(np.ascontiguousarray(words.T))


def scales_of(random, shape, dtype):
    return (torch.rand(shape, generator=random) * 0.02 + 0.001).to(dtype)


def codes_of(random, shape, bits):
    return torch.randint(0, 2**bits, shape, generator=random)


def affine(codes, zeros, scales):
    """(code - zero point) * scale, in the scales' type; all [out, in]."""
    return (codes - zeros).to(scales.dtype) * scales


def gptq(seed, bits, group, order="in turn", version=1, symmetric=True, dtype=torch.float16, rows=64, columns=96, least_zero=1, desc_act=None):
    random = torch.Generator().manual_seed(seed)
    size = columns if group == -1 else group
    groups = -(-columns // size)
    codes = codes_of(random, (columns, rows), bits)
    zeros = torch.full((groups, rows), 2 ** (bits - 1)) if symmetric else torch.randint(least_zero, 2**bits, (groups, rows), generator=random)
    scales = scales_of(random, (groups, rows), dtype)
    g_idx = torch.arange(columns) // size
    if order == "mixed":
        g_idx = g_idx[torch.randperm(columns, generator=random)]
    tensors = {"qweight": pack(codes, bits), "scales": scales, "g_idx": g_idx.int()}
    if order == "absent":
        del tensors["g_idx"]
    tensors["qzeros"] = pack((zeros - int(version == 1)).T, bits).T.contiguous()
    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": order == "mixed" if desc_act is None else desc_act,
              "sym": symmetric, "checkpoint_format": "gptq" if version == 1 else "gptq_v2", "lm_head": False, "damp_percent": 0.01}
    weight = affine(codes.T, zeros[g_idx].T, scales[g_idx].T)
    return Quantised(config, {f"{MODULE}.{key}": value for key, value in tensors.items()}, weight)


def gptq_of_word_arithmetic(seed):
    """A file whose first format was made by taking ones from whole words, and where zero points of 0 borrow from their neighbours."""
    made = gptq(seed, 4, 32, version=2, symmetric=False, least_zero=0)
    words = made.tensors[f"{MODULE}.qzeros"].numpy().view(np.uint32)
    with np.errstate(over="ignore"):
        made.tensors[f"{MODULE}.qzeros"] = torch.from_numpy((words - np.uint32(0x11111111)).view(np.int32))
    made.config["checkpoint_format"] = "gptq"
    return made


def gptq_of_three_bits_by_words(seed):
    """As GPTQModel wrote symmetric files of 3 bits for years: three words' constants are taken from the words."""
    made = gptq(seed, 3, 32, version=2)
    words = made.tensors[f"{MODULE}.qzeros"].numpy().view(np.uint32).copy()
    with np.errstate(over="ignore"):
        for i, ones in enumerate((0x24924924, 0x92492492, 0x49249249)):
            words[:, i::3] -= np.uint32(ones)
    made.tensors[f"{MODULE}.qzeros"] = torch.from_numpy(words.view(np.int32))
    made.config["checkpoint_format"] = "gptq"
    return made


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def pack_awq(codes):
    """[n, out] as [n, out / 8]: the place i of a word has its output AWQ_ORDER[i]."""
    words = np.zeros((codes.shape[0], codes.shape[1] // 8), dtype=np.uint32)
    for word in range(words.shape[1]):
        for place, output in enumerate(AWQ_ORDER):
            words[:, word] |= codes[:, 8 * word + output].numpy().astype(np.uint32) << np.uint32(4 * place)
    return torch.from_numpy(words.view(np.int32))


def awq(seed, group, dtype=torch.float16, rows=48, columns=128, constant_zeros=False):
    random = torch.Generator().manual_seed(seed)
    size = columns if group == -1 else group
    groups = -(-columns // size)
    codes, zeros = codes_of(random, (columns, rows), 4), codes_of(random, (groups, rows), 4)
    if constant_zeros:
        zeros = torch.full_like(zeros, 7)
    scales = scales_of(random, (groups, rows), dtype)
    spread = [value.repeat_interleave(size, 0)[:columns].T for value in (zeros, scales)]
    config = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm", "modules_to_not_convert": None}
    tensors = {"qweight": pack_awq(codes), "qzeros": pack_awq(zeros), "scales": scales}
    return Quantised(config, {f"{MODULE}.{key}": value for key, value in tensors.items()}, affine(codes.T, *spread))


def float8(code):
    """The number of an E4M3 code: a sign, four bits of an exponent with a bias of 7, three of a mantissa."""
    sign, exponent, mantissa = -1.0 if code & 128 else 1.0, (code >> 3) & 15, code & 7
    return sign * (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


FLOAT8 = torch.tensor([0.0 if code & 127 == 127 else float8(code) for code in range(256)])


def float8_codes(random, shape):
    codes = torch.randint(0, 254, shape, generator=random)
    return (codes + (codes >= 127)).to(torch.uint8)  # without 127 and 255, which are NaN


def fp8(seed, layout, rows=80, columns=200, dtype=torch.float32):
    """`layout`: "blocks" of 32 x 64 that do not divide the matrix, "rows", "one", "one of no dimension", "one of fbgemm's rows"."""
    random = torch.Generator().manual_seed(seed)
    codes = float8_codes(random, (rows, columns))
    shapes = {"blocks": (-(-rows // 32), -(-columns // 64)), "rows": (rows, 1), "fbgemm": (rows, 1), "one": (1,), "scalar": ()}
    scales = scales_of(random, shapes[layout], dtype)
    spread = scales.float()
    if layout == "blocks":
        spread = spread.repeat_interleave(32, 0)[:rows].repeat_interleave(64, 1)[:, :columns]
    config = {"quant_method": "fbgemm_fp8" if layout == "fbgemm" else "fp8", "activation_scheme": "dynamic"}
    if layout == "blocks":
        config |= {"weight_block_size": [32, 64], "fmt": "e4m3"}
    tensors = {NAME: codes.view(torch.float8_e4m3fn), f"{NAME}_scale{'_inv' if layout == 'blocks' else ''}": scales}
    tensors[f"{MODULE}.input_scale"] = torch.tensor(1.0)
    return Quantised(config, tensors, FLOAT8[codes.int()] * spread)


NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495,
       0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1.0]
FP4 = [sign * number / 12 + 0.0 for sign in (1, -1) for number in (0, 0.0625, 8, 12, 4, 6, 2, 3)]  # no -0


def bitsandbytes_4(seed, kind, nested, rows=96, columns=192, block=64):
    random = torch.Generator().manual_seed(seed)
    table = torch.tensor(NF4 if kind == "nf4" else FP4)
    codes = codes_of(random, (rows * columns,), 4)
    blocks = -(-len(codes) // block)
    scales = scales_of(random, (blocks,), torch.float32)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": [rows, columns]}
    tensors = {"absmax": scales, "quant_map": table}
    if nested:
        places = torch.randint(0, 256, (blocks,), generator=random).to(torch.uint8)
        map_ = torch.linspace(-1, 1, 256)
        outer = scales_of(random, (-(-blocks // 256),), torch.float32)
        state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.0123}
        tensors = {"absmax": places, "quant_map": table, "nested_absmax": outer, "nested_quant_map": map_}
        scales = map_[places.int()] * outer.repeat_interleave(256)[:blocks] + torch.tensor(0.0123)
    tensors[f"quant_state.bitsandbytes__{kind}"] = torch.frombuffer(bytearray(json.dumps(state).encode()), dtype=torch.uint8)
    packed = (codes[0::2] * 16 + codes[1::2]).to(torch.uint8)[:, None]
    weight = (table[codes] * scales.repeat_interleave(block)[: len(codes)]).view(rows, columns)
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": kind,
              "bnb_4bit_use_double_quant": nested, "bnb_4bit_compute_dtype": "bfloat16", "llm_int8_threshold": 6.0}
    return Quantised(config, {NAME: packed, **{f"{NAME}.{key}": value for key, value in tensors.items()}}, weight)


def bitsandbytes_8(seed, rows=40, columns=90):
    random = torch.Generator().manual_seed(seed)
    codes = torch.randint(-127, 128, (rows, columns), generator=random).to(torch.int8)
    scales = scales_of(random, (rows,), torch.float32)
    weight = codes.float() * scales[:, None] * torch.tensor(7.874015718698502e-3)
    return Quantised({"load_in_8bit": True, "load_in_4bit": False}, {NAME: codes, f"{MODULE}.SCB": scales}, weight)


def compressed(seed, bits, symmetric, group, dtype=torch.bfloat16, rows=40, columns=96, order=None):
    """compressed-tensors' packed numbers: 2^(bits - 1) is added to codes and zero points before they are packed."""
    random = torch.Generator().manual_seed(seed)
    codes = codes_of(random, (rows, columns), bits)
    groups = columns // group
    zeros = codes_of(random, (rows, groups), bits) if not symmetric else torch.full((rows, groups), 2 ** (bits - 1))
    scales = scales_of(random, (rows, groups), dtype)
    tensors = {"weight_packed": pack(codes.T, bits).T.contiguous(), "weight_scale": scales, "weight_shape": torch.tensor([rows, columns])}
    if not symmetric:
        tensors["weight_zero_point"] = pack(zeros, bits)
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group", "group_size": group}
    g_idx = torch.arange(columns) // group
    if order is not None:
        weights["actorder"] = "group"
        g_idx = g_idx[torch.randperm(columns, generator=random)] if order == "mixed" else g_idx
        tensors["weight_g_idx"] = (g_idx if order == "mixed" else torch.full_like(g_idx, -1)).int()
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed", "ignore": ["lm_head"],
              "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}
    weight = affine(codes, zeros[:, g_idx], scales[:, g_idx])
    return Quantised(config, {f"{MODULE}.{key}": value for key, value in tensors.items()}, weight)


FLOAT4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def mxfp4(seed, name, experts, rows, columns):
    """Of all experts in one tensor; `weight` is [experts, rows, columns]. A code has its sign first, two codes lie in a byte, low half first."""
    random = torch.Generator().manual_seed(seed)
    codes = codes_of(random, (experts, rows, columns // 32, 32), 4)
    exponents = torch.randint(119, 124, (experts, rows, columns // 32), generator=random)
    blocks = (codes[..., 0::2] + 16 * codes[..., 1::2]).to(torch.uint8)
    numbers = torch.tensor(FLOAT4)[codes % 8] * torch.where(codes >= 8, -1.0, 1.0)
    weight = (numbers * 2.0 ** (exponents - 127).float()[..., None]).reshape(experts, rows, columns)
    skipped = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    tensors = {f"{name}_blocks": blocks, f"{name}_scales": exponents.to(torch.uint8)}
    return Quantised({"quant_method": "mxfp4", "modules_to_not_convert": skipped}, tensors, weight)


VARIANTS = {
    **{f"gptq-{bits}": (gptq, dict(seed=bits, bits=bits, group=32)) for bits in (2, 3, 4, 8)},
    **{f"gptq-{bits}-mixed": (gptq, dict(seed=10 + bits, bits=bits, group=32, order="mixed", symmetric=False)) for bits in (2, 3, 4, 8)},
    **{f"gptq-{bits}-v2": (gptq, dict(seed=20 + bits, bits=bits, group=32, version=2, symmetric=False, least_zero=0)) for bits in (2, 3, 4, 8)},
    "gptq-4-asymmetric": (gptq, dict(seed=31, bits=4, group=16, symmetric=False)),
    "gptq-4-one-group": (gptq, dict(seed=32, bits=4, group=-1, symmetric=False)),
    "gptq-4-ragged": (gptq, dict(seed=33, bits=4, group=40, symmetric=False)),
    "gptq-4-absent-order": (gptq, dict(seed=34, bits=4, group=32, order="absent")),
    "gptq-4-act-order-in-turn": (gptq, dict(seed=35, bits=4, group=32, desc_act=True)),
    "gptq-4-bf16": (gptq, dict(seed=36, bits=4, group=32, dtype=torch.bfloat16, order="mixed")),
    "gptq-8-f32": (gptq, dict(seed=37, bits=8, group=32, dtype=torch.float32, symmetric=False)),
    "gptq-4-borrowed": (gptq_of_word_arithmetic, dict(seed=38)),
    "gptq-3-by-words": (gptq_of_three_bits_by_words, dict(seed=39)),
    "awq": (awq, dict(seed=41, group=32)),
    "awq-one-group": (awq, dict(seed=42, group=-1)),
    "awq-bf16": (awq, dict(seed=43, group=64, dtype=torch.bfloat16)),
    "awq-constant": (awq, dict(seed=44, group=32, constant_zeros=True)),
    **{f"fp8-{layout}": (fp8, dict(seed=50, layout=layout)) for layout in ("blocks", "rows", "fbgemm", "one", "scalar")},
    "fp8-blocks-of-bf16-scales": (fp8, dict(seed=51, layout="blocks", dtype=torch.bfloat16)),
    **{f"bitsandbytes-{kind}{'-nested' if nested else ''}": (bitsandbytes_4, dict(seed=60, kind=kind, nested=nested))
       for kind in ("nf4", "fp4") for nested in (False, True)},
    "bitsandbytes-nf4-nested-across-rows": (bitsandbytes_4, dict(seed=61, kind="nf4", nested=True, rows=222, columns=94)),
    "bitsandbytes-int8": (bitsandbytes_8, dict(seed=62)),
    **{f"compressed-{bits}{'' if symmetric else '-asymmetric'}": (compressed, dict(seed=70, bits=bits, symmetric=symmetric, group=32))
       for bits in (4, 8) for symmetric in (True, False)},
    "compressed-4-mixed": (compressed, dict(seed=72, bits=4, symmetric=True, group=32, order="mixed")),
    "compressed-8-absent-order": (compressed, dict(seed=73, bits=8, symmetric=False, group=32, order="absent")),
    "compressed-4-f16": (compressed, dict(seed=71, bits=4, symmetric=False, group=24, dtype=torch.float16)),
}


def make(variant):
    function, options = VARIANTS[variant]
    return function(**options)
