"""A checkpoint in full precision as one whose layers' matrices are quantised, each number rounded to the nearest."""
import json

import torch
from quantised import NF4, pack, pack_awq
from safetensors.torch import load_file, save_file

GROUP = 128


def int8(module, weight):
    scales = weight.abs().amax(1)
    codes = (weight * (127 / scales)[:, None]).round().to(torch.int8)
    return {f"{module}.weight": codes, f"{module}.SCB": scales, f"{module}.weight_format": torch.tensor(0, dtype=torch.uint8)}


def nf4(module, weight):
    blocks, table = weight.reshape(-1, 64), torch.tensor(NF4)
    scales = blocks.abs().amax(1)
    codes = torch.bucketize(blocks / scales[:, None], (table[1:] + table[:-1]) / 2).reshape(-1, 2).to(torch.uint8)
    record = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": list(weight.shape)}).encode()
    return {
        f"{module}.weight": (codes[:, :1] << 4) | codes[:, 1:],
        f"{module}.weight.absmax": scales,
        f"{module}.weight.quant_map": table,
        f"{module}.weight.quant_state.bitsandbytes__nf4": torch.tensor(list(record), dtype=torch.uint8),
    }


def gptq(module, weight, bits=4):
    groups = weight.T.reshape(-1, GROUP, weight.shape[0])
    half = 2 ** (bits - 1)
    scales = (groups.abs().amax(1) / (half - 1)).to(torch.float16)
    codes = (groups / scales.float()[:, None]).round().clamp(-half, half - 1) + half
    zeros = torch.full(scales.shape, half - 1, dtype=torch.int32)
    return {
        f"{module}.qweight": pack(codes.reshape(weight.shape[1], -1).to(torch.int32), bits),
        f"{module}.qzeros": pack(zeros.T, bits).T.contiguous(),
        f"{module}.scales": scales,
        f"{module}.g_idx": torch.arange(weight.shape[1], dtype=torch.int32) // GROUP,
    }


def awq(module, weight):
    """Zeros of each group of its own."""
    groups = weight.T.reshape(-1, GROUP, weight.shape[0])
    low, high = groups.amin(1).clamp(max=0), groups.amax(1).clamp(min=0)
    scales = ((high - low) / 15).to(torch.float16)
    zeros = (-low / scales.float()).round().clamp(0, 15)
    codes = ((groups / scales.float()[:, None]).round() + zeros[:, None]).clamp(0, 15).reshape(weight.shape[1], -1)
    return {f"{module}.qweight": pack_awq(codes.long()), f"{module}.qzeros": pack_awq(zeros.long()), f"{module}.scales": scales}


def compressed(module, weight, bits=4):
    groups, half = weight.reshape(weight.shape[0], -1, GROUP), 2 ** (bits - 1)
    scales = (groups.abs().amax(2) / (half - 0.5)).to(torch.bfloat16)
    codes = (groups / scales.float()[:, :, None]).round().clamp(-half, half - 1) + half
    return {
        f"{module}.weight_packed": pack(codes.reshape(weight.shape).T.to(torch.int32), bits).T.contiguous(),
        f"{module}.weight_scale": scales,
        f"{module}.weight_shape": torch.tensor(weight.shape, dtype=torch.int64),
    }


def fp8(module, weight):
    """Scales of blocks of 128 x 128."""
    blocks = weight.reshape(weight.shape[0] // GROUP, GROUP, weight.shape[1] // GROUP, GROUP)
    scales = blocks.abs().amax((1, 3)) / torch.finfo(torch.float8_e4m3fn).max
    codes = (blocks / scales[:, None, :, None]).reshape(weight.shape).to(torch.float8_e4m3fn)
    return {f"{module}.weight": codes, f"{module}.weight_scale_inv": scales}


COMPRESSED_WEIGHTS = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP}
FORMATS = {
    "int8": (int8, {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head"]}),
    "nf4": (nf4, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": False,
                  "bnb_4bit_compute_dtype": "bfloat16"}),
    "gptq-4": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": True}),
    "gptq-3": (lambda module, weight: gptq(module, weight, 3),
               {"quant_method": "gptq", "bits": 3, "group_size": GROUP, "desc_act": False, "sym": True}),
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}),
    "fp8-blocks": (fp8, {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [GROUP, GROUP],
                         "modules_to_not_convert": ["lm_head"]}),
    "compressed-4": (compressed, {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
                                  "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": COMPRESSED_WEIGHTS}}}),
}


def quantise_checkpoint(base, folder, name):
    """Writes `folder`, which is not there yet."""
    function, settings = FORMATS[name]
    tensors = {}
    for weight, tensor in load_file(base / "model.safetensors").items():
        is_quantised = ".layers." in weight and tensor.dim() == 2
        tensors |= function(weight.removesuffix(".weight"), tensor.float()) if is_quantised else {weight: tensor}
    folder.mkdir()
    for file in base.iterdir():
        if file.suffix in (".json", ".model") and "index" not in file.name:
            (folder / file.name).write_bytes(file.read_bytes())
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((base / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": settings}))
    return folder
