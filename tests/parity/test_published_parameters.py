"""Parameters of public models by their config.json alone, as `lancet inspect` and as transformers count them."""
import json

import pytest
import torch
from engine import ROOT, run_binary
from transformers import AutoConfig, AutoModelForCausalLM

FILES = sorted((ROOT / "tests" / "fixtures" / "published").glob("*.json"))


def transformers_parameters(file):
    """Tied embeddings once; of a multi-modal model the text model. Nothing is allocated."""
    config = AutoConfig.for_model(**json.loads(file.read_text()))
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(getattr(config, "text_config", config)).num_parameters()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_parameters_are_as_transformers_counts_them(file):
    assert json.loads(run_binary("lancet", "inspect", file, "--json"))["parameters"] == transformers_parameters(file)
