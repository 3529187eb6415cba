"""The random checkpoints themselves: files say what the model is, and each feature shows in the logits."""
import functools
import random

import family_checkpoints
import pytest
import torch
from engine import ROOT, nmse
from family_checkpoints import VARIANTS, load, make_checkpoint, make_net, set_to_default

SHOWS = 1e-3  # a feature that is lost changes the logits by more; parity is asked to 1e-9
SHOWS_ACTIVATION = 1e-8  # the tanh form differs from the exact one by this little
LENGTHS = [13, 60]  # within a window and a rotary embedding's original length, and beyond
TOKENIZER = ROOT / "data" / "demo-model"


def rows():
    rng = random.Random(5)
    return [torch.tensor([[rng.randrange(3, 2000) for _ in range(length)]]) for length in LENGTHS]


def logits(net):
    return torch.cat([net(row).logits[0] for row in rows()])


@functools.lru_cache(maxsize=1)  # tests of one variant come one after the other
def logits_with_all(name):
    return logits(make_net(VARIANTS[name]))


def taken_away():
    return [(name, index) for name, variant in VARIANTS.items() for index in range(len(variant.without))]


def defaults():
    return [(name, part) for name, variant in VARIANTS.items() for part in variant.defaults]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_files_are_the_model(name, tmp_path):
    written = logits_with_all(name)
    assert written.isfinite().all()
    read = logits(load(make_checkpoint(name, tmp_path / name, TOKENIZER)))
    assert nmse(read, written) < 1e-10


@pytest.mark.parametrize("name, index", taken_away())
def test_a_setting_shows(name, index):
    variant = VARIANTS[name]
    assert nmse(logits(make_net(variant, variant.without[index])), logits_with_all(name)) > SHOWS


@pytest.mark.parametrize("name, part", defaults())
def test_a_parameter_shows(name, part):
    net = make_net(VARIANTS[name])
    set_to_default(net, part)
    assert nmse(logits(net), logits_with_all(name)) > SHOWS


@pytest.mark.parametrize("other", ["gelu", "gelu_new", "gelu_fast"])
def test_neox_s_activations_can_be_told_apart(other):
    """gelu_new and gelu_fast are one function, to rounding."""
    by_name = logits(make_net(VARIANTS["neox_gelu_new"]))
    difference = nmse(logits(make_net(VARIANTS["neox_gelu_new"], dict(hidden_act=other))), by_name)
    assert difference > SHOWS_ACTIVATION if other == "gelu" else difference < 1e-10


def test_longrope_goes_by_the_length_of_the_row():
    """A row within the original length takes the short factors, a longer one the long factors."""
    variant = VARIANTS["phi3_longrope"]
    nets = [make_net(variant, only) for only in (family_checkpoints.ONLY_SHORT, family_checkpoints.ONLY_LONG)]
    for row, same in zip(rows(), nets, strict=True):
        assert nmse(make_net(variant)(row).logits, same(row).logits) < 1e-12


def test_bf16_files_hold_bf16(tmp_path):
    folder = make_checkpoint("gemma2", tmp_path / "bf16", TOKENIZER, torch.bfloat16)
    assert all(parameter.dtype == torch.bfloat16 for parameter in load(folder, "auto").parameters())
    assert nmse(logits(load(folder)), logits(make_net(VARIANTS["gemma2"]))) < 1e-2
