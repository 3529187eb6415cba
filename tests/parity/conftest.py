"""Decides where the parity tests find models and binaries; makes the random checkpoints once per run."""
import os
import sys
from pathlib import Path

import pytest
import torch

import checkpoints
from engine import ROOT

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("oracle", "support")]
torch.set_num_threads(1)  # small models; more threads than idle cores wait for each other
torch.set_grad_enabled(False)

DEMO = ROOT / "data" / "demo-model"
MODELS = ["demo", *checkpoints.VARIANTS]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A function from a model's name (one of MODELS) to its folder."""
    made = {"demo": DEMO}

    def folder(name) -> Path:
        if name not in made:
            made[name] = checkpoints.make_checkpoint(name, tmp_path_factory.mktemp("models") / name, DEMO)
        return made[name]

    return folder


@pytest.fixture(scope="session")
def base_of(tmp_path_factory):
    """A function from a family's name to a random checkpoint of it, which nobody changes."""
    from family_checkpoints import make_checkpoint

    made = {}

    def base(model) -> Path:
        if model not in made:
            made[model] = make_checkpoint(model, tmp_path_factory.mktemp("families") / model, DEMO)
        return made[model]

    return base


@pytest.fixture(scope="session")
def twins_of(base_of, tmp_path_factory):
    """A function from a family's name and one of quantised_twins.FORMATS to a quantised folder and its unpacked twin, which nobody changes."""
    from quantised_twins import quantise

    made = {}

    def twins(model, name) -> tuple[Path, Path]:
        if (model, name) not in made:
            root = tmp_path_factory.mktemp("twins")
            made[model, name] = quantise(base_of(model), root / "quantised", root / "twin", name)
        return made[model, name]

    return twins


def pytest_generate_tests(metafunc):
    if "any_model" in metafunc.fixturenames:
        metafunc.parametrize("any_model", MODELS)
