"""GGUF files by the format's definition: written in plain Python, numbers of blocks in numpy, and a Hugging Face checkpoint as llama.cpp's
converter lays it out. The test of blocks compares these decoders with the gguf package's where that is installed.

Sources: ggml-org/ggml, docs/gguf.md and src/ggml-common.h; llama.cpp, gguf-py/gguf/constants.py (names) and convert_hf_to_gguf.py.
"""
import json
import struct
from pathlib import Path

import numpy as np
import torch
from gguf_codebooks import codebook
from safetensors.torch import load_file

ALIGNMENT = 32
U32, F32, BOOL, TEXT, LIST, I32 = 4, 6, 7, 8, 9, 5

# number, numbers of a block, bytes of a block
TYPES = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
    "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136), "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66), "MXFP4": (39, 32, 17),
    "NVFP4": (40, 64, 36), "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74), "IQ2_S": (22, 256, 82), "IQ3_XXS": (18, 256, 98),
    "IQ3_S": (21, 256, 110), "IQ1_S": (19, 256, 50), "IQ1_M": (29, 256, 56),
}
PLAIN = ("F32", "F16", "BF16")
BLOCKS = [name for name in TYPES if name not in PLAIN]
CODEBOOK = ("IQ1", "IQ2", "IQ3")
# where a block has its scales in f16; IQ1_M has its own in four parts, and MXFP4 and NVFP4 have theirs in bytes
HALVES = dict.fromkeys(BLOCKS, (0,)) | {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "TQ1_0": (52,)}
HALVES |= {"TQ2_0": (64,), "Q4_1": (0, 2), "Q5_1": (0, 2), "IQ1_M": (), "MXFP4": (), "NVFP4": ()}


# ---- the container


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def value(data):
    """Type and bytes of a value of metadata; whole numbers are u32, lists have texts, i32 or f32."""
    if isinstance(data, bool):
        return struct.pack("<IB", BOOL, data)
    if isinstance(data, int):
        return struct.pack("<II", U32, data)
    if isinstance(data, float):
        return struct.pack("<If", F32, data)
    if isinstance(data, (str, bytes)):
        return struct.pack("<I", TEXT) + text(data)
    if all(isinstance(item, str) for item in data):
        return struct.pack("<IIQ", LIST, TEXT, len(data)) + b"".join(map(text, data))
    kind, form = (I32, "i") if all(isinstance(item, int) for item in data) else (F32, "f")
    return struct.pack("<IIQ", LIST, kind, len(data)) + struct.pack(f"<{len(data)}{form}", *data)


