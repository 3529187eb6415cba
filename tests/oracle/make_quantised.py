"""Makes tests/fixtures/quantised/: matrices that bitsandbytes and compressed-tensors quantised, and hashes of what they make of them again.

Run by hand, where both packages are installed (bitsandbytes 0.50.2, compressed-tensors 0.20.0, torch 2.11.0 on the CPU); the tests read
the files alone, since bitsandbytes takes 125 MB. One file for each package: tensors "VARIANT|NAME", and in the metadata under "variants"
JSON: of each variant its quantization_config, the matrix's name and shape, and "sha256" of the unpacked numbers' bytes by type.
"""
import argparse
import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

NAME = "model.layers.0.mlp.down_proj.weight"
MODULE = NAME.removesuffix(".weight")
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def weight(seed, rows, columns, dtype=torch.float32):
    """Numbers like a model's: most of them small, a few large, and a row and a block of zeros."""
    random = torch.Generator().manual_seed(seed)
    w = torch.randn(rows, columns, generator=random) * 0.02
    w[torch.rand(rows, columns, generator=random) < 0.002] *= 20
    return w.to(dtype)


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


class Package:
    def __init__(self):
        self.tensors, self.variants = {}, {}

    def add(self, variant, shape, tensors, unpacked, config=None, quantiser=None):
        """`unpacked`: of each type what the package makes of the tensors."""
        for name, tensor in tensors.items():
            self.tensors[f"{variant}|{name}"] = tensor.contiguous().clone()
        self.variants[variant] = {"shape": list(shape), "sha256": {name: digest(numbers) for name, numbers in unpacked.items()}}
        if config is not None:
            self.variants[variant]["config"] = config
        if quantiser is not None:
            self.variants[variant]["quantiser"] = quantiser

    def write(self, path):
        save_file(self.tensors, path, metadata={"variants": json.dumps(self.variants)})
        print(path, path.stat().st_size)


def add_4_bits(package, variant, w, quant_type, nested, **options):
    import bitsandbytes.functional as F

    codes, state = F.quantize_4bit(w, quant_type=quant_type, compress_statistics=nested, **options)
    tensors = {NAME: codes, **{f"{NAME}.{key}": value for key, value in state.as_dict(packed=True).items()}}
    unpacked = {}
    for name, dtype in DTYPES.items():
        state.dtype = dtype
        unpacked[name] = F.dequantize_4bit(codes, state)
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": quant_type, "bnb_4bit_use_double_quant": nested}
    package.add(variant, w.shape, tensors, unpacked, config)


