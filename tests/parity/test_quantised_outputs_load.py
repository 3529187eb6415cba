"""transformers loads what is written of edited quantised models, and computes what lancet does. Skipped without the packages that it
takes for a format on the CPU (bitsandbytes 0.50.2, compressed-tensors 0.20.0), which are too large or too demanding to pin."""
import json

import pytest
import torch
from engine import ROOT, lancet_logits
from quantised_checkpoints import quantise_checkpoint
from test_families import rows
from test_quantised_edits import memit_on_demo

PACKAGES = {"nf4": "bitsandbytes", "int8": "bitsandbytes", "compressed-4": "compressed_tensors", "fp8-blocks": "accelerate"}


@pytest.mark.parametrize("form", ["mixed", "quantised"])
@pytest.mark.parametrize("name", PACKAGES)
def test_transformers_computes_the_same(name, form, tmp_path):
    pytest.importorskip(PACKAGES[name])
    from transformers import AutoModelForCausalLM

    base = quantise_checkpoint(ROOT / "data" / "demo-model", tmp_path / name, name)
    folder, _, _ = memit_on_demo(tmp_path, base, "out", form, count=3)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    in_full = {key for key, weight in model.named_parameters() if key.endswith("mlp.down_proj.weight") and weight.is_floating_point()}
    if name == "fp8-blocks":  # without a GPU all of it is unpacked when it is loaded
        skipped = json.loads((folder / "config.json").read_text())["quantization_config"]["modules_to_not_convert"]
        in_full = {f"{module}.weight" for module in skipped if module.endswith("mlp.down_proj")}
    assert in_full == ({f"model.layers.{layer}.mlp.down_proj.weight" for layer in (0, 1)} if form == "mixed" else set())
    for row, ours in zip(rows([2, 13]), lancet_logits(folder, rows([2, 13]), "f32", tmp_path), strict=True):
        with torch.no_grad():
            theirs = model(torch.tensor([row])).logits[0].float()
        nmse = float(((theirs - ours) ** 2).sum() / (ours**2).sum())
        print(name, form, nmse)
        assert nmse <= TOLERANCES[name]


# int8: bitsandbytes quantises activations too. The others compute weights from scales in another type than the format says.
TOLERANCES = {"nf4": 5e-6, "int8": 1e-3, "compressed-4": 1e-6, "fp8-blocks": 1e-11}