def gguf_bytes(metadata, tensors, version=3):
    """`tensors`: {name: (type, shape as torch has it, bytes)}."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(text(key) + value(data) for key, data in metadata.items())
    offset = 0
    for name, (kind, shape, data) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", size) for size in reversed(shape))
        head += struct.pack("<IQ", TYPES[kind][0], offset)
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    pad = lambda data: data + b"\0" * (-len(data) % ALIGNMENT)  # noqa: E731
    return pad(head) + b"".join(pad(data) for _, _, data in tensors.values())


# ---- numbers


def half(blocks, at):
    return blocks[:, at : at + 2].copy().view(np.float16).astype(np.float32)


def f32(array):
    return array.astype(np.float32)


def low_and_high(codes):
    return np.concatenate([codes & 15, codes >> 4], axis=1).astype(np.int32)


def bits_of(words):
    """[n, 32] of words of 32 bits."""
    return (words.copy().view(np.uint32) >> np.arange(32, dtype=np.uint32) & 1).astype(np.int32)


def six_bits(scales):
    """[n, 8] scales and least numbers of 12 bytes."""
    first, second, third = (scales[:, i : i + 4].astype(np.int32) for i in (0, 4, 8))
    scale = np.concatenate([first & 63, (third & 15) | (first >> 2 & 0x30)], axis=1)
    least = np.concatenate([second & 63, (third >> 4) | (second >> 2 & 0x30)], axis=1)
    return f32(scale), f32(least)


def shifted(codes, shifts, mask):
    """[n, bytes] -> [n, shifts * bytes]: all bytes by the first shift, then by the second."""
    return np.concatenate([codes.astype(np.int32) >> shift & mask for shift in shifts], axis=1)


def q2_codes(codes):
    return np.concatenate([shifted(codes[:, at : at + 32], (0, 2, 4, 6), 3) for at in (0, 32)], axis=1)


def by_parts(scales, codes, parts):
    return (f32(scales)[:, :, None] * f32(codes).reshape(len(codes), parts, -1)).reshape(len(codes), -1)


def decode_k(kind, b):
    n = len(b)
    if kind == "Q2_K":
        scale, least = half(b, 80) * f32(b[:, :16] & 15), half(b, 82) * f32(b[:, :16] >> 4)
        return by_parts(scale, q2_codes(b[:, 16:80]), 16) - np.repeat(least, 16, axis=1)
    if kind == "Q3_K":
        low, high = low_and_high(b[:, 96:104]), shifted(b[:, 104:108], (0, 2, 4, 6), 3)
        codes = q2_codes(b[:, 32:96]) - 4 * (1 - shifted(b[:, :32], range(8), 1))
        return by_parts(half(b, 108) * f32((low | high << 4) - 32), codes, 16)
    if kind in ("Q4_K", "Q5_K"):
        scale, least = six_bits(b[:, 4:16])
        at = 16 if kind == "Q4_K" else 48
        codes = np.concatenate([shifted(b[:, i : i + 32], (0, 4), 15) for i in range(at, at + 128, 32)], axis=1)
        if kind == "Q5_K":
            codes |= shifted(b[:, 16:48], range(8), 1) << 4
        return by_parts(half(b, 0) * scale, codes, 8) - np.repeat(half(b, 2) * least, 32, axis=1)
    if kind == "Q6_K":
        low = np.concatenate([shifted(b[:, at : at + 64], (0, 4), 15) for at in (0, 64)], axis=1)
        high = np.concatenate([shifted(b[:, at : at + 32], (0, 2, 4, 6), 3) for at in (128, 160)], axis=1)
        return by_parts(half(b, 208) * f32(b[:, 192:208].view(np.int8)), (low | high << 4) - 32, 16)
    if kind == "IQ4_XS":
        low = shifted(b[:, 4:8], (0, 4), 15).reshape(n, 2, 4).transpose(0, 2, 1).reshape(n, 8)
        high = (b[:, 2:4].copy().view(np.uint16).astype(np.int32) >> np.arange(0, 16, 2)) & 3
        codes = np.concatenate([low_and_high(b[:, at : at + 16]) for at in range(8, 136, 16)], axis=1)
        return by_parts(half(b, 0) * f32((low | high << 4) - 32), IQ4[codes], 8)
    if kind == "TQ1_0":
        parts = [((b[:, i : i + size].astype(np.int32) * 3**p & 255) * 3 >> 8) - 1 for i, size in ((0, 32), (32, 16)) for p in range(5)]
        parts += [((b[:, 48:52].astype(np.int32) * 3**p & 255) * 3 >> 8) - 1 for p in range(4)]
        return half(b, 52) * f32(np.concatenate(parts, axis=1))
    return half(b, 64) * f32(q2_codes(b[:, :64]) - 1)  # TQ2_0


def nibbles(b):
    """[n, bytes] -> [n, 2 * bytes]: the low half of each byte, then its high half."""
    return np.stack([b & 15, b >> 4], axis=2).reshape(len(b), -1).astype(np.int32)


def pairs_of_bits(b):
    """[n, bytes] -> [n, 4 * bytes]."""
    return (b[:, :, None].astype(np.int32) >> np.arange(0, 8, 2) & 3).reshape(len(b), -1)


def each_bit(b):
    """[n, bytes] -> [n, 8 * bytes]."""
    return (b[:, :, None].astype(np.int32) >> np.arange(8) & 1).reshape(len(b), -1)


def words(b, dtype):
    return b.copy().view(dtype).astype(np.int64)


def even_signs(sevens):
    """[n, groups] of 7 bits -> [n, 8 * groups] of bits: the eighth makes the sum of each 8 even."""
    seven = sevens[:, :, None] >> np.arange(7) & 1
    return np.concatenate([seven, seven.sum(axis=2, keepdims=True) % 2], axis=2).reshape(len(sevens), -1)


def signs_and_multiples(b):
    """[n, 32] bytes: in each word of 32 bits 4 times 7 signs, and a multiple of the scale in the highest 4."""
    word = words(b, np.uint32)
    return even_signs((word[:, :, None] >> np.array([0, 7, 14, 21]) & 127).reshape(len(b), -1)), word >> 28


def decode_codebook(kind, b):
    """IQ1, IQ2 and IQ3: codes [n, codes], scales [n, parts], signs [n, 256]."""
    points = codebook("IQ1" if kind.startswith("IQ1") else kind)
    if kind == "IQ1_M":
        word = words(b[:, 48:56], np.uint16)
        scale = (word >> 12 << np.arange(0, 16, 4)).sum(axis=1, keepdims=True).astype(np.uint16).view(np.float16).astype(np.float32)
        multiple = (word[:, :, None] >> np.array([0, 3, 6, 9]) & 7).reshape(len(b), -1)
        high = nibbles(b[:, 32:48])
        codes, is_down = b[:, :32] | (high & 7) << 8, high >> 3 == 1
    elif kind == "IQ1_S":
        word = words(b[:, 34:50], np.uint16)
        scale, multiple = half(b, 0), word >> 12 & 7
        codes = b[:, 2:34] | (word[:, :, None] >> np.array([0, 3, 6, 9]) & 7).reshape(len(b), -1) << 8
        is_down = np.repeat(word >> 15 == 1, 4, axis=1)
    if kind.startswith("IQ1"):
        shifted = f32(points[codes]) + np.where(is_down, np.float32(-0.125), np.float32(0.125))[:, :, None]
        own = scale * f32(2 * multiple + 1)
        return np.repeat(own, 256 // own.shape[1], axis=1) * shifted.reshape(len(b), 256)
    if kind == "IQ2_XXS":
        groups = b[:, 2:].reshape(len(b), 8, 8)
        codes = groups[:, :, :4].reshape(len(b), 32)
        signs, multiple = signs_and_multiples(groups[:, :, 4:].reshape(len(b), 32))
    elif kind == "IQ2_XS":
        word = words(b[:, 2:66], np.uint16)
        codes, signs, multiple = word & 511, even_signs(word >> 9), nibbles(b[:, 66:])
    elif kind == "IQ2_S":
        codes, signs, multiple = b[:, 2:34] | pairs_of_bits(b[:, 66:74]) << 8, each_bit(b[:, 34:66]), nibbles(b[:, 74:])
    elif kind == "IQ3_XXS":
        codes = b[:, 2:66]
        signs, multiple = signs_and_multiples(b[:, 66:])
    else:  # IQ3_S
        codes, signs, multiple = b[:, 2:66] | each_bit(b[:, 66:74]) << 8, each_bit(b[:, 74:106]), nibbles(b[:, 106:])
    # scales: IQ2 (m + 1/2) / 4, IQ3_XXS (m + 1/2) / 2, IQ3_S 1 + 2 m
    own = half(b, 0) * f32(1 + 2 * multiple) if kind == "IQ3_S" else half(b, 0) * (f32(multiple) + np.float32(0.5))
    own = own * np.float32({"IQ2": 0.25, "IQ3": 0.5}[kind[:3]]) if kind != "IQ3_S" else own
    numbers = np.repeat(own, 256 // own.shape[1], axis=1) * f32(points[codes].reshape(len(b), 256))
    return np.where(signs == 1, -numbers, numbers)


IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


def decode_blocks(kind, b):
    """[n, bytes of a block] u8 -> [n, numbers] f32."""
    if kind.startswith(CODEBOOK):
        return decode_codebook(kind, b)
    if TYPES[kind][1] == 256:
        return decode_k(kind, b)
    if kind == "Q8_0":
        return half(b, 0) * f32(b[:, 2:].view(np.int8))
    if kind == "MXFP4":
        e = b[:, :1].astype(np.uint32)
        scale = np.where(e < 2, np.uint32(0x00200000) << np.minimum(e, 1), (np.maximum(e, 1) - 1) << 23).astype(np.uint32)
        return scale.view(np.float32) * f32(E2M1[low_and_high(b[:, 1:])])
    if kind == "NVFP4":  # scales of E4M3 without a sign, halved; its two numbers that are none are 0 and 240
        magnitude = torch.from_numpy(b[:, :4] & 127).view(torch.float8_e4m3fn).float().numpy()
        scale = np.where(b[:, :4] == 127, 0, np.where(b[:, :4] == 255, 480, magnitude)).astype(np.float32) * np.float32(0.5)
        codes = np.concatenate([low_and_high(b[:, at : at + 8]) for at in range(4, 36, 8)], axis=1)
        return by_parts(scale, E2M1[codes], 4)
    if kind == "IQ4_NL":
        return half(b, 0) * f32(IQ4[low_and_high(b[:, 2:])])
    at = {"Q4_0": 2, "Q4_1": 4, "Q5_0": 6, "Q5_1": 8}[kind]
    codes = low_and_high(b[:, at:])
    if kind.startswith("Q5"):
        codes |= bits_of(b[:, at - 4 : at]) << 4
    if kind.endswith("1"):
        return half(b, 0) * f32(codes) + half(b, 2)
    return half(b, 0) * f32(codes - (16 if kind == "Q5_0" else 8))


def decode(kind, shape, data):
    """A tensor's numbers, f32."""
    _, numbers, size = TYPES[kind]
    if kind in PLAIN:
        dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
        return torch.frombuffer(bytearray(data), dtype=dtype).float().reshape(shape)
    blocks = np.frombuffer(data, np.uint8).reshape(-1, size)
    return torch.from_numpy(decode_blocks(kind, blocks).astype(np.float32).reshape(shape).copy())