def bitsandbytes_package():
    import bitsandbytes.functional as F

    package = Package()
    for quant_type in ("nf4", "fp4"):
        add_4_bits(package, quant_type, weight(1, 16, 192, torch.float16), quant_type, nested=False)
        add_4_bits(package, f"{quant_type}-nested", weight(2, 40, 640, torch.bfloat16), quant_type, nested=True)
    add_4_bits(package, "nf4-blocks-of-128", weight(3, 12, 256), "nf4", nested=False, blocksize=128)
    add_4_bits(package, "nf4-blocks-across-rows", weight(4, 10, 90), "nf4", nested=False)
    add_4_bits(package, "nf4-nested-across-rows", weight(5, 202, 90), "nf4", nested=True)
    add_4_bits(package, "nf4-stored-as-bf16", weight(6, 8, 128), "nf4", nested=False, quant_storage=torch.bfloat16)
    codes, scales, _ = F.int8_vectorwise_quant(weight(7, 24, 100, torch.float16))
    package.add("int8", codes.shape, {NAME: codes, f"{MODULE}.SCB": scales, f"{MODULE}.weight_format": torch.tensor(0, dtype=torch.uint8)},
                {name: F.int8_vectorwise_dequant(codes, scales).to(dtype) for name, dtype in DTYPES.items()},
                {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head"]})
    # their quantisers
    for name, dtype in DTYPES.items():
        w = weight(8, 20, 192, dtype)
        codes, scales, _ = F.int8_vectorwise_quant(w.clone())
        package.add(f"quantise-int8-{name}", w.shape, {NAME: w}, {"f32": F.int8_vectorwise_dequant(codes, scales)}, quantiser="int8")
        codes, state = F.quantize_4bit(w, quant_type="nf4", compress_statistics=False, blocksize=64)
        state.dtype = torch.float32
        package.add(f"quantise-nf4-{name}", w.shape, {NAME: w}, {"f32": F.dequantize_4bit(codes, state)}, quantiser="nf4")
    return package


def compressed_package():
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    def qparams(w, args):
        if args.strategy == "group":
            parts = w.unflatten(1, (-1, args.group_size))
            low, high = parts.amin(2), parts.amax(2)
        elif args.strategy == "channel":
            low, high = w.amin(1, keepdim=True), w.amax(1, keepdim=True)
        elif args.strategy == "block":
            rows, columns = args.block_structure
            parts = w.reshape(w.shape[0] // rows, rows, w.shape[1] // columns, columns)
            low, high = parts.amin((1, 3)), parts.amax((1, 3))
        else:
            low, high = w.amin().reshape(1), w.amax().reshape(1)
        return calculate_qparams(low, high, args)

    package = Package()

    def add(variant, w, form, quantiser=None, **options):
        args = QuantizationArgs(**options)
        scheme = QuantizationScheme(targets=["Linear"], weights=args, format=form)
        scale, zero = qparams(w, args)
        compressor = BaseCompressor.get_value_from_registry(form)
        packed = compressor.compress({"weight": w.clone(), "weight_scale": scale, "weight_zero_point": zero}, scheme)
        unpacked = compressor.decompress(packed, scheme)["weight"]
        if quantiser is not None:
            return package.add(variant, w.shape, {NAME: w}, {"f32": unpacked.float()}, quantiser=quantiser)
        config = {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"],
                  "config_groups": {"group_0": scheme.model_dump(mode="json")}}
        tensors = {f"{MODULE}.{key}": value for key, value in packed.items()}
        return package.add(variant, w.shape, tensors, {name: unpacked.to(dtype) for name, dtype in DTYPES.items()}, config)

    for name, dtype in DTYPES.items():
        w = weight(11, 16, 256, dtype)
        add(f"packed-4-{name}", w, "pack-quantized", num_bits=4, strategy="group", group_size=64)
    w = weight(12, 24, 192, torch.bfloat16)
    add("packed-4-asymmetric", w, "pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=False)
    add("packed-4-rows", w, "pack-quantized", num_bits=4, strategy="channel")
    add("packed-4-odd-width", weight(13, 6, 90, torch.bfloat16), "pack-quantized", num_bits=4, strategy="group", group_size=30)
    add("packed-8", w, "pack-quantized", num_bits=8, strategy="group", group_size=64)
    add("packed-8-asymmetric", w, "pack-quantized", num_bits=8, strategy="channel", symmetric=False)
    add("int8-rows", w, "int-quantized", num_bits=8, strategy="channel")
    add("int8-one-scale", w, "int-quantized", num_bits=8, strategy="tensor")
    add("int8-asymmetric", w, "int-quantized", num_bits=8, strategy="channel", symmetric=False)
    for name, dtype in DTYPES.items():
        add(f"fp8-rows-{name}", weight(14, 12, 160, dtype), "float-quantized", num_bits=8, type="float", strategy="channel")
    add("fp8-one-scale", w, "float-quantized", num_bits=8, type="float", strategy="tensor")
    add("fp8-blocks", weight(15, 32, 192, torch.bfloat16), "float-quantized", num_bits=8, type="float", strategy="block", block_structure=[16, 64])
    add("quantise-fp8", weight(16, 20, 192), "float-quantized", quantiser="fp8", num_bits=8, type="float", strategy="channel")
    return package


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "fixtures" / "quantised")
    out = parser.parse_args().out
    bitsandbytes_package().write(out / "bitsandbytes.safetensors")
    compressed_package().write(out / "compressed-tensors.safetensors")


if __name__ == "__main__":
    main()
