"""Adapters for llama.cpp: names, shapes and orders of its file of the model, read by a plain reader of the format."""
import importlib.util
import struct

import numpy as np
import pytest
import torch
from engine import answer_jobs
from family_checkpoints import DENSE, VARIANTS, config_of, make_checkpoint
from safetensors.torch import load_file, save_file
from test_adapters import DEMO

TYPES = {0: np.float32, 1: np.float16, 30: np.uint16}
TEXT, NUMBER = 8, 6


def read_gguf(path):
    """Metadata, and tensors with the dimension of the file's last number first, by the format's definition (ggml, docs/gguf.md)."""
    data, place = path.read_bytes(), 0

    def take(form):
        nonlocal place
        place += struct.calcsize(form)
        return struct.unpack_from("<" + form, data, place - struct.calcsize(form))[0]

    def text():
        nonlocal place
        size = take("Q")
        place += size
        return data[place - size : place].decode()

    assert data[:4] == b"GGUF"
    place = 4
    assert take("I") == 3
    n_tensors, n_entries = take("Q"), take("Q")
    metadata = {}
    for _ in range(n_entries):
        key, kind = text(), take("I")
        metadata[key] = text() if kind == TEXT else take({NUMBER: "f"}[kind])
    places = {}
    for _ in range(n_tensors):
        name = text()
        shape = [take("Q") for _ in range(take("I"))]
        places[name] = (shape[::-1], take("I"), take("Q"))
    begin = (place + 31) // 32 * 32
    tensors = {}
    for name, (shape, kind, offset) in places.items():
        assert offset % 32 == 0
        raw = np.frombuffer(data, TYPES[kind], int(np.prod(shape)), begin + offset).reshape(shape)
        tensors[name] = torch.from_numpy(raw.copy()).view(torch.bfloat16) if kind == 30 else torch.from_numpy(raw.copy())
    return metadata, {name: tensor.double() for name, tensor in tensors.items()}


def products(tensors, rank, alpha):
    """Of each tensor of the model what llama.cpp adds to it: alpha / r times B A."""
    names = sorted({name.rsplit(".lora_", 1)[0] for name in tensors})
    assert len(tensors) == 2 * len(names)
    found = {}
    for name in names:
        a, b = tensors[name + ".lora_a"], tensors[name + ".lora_b"]
        assert a.shape[-2] == b.shape[-1] == rank
        found[name] = alpha / b.shape[-1] * (b @ a)
    return found