def put_scale_in_parts(b, scale_bits):
    """The scale of IQ1_M, whose 16 bits are the highest 4 of 4 words of a block."""
    b[:, 49:56:2] = b[:, 49:56:2] & 15 | (scale_bits[:, None] >> np.arange(0, 16, 4) & 15).astype(np.uint8) << 4


def damaged_blocks(kind, data):
    """The first block's scale is no number."""
    b = np.frombuffer(data, np.uint8).reshape(-1, TYPES[kind][2]).copy()
    if kind == "MXFP4":
        b[0, :2] = 255, 7  # 2^127 times 12
    elif kind == "IQ1_M":
        put_scale_in_parts(b[:1], np.array([0x7E00], np.uint16))
    else:
        b[0, HALVES[kind][0] : HALVES[kind][0] + 2] = 0x00, 0x7E
    return b.tobytes()


def random_blocks(kind, shape, seed):
    """Bytes of a matrix of any codes, with scales like a model's."""
    _, numbers, size = TYPES[kind]
    random = np.random.default_rng(seed)
    n = int(np.prod(shape)) // numbers
    b = random.integers(0, 256, (n, size), dtype=np.uint8)
    top = {256: 2e-5, 64: 0, 32: 4e-4}[numbers] * (50 if kind.startswith("TQ") else 1) / (8 if kind.startswith("IQ4") else 1)
    scales = (random.uniform(0.2, 1, n) * top).astype(np.float16)
    for at in HALVES[kind]:
        b[:, at : at + 2] = scales.view(np.uint8).reshape(n, 2)
        scales = (random.uniform(0.2, 1, n) * top).astype(np.float16)
    if kind == "IQ1_M":
        put_scale_in_parts(b, scales.view(np.uint16))
    if kind == "MXFP4":
        b[:, 0] = random.integers(115, 121, n)
    return b.tobytes()


