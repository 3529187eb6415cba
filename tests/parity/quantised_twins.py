"""Models of which every matrix of a layer is quantised, and what they are unpacked: by definition, without rounding any number."""
import json

import torch
from quantised import MODULE, awq, bitsandbytes_4, bitsandbytes_8, compressed, fp8, gptq, mxfp4
from safetensors.torch import load_file, save_file

FORMATS = {
    "gptq-4": (gptq, dict(bits=4, group=32, order="mixed", symmetric=False)),
    "gptq-8-v2": (gptq, dict(bits=8, group=32, version=2, symmetric=False)),
    "awq": (awq, dict(group=32)),
    "nf4": (bitsandbytes_4, dict(kind="nf4", nested=True)),
    "int8": (bitsandbytes_8, {}),
    "fp8-blocks": (fp8, dict(layout="blocks")),
    "fp8-rows": (fp8, dict(layout="rows")),
    "compressed-4": (compressed, dict(bits=4, symmetric=False, group=32)),
}


def is_quantised(name, tensor, plain):
    return (".layers." in name or ".h." in name) and tensor.dim() == 2 and not name.endswith("mlp.gate.weight") and not any(part in name for part in plain)


def quantise(base, folder, twin, name, plain=()):
    """A model folder whose layers' matrices are quantised, but for names with one of `plain`; `twin` has them unpacked."""
    function, options = FORMATS[name]
    tensors, packed, unpacked = load_file(base / "model.safetensors"), {}, {}
    config = json.loads((base / "config.json").read_text()) | dict(dtype="float32")
    for number, (weight, tensor) in enumerate(sorted(tensors.items())):
        if not is_quantised(weight, tensor, plain):
            packed[weight] = unpacked[weight] = tensor
            continue
        is_turned = config["model_type"] == "gpt2"
        rows, columns = reversed(tensor.shape) if is_turned else tensor.shape
        made = function(seed=number, rows=rows, columns=columns, **options)
        module = weight.removesuffix(".weight")
        packed |= {key.replace(MODULE, module): value for key, value in made.tensors.items()}
        unpacked[weight] = made.weight.float().T if is_turned else made.weight.float()
        config["quantization_config"] = dict(made.config)
    if plain:
        config["quantization_config"]["llm_int8_skip_modules"] = ["lm_head", *plain]
    if name == "awq":
        config["quantization_config"]["modules_to_not_convert"] = ["mlp.gate"]
    for place, content in ((folder, packed), (twin, unpacked)):
        place.mkdir()
        for file in base.iterdir():
            if file.suffix in (".json", ".model"):
                (place / file.name).write_bytes(file.read_bytes())
        save_file({key: value.contiguous() for key, value in content.items()}, place / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    (twin / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key != "quantization_config"}))
    return folder, twin


MXFP4_WIDTH = 64  # of an expert: whole blocks, unlike the family's fixture


def mxfp4_twins(base, packed, plain):
    """gpt-oss in MXFP4, as it is published, and unpacked: folders with a checkpoint's files, made of `base`."""
    config = json.loads((base / "config.json").read_text()) | dict(intermediate_size=MXFP4_WIDTH, dtype="float32")
    random, contents = torch.Generator().manual_seed(5), ({}, {})
    for number, (name, tensor) in enumerate(sorted(load_file(base / "model.safetensors").items())):
        if name.endswith("experts.gate_up_proj_bias"):
            tensor = 0.3 * torch.randn(tensor.shape[0], 2 * MXFP4_WIDTH, generator=random)
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            contents[0][name] = contents[1][name] = tensor
            continue
        experts, columns, rows = tensor.shape
        columns, rows = (columns, 2 * MXFP4_WIDTH) if "gate_up" in name else (MXFP4_WIDTH, rows)
        made = mxfp4(number, name, experts, rows, columns)
        contents[0].update(made.tensors)
        contents[1][name] = made.weight.transpose(1, 2).contiguous()
    for folder, content, more in zip((packed, plain), contents, (dict(quantization_config=made.config), {}), strict=True):
        folder.mkdir(exist_ok=True)
        for file in base.glob("*.json"):
            (folder / file.name).write_bytes(file.read_bytes())
        save_file(content, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config | more))
    return packed, plain
