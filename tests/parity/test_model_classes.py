"""Every causal class of the installed transformers is loaded or refused by name, and docs/model-classes.md says which.

What is loaded has a random checkpoint, whose logits and greedy text are transformers'. All checkpoints are computed by one process.
    test_model_classes.py --write   writes the page anew
"""
import json
import sys
from pathlib import Path

import pytest
import torch
import transformers
from engine import ROOT, lancet_logits_of, lancet_logits_of_all, load_tokenizer, nmse, run_binary, transformers_logits
from family_checkpoints import DENSE, VARIANTS, load, make_checkpoint
from safetensors.torch import save_file
from test_families import LENGTHS, NMSE_F32, TOKENIZER, rows
from test_generate import greedy
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASS_OF

PAGE = ROOT / "docs" / "model-classes.md"
TESTED_ELSEWHERE = {"LlamaForCausalLM": "test_logits.py", "Gemma3ForConditionalGeneration": "gemma3_nested of test_families.py"}


def walk(folder):
    """All classes that are loaded, and those that are refused, with the words: what lancet says to a folder of this class.
    A class that it knows is asked for its sizes."""
    classes = dict(sorted((architecture, kind) for kind, architecture in CLASS_OF.items()))
    for architecture, kind in classes.items():
        (folder / architecture).mkdir()
        (folder / architecture / "config.json").write_text(json.dumps(dict(architectures=[architecture], model_type=kind)))
        save_file({"weight": torch.zeros(1)}, folder / architecture / "model.safetensors")
    said = dict(zip(classes, lancet_logits_of_all([folder / name for name in classes], [[1]], "f32", folder), strict=True))
    refused = {name: words for name, words in said.items() if "unknown family" in words}
    return [name for name in said if name not in refused], refused


def page_of(loaded, refused):
    def listed(names):
        lines, line = [], ""
        for name in names:
            name = f"`{name}`" + ("" if name == names[-1] else ",")
            if len(line) + len(name) > 110:
                lines, line = [*lines, line], ""
            line = f"{line} {name}".strip()
        return "\n".join([*lines, line])

    head = f"transformers {transformers.__version__} has {len(loaded) + len(refused)} causal classes. "
    return f"""# Model classes

{head}Each was tried on a random checkpoint or its config.json.
`tests/parity/test_model_classes.py` compares, and finds a class that a newer version has.

## {len(loaded)} are loaded

Their logits are transformers' to an NMSE of 1e-9 in f32, and so is greedy text.

{listed(loaded)}

## {len(refused)} are refused by name

{listed(list(refused))}
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    return walk(tmp_path_factory.mktemp("classes"))


def test_the_page_says_what_is_loaded_and_what_is_refused(walked):
    assert PAGE.read_text() == page_of(*walked), "tests/parity/test_model_classes.py --write"


def test_a_refusal_names_the_class_and_the_nearest_family(walked):
    _, refused = walked
    assert len(refused) > 50
    for name, words in refused.items():
        assert f"'{name}'" in words and "the nearest is" in words, words


def test_what_is_loaded_has_a_checkpoint_that_is_compared(walked):
    compared = {CLASS_OF[variant.family] for variant in VARIANTS.values()} | set(TESTED_ELSEWHERE)
    assert set(walked[0]) == compared


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("dense")
    return {name: make_checkpoint(name, place / name, TOKENIZER) for name in DENSE}


@pytest.fixture(scope="module")
def theirs(folders):
    return {name: transformers_logits(load(folders[name]), rows(LENGTHS)) for name in DENSE}


def test_logits_equal_transformers(folders, theirs, tmp_path):
    ours = lancet_logits_of(list(folders.values()), rows(LENGTHS), "f32", tmp_path)
    errors = {name: max(nmse(*row) for row in zip(logits, theirs[name], strict=True)) for name, logits in zip(folders, ours, strict=True)}
    print("\n".join(f"{name}: {error:.1e}" for name, error in errors.items()))
    assert {name: error for name, error in errors.items() if not error <= NMSE_F32} == {}


def test_texts_longer_than_a_chunk_equal_transformers(folders, tmp_path):
    """States go from chunk to chunk (64 tokens), the last one not whole."""
    hybrids = ["qwen3_5", "lfm2", "bamba", "falcon_h1", "jamba", "nemotron_h"]
    ours = lancet_logits_of([folders[name] for name in hybrids], rows([150, 70]), "f32", tmp_path)
    for name, logits in zip(hybrids, ours, strict=True):
        expected = transformers_logits(load(folders[name]), rows([150, 70]))
        assert max(nmse(*row) for row in zip(logits, expected, strict=True)) <= NMSE_F32, name


def test_bf16_is_as_close_as_transformers_bf16(folders, theirs, tmp_path):
    """With experts at the middling token: one that rounding sends to another is far off with either."""
    ours = lancet_logits_of(list(folders.values()), rows(LENGTHS), "bf16", tmp_path)
    far = {}
    for name, logits in zip(folders, ours, strict=True):
        exact, half = torch.cat(theirs[name]), torch.cat(transformers_logits(load(folders[name], torch.bfloat16), rows(LENGTHS)))
        errors = [nmse(torch.cat(logits), exact), nmse(half.float(), exact)]
        if any("expert" in key for key in DENSE[name].config):
            errors = [torch.tensor([nmse(*token) for token in zip(some, exact)]).median() for some in (torch.cat(logits), half.float())]
        if not errors[0] <= 1.5 * errors[1]:
            far[name] = errors
    assert far == {}


@pytest.mark.parametrize("name", DENSE)
def test_greedy_text_equals_transformers(name, folders):
    """Token by token with cached keys and values, past the window."""
    prompt, folder = "The mother tongue of Danielle Darrieux is", folders[name]
    ours = json.loads(run_binary("lancet", "generate", "--model", folder, "--prompt", prompt, "--tokens", 24, "--dtype", "f32", "--json"))
    ids, text = greedy(load(folder), load_tokenizer(folder), prompt)
    assert ours == dict(prompt=prompt, text=text, ids=ids)


if __name__ == "__main__":
    import tempfile

    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page_of(*walk(Path(folder))))