def plain_bytes(tensor, kind="F32"):
    dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    return tensor.to(dtype).contiguous().view(torch.uint8).numpy().tobytes()


# ---- a checkpoint as llama.cpp's converter lays it out

LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}
SANDWICH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
GLM4 = {"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}
EXPERTS = {"mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp"}
EXPERTS |= {f"mlp.shared_expert.{x}_proj": f"ffn_{x}_shexp" for x in ("gate", "up", "down")}
OF_EXPERT = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down", "w1": "gate", "w3": "up", "w2": "down"}
OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
OUTSIDE |= {"model.final_layernorm": "output_norm", "model.embedding_norm": "token_embd_norm"}
PHI = {"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
LFM2 = {"operator_norm": "attn_norm", "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "ffn_norm": "ffn_norm"}
LFM2 |= {"self_attn.out_proj": "attn_output", "feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down", "feed_forward.w3": "ffn_up"}
LFM2 |= {f"conv.{x}": f"shortconv.{x}" for x in ("conv", "in_proj", "out_proj")}
OUTSIDE |= {"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm", "embed_out": "output"}
OUTSIDE |= {"gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm", "transformer.word_embeddings": "token_embd"}
GPT2 = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output"}
GPTJ = {"ln_1": "attn_norm", "attn.out_proj": "attn_output", "mlp.fc_in": "ffn_up", "mlp.fc_out": "ffn_down"}
GPTJ |= {f"attn.{x}_proj": f"attn_{x}" for x in "qkv"}
NEOX = {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
FALCON = {"self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up"}
FALCON |= {"mlp.dense_4h_to_h": "ffn_down", "ln_attn": "attn_norm_2", "ln_mlp": "attn_norm"}
QWEN35 = {"post_attention_layernorm": "post_attention_norm", "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate"}
QWEN35 |= {"linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.conv1d": "ssm_conv1d"}
QWEN35 |= {"linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out", "linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias"}
DEEPSEEK = {f"self_attn.{x}": f"attn_{y}" for x, y in (("q_a_proj", "q_a"), ("q_a_layernorm", "q_a_norm"), ("q_b_proj", "q_b"))}
DEEPSEEK |= {"self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.kv_b_proj": "attn_kv_b"}
DEEPSEEK |= {"mlp.gate": "ffn_gate_inp"} | {f"mlp.shared_experts.{x}_proj": f"ffn_{x}_shexp" for x in ("gate", "up", "down")}
GPT_OSS = {"post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp"}

# config.json's model_type: the architecture, and the names that differ
ARCHITECTURES = {
    "llama": ("llama", {}), "mistral": ("llama", {}), "mixtral": ("llama", EXPERTS), "granite": ("granite", {}), "smollm3": ("smollm3", {}),
    "qwen2": ("qwen2", {}), "qwen3": ("qwen3", {}), "qwen2_moe": ("qwen2moe", EXPERTS), "qwen3_moe": ("qwen3moe", EXPERTS), "gemma": ("gemma", {}),
    "gemma2": ("gemma2", SANDWICH), "gemma3_text": ("gemma3", SANDWICH), "olmo2": ("olmo2", SANDWICH), "exaone4": ("exaone4", SANDWICH),
    "phi3": ("phi3", {}), "glm4": ("glm4", GLM4), "cohere": ("command-r", {}), "cohere2": ("cohere2", {}), "starcoder2": ("starcoder2", {}),
    "stablelm": ("stablelm", {}), "nemotron": ("nemotron", {}), "phi": ("phi2", PHI), "lfm2": ("lfm2", LFM2),
    "gpt2": ("gpt2", GPT2), "gpt_neox": ("gptneox", NEOX), "gptj": ("gptj", GPTJ), "falcon": ("falcon", FALCON), "gpt_oss": ("gpt-oss", GPT_OSS),
    "deepseek_v2": ("deepseek2", DEEPSEEK), "deepseek_v3": ("deepseek2", DEEPSEEK), "glm4_moe_lite": ("deepseek2", DEEPSEEK),
    "qwen3_5_text": ("qwen35", QWEN35), "qwen3_5_moe_text": ("qwen35moe", EXPERTS | QWEN35),
}
KEYS = {
    "num_hidden_layers": "block_count", "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv", "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon", "layer_norm_eps": "attention.layer_norm_epsilon", "norm_eps": "attention.layer_norm_epsilon",
    "norm_epsilon": "attention.layer_norm_epsilon", "head_dim": "attention.key_length", "sliding_window": "attention.sliding_window",
    "num_experts": "expert_count", "num_local_experts": "expert_count", "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length", "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    "attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping", "logit_scale": "logit_scale",
    "embedding_multiplier": "embedding_scale", "residual_multiplier": "residual_scale", "attention_multiplier": "attention.scale",
    "logits_scaling": "logit_scale", "use_parallel_residual": "use_parallel_residual", "conv_L_cache": "shortconv.l_cache",
    "linear_conv_kernel_dim": "ssm.conv_kernel", "linear_key_head_dim": "ssm.state_size", "linear_num_key_heads": "ssm.group_count",
    "linear_num_value_heads": "ssm.time_step_rank",
    "q_lora_rank": "attention.q_lora_rank", "kv_lora_rank": "attention.kv_lora_rank", "first_k_dense_replace": "leading_dense_block_count",
    "n_routed_experts": "expert_count", "n_shared_experts": "expert_shared_count", "n_group": "expert_group_count",
    "topk_group": "expert_group_used_count", "routed_scaling_factor": "expert_weights_scale",
    "n_layer": "block_count", "n_embd": "embedding_length", "n_inner": "feed_forward_length", "n_head": "attention.head_count",
    "n_positions": "context_length", "layer_norm_epsilon": "attention.layer_norm_epsilon", "ffn_hidden_size": "feed_forward_length",
}
FLOATS = {"routed_scaling_factor", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon", "logit_scale", "embedding_multiplier", "residual_multiplier"}
FLOATS |= {"attention_multiplier", "logits_scaling", "attn_logit_softcapping", "final_logit_softcapping"}


PLUS_ONE = ("gemma", "gemma2", "gemma3_text", "nemotron", "qwen3_5_text", "qwen3_5_moe_text")


def turned(weight, heads):
    """Rows of a head in two halves, row by row."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


def fused(weight, heads, kv_heads):
    """The queries of all heads, then their keys, then their values; the checkpoint has those of each head of keys together."""
    each = weight.reshape(kv_heads, heads // kv_heads + 2, -1, *weight.shape[1:])
    return torch.cat([part.reshape(-1, *weight.shape[1:]) for part in (each[:, :-2], each[:, -2], each[:, -1])])


def falcon_kv_heads(config):
    if config.get("new_decoder_architecture"):
        return config["num_kv_heads"]
    return 1 if config.get("multi_query", True) else config["num_attention_heads"]


def tiled(config, weight, begin=0):
    """Rows of heads of values: the first of each head of keys, then the second of each; rows before `begin` stay."""
    keys, own = config["linear_num_key_heads"], weight[begin:]
    order = np.arange(config["linear_num_value_heads"]).reshape(keys, -1).T.flatten()
    heads = own.reshape(len(order), -1, *own.shape[1:])
    return torch.cat([weight[:begin], heads[torch.from_numpy(order)].reshape(own.shape)])


def delta_rule(config, weights):
    """Qwen3.5: heads of values in another order, and decays as they are used."""
    found, kept, before = {}, {}, 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
    for name, tensor in weights.items():
        part = name.partition("linear_attn.")[2]
        if part in ("A_log", "dt_bias", "in_proj_a.weight", "in_proj_b.weight", "in_proj_z.weight"):
            tensor = tiled(config, tensor)
        elif part == "out_proj.weight":
            tensor = tiled(config, tensor.t()).t().contiguous()
        elif part in ("in_proj_qkv.weight", "conv1d.weight"):
            tensor = tiled(config, tensor.squeeze(1), before)
        if part in ("A_log", "dt_bias"):
            found[f"blk.{name.split('.')[2]}.{QWEN35['linear_attn.' + part]}"] = -tensor.exp() if part == "A_log" else tensor
        else:
            kept[name] = tensor
    return found, kept


def latent_attention(config, weights, older):
    """DeepSeek: keys and values of heads apart, and keys turned, if the file is not of an older llama.cpp; the router's biases."""
    found, kept = {}, {}
    for name, tensor in weights.items():
        layer = (*name.split("."), "")[2]
        if name.endswith("e_score_correction_bias"):
            found[f"blk.{layer}.exp_probs_b.bias"] = tensor
        elif name.endswith("kv_b_proj.weight") and not older:
            heads = tensor.reshape(config["num_attention_heads"], -1, config["kv_lora_rank"])
            found[f"blk.{layer}.attn_k_b.weight"] = heads[:, : config["qk_nope_head_dim"]].transpose(1, 2).contiguous()
            found[f"blk.{layer}.attn_v_b.weight"] = heads[:, config["qk_nope_head_dim"] :].contiguous()
        else:
            kept[name] = tensor
    return found, kept


def split_gpt_oss(weights):
    """Sinks, and experts with gate and up apart: all numbers of even places in the checkpoint are gates."""
    found, rest = {}, {}
    for name, tensor in weights.items():
        layer = (*name.split("."), "")[2]
        if name.endswith("sinks"):
            found[f"blk.{layer}.attn_sinks.weight"] = tensor
        elif "experts.gate_up_proj" in name:
            end = "bias" if name.endswith("bias") else "weight"
            for i, part in enumerate(("gate", "up")):
                own = tensor[..., i::2]
                found[f"blk.{layer}.ffn_{part}_exps.{end}"] = own if end == "bias" else own.transpose(1, 2).contiguous()
        elif "experts.down_proj" in name:
            is_bias = name.endswith("bias")
            found[f"blk.{layer}.ffn_down_exps.{'bias' if is_bias else 'weight'}"] = tensor if is_bias else tensor.transpose(1, 2).contiguous()
        else:
            rest[name] = tensor
    return found, rest


def llama3_factors(rope, size):
    original, factor = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for i in range(0, size, 2):
        wave = 2 * np.pi * rope["rope_theta"] ** (i / size)
        smooth = (original / wave - low) / (high - low)
        factors.append(1 if wave < original / high else factor if wave > original / low else 1 / ((1 - smooth) / factor + smooth))
    return torch.tensor(factors, dtype=torch.float32)


def add_lfm2(config, metadata):
    """Heads of keys by layer, and the MLP's size as it is in the end."""
    ffn = config["intermediate_size"]
    if config.get("block_auto_adjust_ff_dim", True):
        ffn = int(config.get("block_ffn_dim_multiplier", 1.0) * int(2 * ffn / 3))
        ffn = -(-ffn // config["block_multiple_of"]) * config["block_multiple_of"]
    heads = [config["num_key_value_heads"] if kind == "full_attention" else 0 for kind in config["layer_types"]]
    metadata |= {"lfm2.feed_forward_length": ffn, "lfm2.attention.head_count_kv": heads}
    metadata["lfm2.attention.layer_norm_rms_epsilon"] = metadata.pop("lfm2.attention.layer_norm_epsilon")


def add_latents(config, rope, metadata, older):
    turned, rank = config["qk_rope_head_dim"], config["kv_lora_rank"]
    size, value = config["qk_nope_head_dim"] + turned, config["v_head_dim"]
    own = {"rope.dimension_count": turned, "attention.key_length": size if older else rank + turned, "attention.value_length": value if older else rank}
    if not older:
        own |= {"attention.key_length_mla": size, "attention.value_length_mla": value, "attention.head_count_kv": 1}
    own["expert_weights_norm"] = bool(config.get("norm_topk_prob"))
    own["expert_gating_func"] = 1 if config["model_type"] == "deepseek_v2" else 2
    if config["model_type"] == "glm4_moe_lite":
        own["leading_dense_block_count"] = config["mlp_layer_types"].count("dense")
    if "mscale_all_dim" in rope:
        own["rope.scaling.yarn_log_multiplier"] = 0.1 * rope["mscale_all_dim"]
    metadata |= {f"deepseek2.{key}": number for key, number in own.items()}


def metadata_of(config, older=False):
    name = ARCHITECTURES[config["model_type"]][0]
    metadata = {"general.architecture": name, "general.name": "test"}
    for key, own in KEYS.items():
        if config.get(key) is not None and (key != "sliding_window" or config[key] > 0):
            metadata[f"{name}.{own}"] = float(config[key]) if key in FLOATS else config[key]
    if config.get("head_dim"):
        metadata[f"{name}.attention.value_length"] = config["head_dim"]
    rope = config.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    head = config.get("head_dim") or config.get("hidden_size", config.get("n_embd")) // config.get("num_attention_heads", config.get("n_head"))
    if name != "gpt2":
        metadata[f"{name}.rope.freq_base"] = float(rope.get("rope_theta", config.get("rope_theta", 10000.0)))
        turned = int(head * rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0)))
        metadata[f"{name}.rope.dimension_count"] = config.get("rotary_dim", turned)
    if name in ("gpt2", "gptj"):
        metadata.setdefault(f"{name}.feed_forward_length", 4 * config["n_embd"])
    if name == "falcon":
        metadata["falcon.attention.head_count_kv"] = falcon_kv_heads(config)
    if name == "deepseek2":
        add_latents(config, rope, metadata, older)
    if name.startswith("qwen35"):
        metadata[f"{name}.ssm.inner_size"] = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        metadata[f"{name}.full_attention_interval"] = config["layer_types"].index("full_attention") + 1
        metadata[f"{name}.rope.dimension_sections"] = [*rope["mrope_section"], 0]
    if name == "gpt-oss":
        metadata["gpt-oss.expert_feed_forward_length"] = config["intermediate_size"]
    metadata |= {f"tokenizer.ggml.{key}_id": config[key + "_id"] for key in ("bos_token", "eos_token") if config.get(key + "_id") is not None}
    if rope.get("rope_type") == "linear":
        metadata |= {f"{name}.rope.scaling.type": "linear", f"{name}.rope.scaling.factor": float(rope["factor"])}
    if rope.get("rope_type") == "yarn":
        metadata |= {f"{name}.rope.scaling.type": "yarn", f"{name}.rope.scaling.factor": float(rope["factor"])}
        metadata[f"{name}.rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
        metadata |= {f"{name}.rope.scaling.yarn_{key}": float(rope[key]) for key in ("beta_fast", "beta_slow") if key in rope}
    if rope.get("rope_type") == "longrope":
        original = config["original_max_position_embeddings"]
        growth = 1 + np.log(config["max_position_embeddings"] / original) / np.log(original)
        metadata |= {f"{name}.rope.scaling.original_context_length": original, f"{name}.rope.scaling.attn_factor": float(np.sqrt(growth))}
    if name == "lfm2":
        add_lfm2(config, metadata)
    return metadata, rope, head


def tensors_of(config, weights, older=False):
    """{name in the file: tensor as the file has it}."""
    names = LAYER | ARCHITECTURES[config["model_type"]][1]
    tensors, experts = {}, {}
    if config["model_type"] == "gpt_oss":
        tensors, weights = split_gpt_oss(weights)
    if "kv_lora_rank" in config:
        tensors, weights = latent_attention(config, weights, older)
    if config["model_type"].startswith("qwen3_5"):
        tensors, weights = delta_rule(config, weights)
    for name, tensor in weights.items():
        stem, end = name.rsplit(".", 1)
        plus_one = config["model_type"] in PLUS_ONE and stem.endswith("norm") and end == "weight" and not stem.endswith("linear_attn.norm")
        tensor = tensor.float() + 1 if plus_one else tensor
        if stem in OUTSIDE:
            tensors[f"{OUTSIDE[stem]}.{end}"] = tensor
            continue
        _, _, layer, inner = stem.split(".", 3)
        if ".experts." in inner:
            _, number, part = inner.rsplit(".", 2)
            experts.setdefault(f"blk.{layer}.ffn_{OF_EXPERT[part]}_exps.{end}", {})[int(number)] = tensor
            continue
        if ARCHITECTURES[config["model_type"]][0] in ("llama", "granite", "smollm3") and inner in ("self_attn.q_proj", "self_attn.k_proj"):
            tensor = turned(tensor, config["num_attention_heads" if "q_proj" in inner else "num_key_value_heads"])
        tensor = tensor.squeeze(1) if inner == "conv.conv" else tensor
        if config["model_type"] == "gpt2" and tensor.dim() == 2:
            tensor = tensor.t().contiguous()
        if "query_key_value" in inner:
            heads = config["num_attention_heads"]
            tensor = fused(tensor, heads, falcon_kv_heads(config) if config["model_type"] == "falcon" else heads)
        tensors[f"blk.{layer}.{names[inner]}.{end}"] = tensor.flatten() if "shared_expert_gate" in inner else tensor
    return tensors | {name: torch.stack([parts[i] for i in range(len(parts))]) for name, parts in experts.items()}


def from_checkpoint(folder, path, kind="F32", tokenizer=None, older=False):
    """Writes the folder's model as one GGUF file: matrices of `kind`, all else F32; with the tokenizer of a tokenizer.model, if one is named."""
    config = json.loads((Path(folder) / "config.json").read_text())
    metadata, rope, head = metadata_of(config, older)
    tensors = tensors_of(config, load_file(Path(folder) / "model.safetensors"), older)
    if config.get("tie_word_embeddings", config["model_type"].startswith(("gemma", "cohere", "lfm2"))):
        tensors.pop("output.weight", None)
    if rope.get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = llama3_factors(rope, head)
    for length in ("long", "short") if rope.get("rope_type") == "longrope" else ():
        tensors[f"rope_factors_{length}.weight"] = torch.tensor(rope[f"{length}_factor"], dtype=torch.float32)
    written = {}
    for name, tensor in tensors.items():
        own = kind if tensor.dim() > 1 else "F32"
        written[name] = (own, list(tensor.shape), plain_bytes(tensor, own))
    Path(path).write_bytes(gguf_bytes(metadata | (sentencepiece_metadata(tokenizer) if tokenizer else {}), written))
    return path


# ---- tokenizers, and a small model with one


def sentencepiece_metadata(model_file):
    """What llama.cpp's converter says of a tokenizer.model."""
    import sentencepiece

    sp = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    ids = range(sp.vocab_size())
    kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 5 if sp.is_unused(i) else 1 for i in ids]
    return {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": [sp.id_to_piece(i) for i in ids],
        "tokenizer.ggml.scores": [float(sp.get_score(i)) for i in ids], "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": sp.bos_id(), "tokenizer.ggml.unknown_token_id": sp.unk_id(), "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False,
    }


def encode_q8_0(tensor):
    """As the gguf package has it: scales in f32, numbers rounded away from zero."""
    x = tensor.float().contiguous().numpy().reshape(-1, 32)
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    scaled = x * np.where(scale == 0, 0, 1 / np.where(scale == 0, 1, scale)).astype(np.float32)
    size = np.floor(np.abs(scaled))
    codes = (np.sign(scaled) * (size + np.floor(2 * (np.abs(scaled) - size)))).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.uint8), codes.view(np.uint8)], axis=1).tobytes()


def demo_model(folder, path, kind="Q8_0"):
    """The demo's model with its tokenizer as one file: matrices of the layers as `kind`, the embedding as BF16."""
    config = json.loads((Path(folder) / "config.json").read_text())
    metadata, _, _ = metadata_of(config)
    written = {}
    for name, tensor in tensors_of(config, load_file(Path(folder) / "model.safetensors")).items():
        own = "F32" if tensor.dim() == 1 else kind if name.startswith("blk.") else "BF16"
        written[name] = (own, list(tensor.shape), encode_q8_0(tensor) if own == "Q8_0" else plain_bytes(tensor, own))
    Path(path).write_bytes(gguf_bytes(metadata | sentencepiece_metadata(Path(folder) / "tokenizer.model"), written))
    return path


def read_tensors(path):
    """{name: (type's number, shape, bytes)} of a file, its metadata's names, and its head's metadata bytes by name."""
    data = Path(path).read_bytes()
    at = 24
    _, n_tensors, n_metadata = struct.unpack_from("<IQQ", data, 4)

    def string(at):
        size = struct.unpack_from("<Q", data, at)[0]
        return data[at + 8 : at + 8 + size].decode("utf-8", "replace"), at + 8 + size

    def skip(kind, at):
        if kind == TEXT:
            return string(at)[1]
        if kind == LIST:
            inner, count = struct.unpack_from("<IQ", data, at)
            at += 12
            for _ in range(count):
                at = skip(inner, at)
            return at
        return at + {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}[kind]

    metadata, infos = {}, []
    for _ in range(n_metadata):
        begin = at
        key, at = string(at)
        at = skip(struct.unpack_from("<I", data, at)[0], at + 4)
        metadata[key] = data[begin:at]
    for _ in range(n_tensors):
        name, at = string(at)
        dims = struct.unpack_from("<I", data, at)[0]
        shape = struct.unpack_from(f"<{dims}Q", data, at + 4)[::-1]
        kind, offset = struct.unpack_from("<IQ", data, at + 4 + 8 * dims)
        at += 16 + 8 * dims
        infos.append((name, kind, shape, offset))
    start = -(-at // ALIGNMENT) * ALIGNMENT
    numbers = {number: (block, size) for number, block, size in TYPES.values()}
    tensors = {}
    for name, kind, shape, offset in infos:
        size = int(np.prod(shape)) // numbers[kind][0] * numbers[kind][1]
        tensors[name] = (kind, shape, data[start + offset : start + offset + size])
    return tensors, metadata


def encode_whole(kind, tensor):
    """Q4_0, Q4_1, Q5_0 or Q5_1 as the gguf package has them: scales in f32, codes cut off after half is added."""
    x = tensor.float().contiguous().numpy().reshape(-1, 32)
    bits, signed = (4 if kind.startswith("Q4") else 5), kind.endswith("0")
    most = 2**bits - 1
    if signed:
        largest = np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1)
        scale, least, middle = largest / np.float32(-(2 ** (bits - 1))), None, np.float32(2 ** (bits - 1) + 0.5)
    else:
        least = x.min(axis=1, keepdims=True)
        scale, middle = (x.max(axis=1, keepdims=True) - least) / np.float32(most), np.float32(0.5)
    by = np.where(scale == 0, np.float32(0), 1 / np.where(scale == 0, np.float32(1), scale)).astype(np.float32)
    codes = np.trunc((x if signed else x - least) * by + middle).astype(np.int32).clip(0, most)
    parts = [scale.astype(np.float16).view(np.uint8)] + ([] if signed else [least.astype(np.float16).view(np.uint8)])
    if bits == 5:
        high = (codes >> 4).astype(np.uint32) << np.arange(32, dtype=np.uint32)
        parts.append(high.sum(axis=1, dtype=np.uint32)[:, None].copy().view(np.uint8))
    parts.append(((codes[:, :16] & 15) | (codes[:, 16:] & 15) << 4).astype(np.uint8))
    return np.concatenate(parts, axis=1).tobytes()
