"""transformers in float64 throughout: the plain Llama shows that nothing is left in float32, the families that it runs."""
import make_golden
import pytest
import torch
from engine import ROOT, nmse
from family_checkpoints import VARIANTS, load, make_checkpoint

DEMO = ROOT / "data" / "demo-model"
IDS = torch.randint(3, 2000, (1, 60), generator=torch.Generator().manual_seed(7))
ONE_OF_EACH = {variant.family: name for name, variant in reversed(VARIANTS.items())}


def logits_in_double(folder):
    from double_precision import double_precision, load_double

    net = load_double(folder)
    with double_precision():
        return net(IDS).logits


def test_llama_is_the_one_written_out():
    assert nmse(logits_in_double(DEMO), make_golden.Llama(DEMO).forward(IDS)) < 1e-28


# Rounding goes from token to token where layers have states, and experts are chosen by what it reaches.
BOUNDS = {"qwen3_5_text": 1e-10, "qwen3_next": 1e-10, "qwen3_5_moe_text": 1e-7}


@pytest.mark.parametrize("family", ONE_OF_EACH)
def test_float32_is_near(family, tmp_path):
    folder = make_checkpoint(ONE_OF_EACH[family], tmp_path / family, DEMO)
    assert 1e-15 < nmse(load(folder)(IDS).logits, logits_in_double(folder)) < BOUNDS.get(family, 1e-11)