def interleaved(change, heads):
    """Llama's queries and keys: the halves of a head, which turn together, lie beside each other."""
    size = len(change) // heads
    row = [head * size + half * (size // 2) + i for head in range(heads) for i in range(size // 2) for half in range(2)]
    return change[row]


LLAMA = "model.layers.{}.{}.weight"


def cases():
    """Family -> llama.cpp's name of it, its changed weights [name, shape, name in the file, way to that tensor's rows]."""

    def keep(change):
        return change

    def plain(module, name, layer=1, out=64, inputs=64, way=keep):
        return (LLAMA.format(layer, module), (out, inputs), f"blk.{layer}.{name}.weight", way)

    mlp = [plain("mlp.down_proj", "ffn_down", inputs=96), plain("mlp.gate_proj", "ffn_gate", out=96), plain("mlp.up_proj", "ffn_up", 2, out=96)]

    def attention(head_dim, way=lambda heads: keep):
        width = 4 * head_dim
        return [
            plain("self_attn.q_proj", "attn_q", out=width, way=way(4)),
            plain("self_attn.k_proj", "attn_k", out=width // 2, way=way(2)),
            plain("self_attn.v_proj", "attn_v", out=width // 2),
            plain("self_attn.o_proj", "attn_output", inputs=width),
        ]

    def turned(heads):
        return lambda change: interleaved(change, heads)

    yield "mistral_head_dim", "llama", mlp + attention(24, turned) + [("lm_head.weight", (4096, 64), "output.weight", keep)]
    yield "qwen2", "qwen2", mlp + attention(16)
    yield "qwen3", "qwen3", mlp + attention(24)
    yield "gemma", "gemma", mlp + attention(24)
    yield "gemma2", "gemma2", mlp + attention(24)
    yield "gemma3", "gemma3", mlp + attention(24)
    yield "olmo2", "olmo2", mlp + attention(16)
    yield "stablelm", "stablelm", mlp + attention(16)


def rows_at(begin, size):
    def put(change):
        whole = torch.zeros(size, change.shape[1], dtype=change.dtype)
        whole[begin : begin + len(change)] = change
        return whole

    return put


FUSED = {
    "phi3": (
        "phi3",
        [
            ("model.layers.1.self_attn.qkv_proj.weight[k]", (32, 64), "blk.1.attn_qkv.weight", rows_at(64, 128)),
            ("model.layers.2.mlp.gate_up_proj.weight[gate]", (96, 64), "blk.2.ffn_up.weight", rows_at(0, 192)),
            ("model.layers.1.mlp.gate_up_proj.weight[up]", (96, 64), "blk.1.ffn_up.weight", rows_at(96, 192)),
            ("model.layers.1.mlp.down_proj.weight", (64, 96), "blk.1.ffn_down.weight", rows_at(0, 64)),
        ],
    ),
    "gpt2": (
        "gpt2",
        [
            ("transformer.h.2.attn.c_attn.weight[v]", (64, 64), "blk.2.attn_qkv.weight", rows_at(128, 192)),
            ("transformer.h.1.attn.c_proj.weight", (64, 64), "blk.1.attn_output.weight", rows_at(0, 64)),
            ("transformer.h.1.mlp.c_fc.weight", (256, 64), "blk.1.ffn_up.weight", rows_at(0, 256)),
            ("transformer.h.1.mlp.c_proj.weight", (64, 256), "blk.1.ffn_down.weight", rows_at(0, 64)),
        ],
    ),
    # head by head in the checkpoint, all queries, all keys, all values in llama.cpp's file
    "neox": (
        "gptneox",
        [
            ("gpt_neox.layers.1.attention.query_key_value.weight[k]", (64, 64), "blk.1.attn_qkv.weight", rows_at(64, 192)),
            ("gpt_neox.layers.2.attention.query_key_value.weight[q]", (64, 64), "blk.2.attn_qkv.weight", rows_at(0, 192)),
            ("gpt_neox.layers.1.attention.dense.weight", (64, 64), "blk.1.attn_output.weight", rows_at(0, 64)),
            ("gpt_neox.layers.1.mlp.dense_h_to_4h.weight", (160, 64), "blk.1.ffn_up.weight", rows_at(0, 160)),
            ("gpt_neox.layers.1.mlp.dense_4h_to_h.weight", (64, 160), "blk.1.ffn_down.weight", rows_at(0, 64)),
        ],
    ),
}

# a fixture of tests/fixtures/families -> llama.cpp's name, whether halves of heads are interleaved, and where its tensors lie
LLAMA_NAMES = dict(q="model.layers.1.self_attn.q_proj", down="model.layers.1.mlp.down_proj")
DENSE_NAMES = {
    "smollm3": ("smollm3", True, LLAMA_NAMES), "granite": ("granite", True, LLAMA_NAMES), "arcee": ("arcee", True, LLAMA_NAMES),
    "olmo": ("olmo", True, LLAMA_NAMES), "olmo3": ("olmo2", False, LLAMA_NAMES), "cohere": ("command-r", False, LLAMA_NAMES),
    "cohere2": ("cohere2", False, LLAMA_NAMES), "glm": ("chatglm", False, LLAMA_NAMES), "glm4": ("glm4", False, LLAMA_NAMES),
    "nemotron": ("nemotron", False, LLAMA_NAMES), "exaone4": ("exaone4", False, LLAMA_NAMES), "seed_oss": ("seed_oss", False, LLAMA_NAMES),
    "hunyuan": ("hunyuan-dense", False, LLAMA_NAMES), "ernie4_5": ("ernie4_5", False, LLAMA_NAMES), "apertus": ("apertus", False, LLAMA_NAMES),
    "starcoder2": ("starcoder2", False, dict(q="model.layers.1.self_attn.q_proj", down="model.layers.1.mlp.c_proj")),
    "phi": ("phi2", False, dict(q="model.layers.1.self_attn.q_proj", down="model.layers.1.mlp.fc2")),
    "gpt_bigcode": ("starcoder", False, dict(k="transformer.h.1.attn.c_attn.weight[k]", down="transformer.h.1.mlp.c_proj")),
    "falcon_grouped": ("falcon", False, dict(k="transformer.h.1.self_attention.query_key_value.weight[k]", down="transformer.h.1.mlp.dense_4h_to_h")),
    "bloom": ("bloom", False, dict(k="transformer.h.1.self_attention.query_key_value.weight[k]", down="transformer.h.1.mlp.dense_4h_to_h")),
    "jais2": ("jais2", False, LLAMA_NAMES),
    "mpt": ("mpt", False, dict(k="transformer.blocks.1.attn.Wqkv.weight[k]", down="transformer.blocks.1.ffn.down_proj")),
}  # fmt: skip


def dense_case(fixture, architecture, is_turned, names):
    """The down projection, and queries, or the keys' rows of what is fused; sizes are the fixture's."""
    config = config_of(VARIANTS[fixture])
    width, heads = config.hidden_size, config.num_attention_heads
    size = getattr(config, "head_dim", None) or width // heads
    key_heads = {"gpt_bigcode": 1, "falcon_grouped": 2}.get(fixture, heads)
    inner = next(value for key in ("ffn_dim", "ffn_hidden_size", "n_inner", "intermediate_size") if (value := getattr(config, key, None))) if fixture not in ("bloom", "mpt") else 4 * width
    weights = [(names["down"] + ".weight", (width, inner), "blk.1.ffn_down.weight", lambda change: change)]
    if "q" in names:
        weights.append((names["q"] + ".weight", (heads * size, width), "blk.1.attn_q.weight", (lambda change: interleaved(change, heads)) if is_turned else lambda change: change))
    else:
        weights.append((names["k"], (key_heads * size, width), "blk.1.attn_qkv.weight", rows_at(heads * size, (heads + 2 * key_heads) * size)))
    return architecture, weights


PLAIN = {name: (architecture, weights) for name, architecture, weights in cases()}


def shared(module, width):
    """The MLP that every token goes through."""
    shapes = dict(gate=(width, 32), up=(width, 32), down=(32, width))
    return [(LLAMA.format(1, f"{module}.{part}_proj"), shape, f"blk.1.ffn_{part}_shexp.weight", lambda change: change) for part, shape in shapes.items()]


# families with mixers in place of some layers' attention: the MLP and the attention of one layer
def hybrid_case(architecture, layer, modules):
    shapes = {"ffn_gate": (48, 32), "ffn_up": (48, 32), "ffn_down": (32, 48), "attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32)}
    return architecture, [(LLAMA.format(layer, modules[name]), shapes[name], f"blk.{layer}.{name}.weight", lambda change: change) for name in shapes]


ATTENTION = dict(attn_q="self_attn.q_proj", attn_k="self_attn.k_proj", attn_v="self_attn.v_proj")
LFM2 = ATTENTION | dict(attn_output="self_attn.out_proj", ffn_gate="feed_forward.w1", ffn_up="feed_forward.w3", ffn_down="feed_forward.w2")
JAMBA = ATTENTION | dict(attn_output="self_attn.o_proj") | {f"ffn_{part}": f"feed_forward.{part}_proj" for part in ("gate", "up", "down")}
HYBRIDS = {"lfm2": hybrid_case("lfm2", 1, LFM2), "jamba_dense": hybrid_case("jamba", 2, JAMBA)}


def pile(count, axis):
    return lambda change: torch.stack(change.chunk(count, axis))


def experts(pattern, count, gate, up, down, width, hidden=64):
    name = "model.layers.1." + pattern + "{}.weight"
    return [
        (name.format(gate), (count * width, hidden), "blk.1.ffn_gate_exps.weight", pile(count, 0)),
        (name.format(up), (count * width, hidden), "blk.1.ffn_up_exps.weight", pile(count, 0)),
        (name.format(down), (hidden, count * width), "blk.1.ffn_down_exps.weight", pile(count, 1)),
    ]


def rows_of(layer, prefix, rows):
    """Rows "module: target, outputs, inputs, perhaps a factor, or the way to the file's rows" of a layer."""
    found = []
    for module, (target, out, inputs, *more) in rows.items():
        way = more[0] if more else 1
        found.append((f"{prefix}.layers.{layer}.{module}", (out, inputs), f"blk.{layer}.{target}.weight", way if callable(way) else lambda change, way=way: way * change))
    return found


def mlp_rows(module, hidden, width, layer=1, names=("gate_proj", "up_proj", "down_proj")):
    sizes = dict(zip(names, ((width, hidden), (width, hidden), (hidden, width))))
    return rows_of(layer, "model", {f"{module}.{name}.weight": (f"ffn_{kind}", *sizes[name]) for name, kind in zip(names, ("gate", "up", "down"))})


def latent(queries, heads, rank=16, values=32, hidden=32, vector=32):
    """Attention of short vectors; `queries` and `vector`: all heads' queries, and the vector of keys and values with what turns."""
    rows = {"self_attn.q_a_proj.weight": ("attn_q_a", rank, hidden), "self_attn.q_b_proj.weight": ("attn_q_b", queries, rank)} if rank else {}
    rows |= {} if rank else {"self_attn.q_proj.weight": ("attn_q", queries, hidden)}
    rows |= {"self_attn.kv_a_proj_with_mqa.weight": ("attn_kv_a_mqa", vector, hidden), "self_attn.o_proj.weight": ("attn_output", hidden, heads)}
    return rows_of(1, "model", rows)


def gated(layer):
    """Queries and gates of 4 heads of 16 in turn."""

    def put(begin):
        def way(change):
            whole = torch.zeros(4, 32, change.shape[1], dtype=change.dtype)
            whole[:, begin : begin + 16] = change.view(4, 16, -1)
            return whole.flatten(0, 1)

        return way

    return [
        (LLAMA.format(layer, "self_attn.q_proj") + "[q]", (64, 32), f"blk.{layer}.attn_q.weight", put(0)),
        *rows_of(layer, "model", {"self_attn.k_proj.weight": ("attn_k", 32, 32), "self_attn.o_proj.weight": ("attn_output", 32, 64)}),
    ]


def turns(heads):
    return lambda change: interleaved(change, heads)


FALCON = {
    "self_attn.q_proj.weight": ("attn_q", 64, 32, 1.3),
    "self_attn.k_proj.weight": ("attn_k", 32, 32, 1.3 * 0.6),
    "self_attn.v_proj.weight": ("attn_v", 32, 32, 1.3),
    "self_attn.o_proj.weight": ("attn_output", 32, 64, 0.8),
    "feed_forward.gate_proj.weight": ("ffn_gate", 48, 32, 0.7),
    "feed_forward.up_proj.weight": ("ffn_up", 48, 32),
    "feed_forward.down_proj.weight": ("ffn_down", 32, 48, 1.2),
}
NEMOTRON = {
    1: {"mixer.up_proj.weight": ("ffn_up", 48, 32), "mixer.down_proj.weight": ("ffn_down", 32, 48)},
    2: {"mixer.q_proj.weight": ("attn_q", 32, 32, turns(4)), "mixer.k_proj.weight": ("attn_k", 16, 32, turns(2)), "mixer.o_proj.weight": ("attn_output", 32, 32)},
    3: {
        "mixer.experts.*.up_proj.weight": ("ffn_up_exps", 80, 32, pile(4, 0)),
        "mixer.experts.*.down_proj.weight": ("ffn_down_exps", 32, 80, pile(4, 1)),
        "mixer.shared_experts.down_proj.weight": ("ffn_down_shexp", 32, 32),
    },
}
TURNED = {"self_attn.q_proj.weight": ("attn_q", 32, 32, turns(4)), "self_attn.k_proj.weight": ("attn_k", 16, 32, turns(2))}
GRANITE = {
    "shared_mlp.input_linear.weight[gate]": ("ffn_gate", 40, 32),
    "shared_mlp.input_linear.weight[up]": ("ffn_up", 40, 32),
    "shared_mlp.output_linear.weight": ("ffn_down", 32, 40),
}


def newer_cases():
    plain = ("mlp.experts.*.", "gate_proj", "up_proj", "down_proj")

    def of_experts(count, width, hidden=32, pattern=plain):
        return experts(pattern[0], count, *pattern[1:], width, hidden)

    return {
        "glm4_moe": ("glm4moe", of_experts(8, 24) + shared("mlp.shared_experts", 48) + rows_of(1, "model", {"self_attn.q_proj.weight": ("attn_q", 64, 32)})),
        "lfm2_moe": ("lfm2moe", of_experts(6, 24, pattern=("feed_forward.experts.*.", "w1", "w3", "w2")) + mlp_rows("feed_forward", 32, 48, 0, ("w1", "w3", "w2"))),
        "phimoe": ("phimoe", of_experts(6, 24, pattern=("block_sparse_moe.experts.*.", "w1", "w3", "w2"))),
        "qwen3_next": ("qwen3next", of_experts(6, 24) + shared("mlp.shared_expert", 40) + gated(2)),
        "qwen3_5": ("qwen35", mlp_rows("mlp", 32, 48) + gated(1)),
        "nemotron_h": ("nemotron_h_moe", [row for layer, rows in NEMOTRON.items() for row in rows_of(layer, "model", rows)]),
        "granite_hybrid_dense": ("granitehybrid", rows_of(1, "model", GRANITE | TURNED)),
        "bamba": ("granitehybrid", mlp_rows("feed_forward", 32, 48, 2) + rows_of(2, "model", TURNED)),
        "falcon_h1": ("falcon-h1", rows_of(1, "model", FALCON) + [("lm_head.weight", (4096, 32), "output.weight", lambda change: 0.6 * change)]),
        "minicpm3": ("minicpm3", mlp_rows("mlp", 32, 48) + latent(64, 32)),
        "deepseek_v2": ("deepseek2", of_experts(8, 24) + shared("mlp.shared_experts", 48) + latent(72, 48, rank=0)),
        "deepseek_v3": ("deepseek2", of_experts(8, 24) + mlp_rows("mlp", 32, 48, 0) + latent(96, 64)),
        "glm4_moe_lite": ("deepseek2", of_experts(6, 24, 48) + latent(80, 80, hidden=48)),
        "youtu": ("deepseek2", mlp_rows("mlp", 32, 48) + latent(64, 32)),
    }


def expert_cases():
    small = experts("mlp.experts.*.", 6, "gate_proj", "up_proj", "down_proj", 24, 32)
    return {
        "olmoe": ("olmoe", small),
        "qwen2_moe": ("qwen2moe", small + shared("mlp.shared_expert", 40)),
        "ernie4_5_moe": ("ernie4_5-moe", small + shared("mlp.shared_experts", 48)),
        "qwen3_moe": ("qwen3moe", experts("mlp.experts.*.", 6, "gate_proj", "up_proj", "down_proj", 40)),
        "mixtral": ("llama", experts("block_sparse_moe.experts.*.", 5, "w1", "w3", "w2", 96)),
    }


NEWER = newer_cases()
ALL = PLAIN | FUSED | HYBRIDS | NEWER | expert_cases() | {name: dense_case(name, *told) for name, told in DENSE_NAMES.items()}
ROUNDING = {"F32": 1e-13, "BF16": 1e-4, "F16": 1e-6}  # NMSE that rounding the factors may leave


def write(folder, changes, scratch, **options):
    save_file({key: tensor.contiguous() for key, tensor in changes.items()}, scratch / "changes.safetensors")
    job = dict(model=str(folder), changes=str(scratch / "changes.safetensors"), out=str(scratch / "a.gguf"), options=options, gguf=True)
    return answer_jobs("adapter_files", {"a": job}, scratch)["a"]


def random_changes(weights):
    generator = torch.Generator().manual_seed(17)
    files, expected = {}, {}
    for name, (out, inputs), target, way in weights:
        left, right = torch.randn(out, 3, generator=generator), torch.randn(3, inputs, generator=generator)
        files |= {f"{name}|0|left": left, f"{name}|0|right": right}
        change = way(left.double() @ right.double())
        assert target not in expected
        expected[target] = change
    return files, expected


@pytest.mark.parametrize(("name", "dtype"), [*(("demo", dtype) for dtype in ROUNDING), *((name, "F32") for name in ALL)])
def test_the_file_changes_what_the_weights_do(name, dtype, tmp_path):
    if name == "demo":
        folder, architecture = DEMO, "llama"
        way = {"q": lambda change: interleaved(change, 8), "k": lambda change: interleaved(change, 4), "down": lambda change: change}
        shapes = {"q": (256, 256), "k": (128, 256), "down": (256, 768)}
        modules = {"q": ("self_attn.q_proj", "attn_q"), "k": ("self_attn.k_proj", "attn_k"), "down": ("mlp.down_proj", "ffn_down")}
        weights = [(LLAMA.format(7, modules[k][0]), shapes[k], f"blk.7.{modules[k][1]}.weight", way[k]) for k in modules]
    else:
        architecture, weights = ALL[name]
        folder = make_checkpoint(name, tmp_path / "base", DEMO)
    files, expected = random_changes(weights)
    report = write(folder, files, tmp_path, dtype=dtype)
    assert "error" not in report, report
    metadata, tensors = read_gguf(tmp_path / "a.gguf")
    rank = report["rank"]
    assert metadata == {"general.architecture": architecture, "general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": rank}
    found = products(tensors, rank, metadata["adapter.lora.alpha"])
    assert sorted(found) == sorted(expected)
    for target, change in expected.items():
        assert found[target].shape == change.shape, target
        error = ((found[target] - change).square().sum() / change.square().sum()).item()
        assert error <= ROUNDING[dtype], (target, error)
    stored = load_file(folder / "model.safetensors")
    sizes = {tuple(tensor.shape) for tensor in stored.values()} | {tuple(tensor.T.shape) for tensor in stored.values() if tensor.dim() == 2}
    assert all(tuple(change.shape[-2:]) in sizes for change in found.values())
    if importlib.util.find_spec("gguf"):
        check_with_gguf(tmp_path / "a.gguf", metadata, tensors)


def check_with_gguf(path, metadata, tensors):
    """The package of llama.cpp's authors reads the same; its writer knows the architecture and the names."""
    import gguf

    reader = gguf.GGUFReader(path)
    assert {key: reader.fields[key].contents() for key in metadata} == metadata
    assert [tensor.name for tensor in reader.tensors] == list(tensors)
    for tensor in reader.tensors:
        assert list(tensor.shape[::-1]) == list(tensors[tensor.name].shape)
        if tensor.tensor_type != gguf.GGMLQuantizationType.BF16:
            assert np.array_equal(np.asarray(tensor.data, np.float64), tensors[tensor.name].numpy())
    architecture = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[metadata["general.architecture"]]
    known = {gguf.TENSOR_NAMES[kind].format(bid=layer) + ".weight" for kind in gguf.MODEL_TENSORS[architecture] for layer in range(8)}
    assert {name.rsplit(".lora_", 1)[0] for name in tensors} <= known


def test_unchanged_experts_are_zeros(tmp_path):
    architecture, weights = ALL["qwen3_moe"]
    folder = make_checkpoint("qwen3_moe", tmp_path / "base", DEMO)
    files, _ = random_changes(weights[:1])
    name = weights[0][0]
    files[f"{name}|0|left"][:40] = 0
    report = write(folder, files, tmp_path)
    _, tensors = read_gguf(tmp_path / "a.gguf")
    assert sorted(tensors) == ["blk.1.ffn_gate_exps.weight.lora_a", "blk.1.ffn_gate_exps.weight.lora_b"], report
    change = products(tensors, report["rank"], report["rank"])["blk.1.ffn_gate_exps.weight"]
    assert change[0].norm() == 0 and all(change[e].norm() > 0 for e in range(1, 6))


def test_what_llama_cpp_cannot_load_is_refused_by_name(tmp_path):
    folder = make_checkpoint("gptj", tmp_path / "base", DEMO)
    answer = write(folder, {"transformer.h.1.mlp.fc_out.weight|0|full": torch.ones(64, 256)}, tmp_path)
    assert answer["exit_code"] == 2 and "GPT-J" in answer["error"] and "adapter of PEFT" in answer["error"], answer
    moe = make_checkpoint("qwen3_moe", tmp_path / "moe", DEMO)
    files = {"model.embed_tokens.weight|0|full": torch.ones(4096, 64), "model.layers.1.mlp.gate.weight|0|full": torch.ones(6, 64)}
    answer = write(moe, files | {"model.norm.weight|0|full": torch.ones(64, 1)}, tmp_path)
    assert answer["exit_code"] == 2, answer
    for part in ("llama.cpp", "model.embed_tokens.weight: it is a table of embeddings", "mlp.gate.weight: it is a router", "model.norm.weight: it is no matrix"):
        assert part in answer["error"], answer
    one = make_checkpoint("granite_hybrid", tmp_path / "one", DEMO)
    answer = write(one, {"model.layers.1.block_sparse_moe.output_linear.weight|0|full": torch.ones(32, 96)}, tmp_path)
    assert answer["exit_code"] == 2 and "it is in a tensor of all experts" in answer["error"], answer
    mixer = make_checkpoint("lfm2", tmp_path / "mixer", DEMO)
    answer = write(mixer, {"model.layers.2.conv.out_proj.weight|0|full": torch.ones(32, 32)}, tmp_path)
    assert answer["exit_code"] == 2 and "model.layers.2.conv.out_proj.weight: no name of it in llama.cpp's files is known" in answer["error"], answer
    assert not (tmp_path / "a.gguf").exists()


def test_every_family_is_known_or_refused():
    """A family that is added is decided upon here."""
    known = {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "phi3", "gemma", "gemma2", "gemma3_text", "olmo2", "gpt2", "gpt_neox", "stablelm"}
    unknown = {"gptj", "hyperclovax", "helium", "ministral", "ministral3", "cwm", "vaultgemma", "gpt_neo", "opt", "biogpt", "nanochat", "persimmon"}
    unknown |= {"qwen3_5_moe_text", "granitemoe", "gpt_oss"}  # experts in one tensor
    known |= {DENSE[name].family for name in [*DENSE_NAMES, *HYBRIDS, *NEWER, "olmoe", "qwen2_moe", "ernie4_5_moe"]}
    assert {variant.family for variant in VARIANTS.values()} | {"llama"} == known | unknown
