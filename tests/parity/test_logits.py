"""lancet's logits against transformers' in f32 and bf16, and against the plain Python forward in f64."""
import random
import shutil

import pytest
import torch

import checkpoints
from engine import assert_rows_close, lancet_logits, lancet_logits_of_all, load_tokenizer, load_transformers, nmse, transformers_logits
from safetensors.torch import load_file, save_file

NMSE_F32 = 1e-10
NMSE_F64 = 1e-20  # both sides are plain f64; leaves room for another order of summation only
NMSE_BF16 = 2e-4  # transformers in bf16 differs from itself (f32; eager or padded bf16) by up to 5e-5
TEXTS = ["The mother tongue of Danielle Darrieux is", "Once upon a time", "Toyota Alphard is produced by Toyota."]
LENGTHS = [1, 2, 13, 60]


def rows_for(folder):
    """Real text, and random ids of lengths that differ, so that padding and long positions are tried."""
    tokenizer, rng = load_tokenizer(folder), random.Random(5)
    rows = [tokenizer(text)["input_ids"] for text in TEXTS]
    return rows + [[rng.randrange(3, 2000) for _ in range(length)] for length in LENGTHS]


def test_f32_equals_transformers(any_model, model_folder, tmp_path):
    folder = model_folder(any_model)
    rows = rows_for(folder)
    theirs = transformers_logits(load_transformers(folder, "f32"), rows)
    assert_rows_close(lancet_logits(folder, rows, "f32", tmp_path), theirs, NMSE_F32)


def test_f64_equals_the_plain_forward(any_model, model_folder, tmp_path):
    import make_golden

    folder = model_folder(any_model)
    rows = rows_for(folder)
    plain = make_golden.Llama(folder)
    theirs = [plain.forward(torch.tensor([row]))[0] for row in rows]
    assert_rows_close(lancet_logits(folder, rows, "f64", tmp_path), theirs, NMSE_F64)


def test_bf16_is_as_close_as_bf16_allows(model_folder, tmp_path):
    folder = model_folder("demo")
    rows = rows_for(folder)
    theirs = transformers_logits(load_transformers(folder, "bf16"), rows)
    assert_rows_close(lancet_logits(folder, rows, "bf16", tmp_path), theirs, NMSE_BF16)


@pytest.mark.parametrize("variant", ["llama3_rope", "attention_bias", "mlp_bias"])
def test_the_feature_of_a_random_checkpoint_shows(variant, model_folder):
    """Without the feature the logits differ, so a loader that ignores it cannot pass."""
    import make_golden

    plain, row = make_golden.Llama(model_folder(variant)), torch.tensor([rows_for(model_folder(variant))[-1]])
    with_feature = plain.forward(row)
    if variant == "llama3_rope":
        plain.frequencies = make_golden.rope_frequencies(dict(rope_parameters=checkpoints.plain_rope()), plain.head_dim)
    else:
        plain.weights = {name: weight for name, weight in plain.weights.items() if not name.endswith("bias")}
    assert nmse(plain.forward(row), with_feature) > 1e-3


def test_a_tied_head_that_differs_is_refused(model_folder, tmp_path):
    """transformers takes embedding and head for two tables then, whatever config.json says."""
    folder, rows = tmp_path / "model", [[1, 5, 9]]
    shutil.copytree(model_folder("tied_both_stored"), folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"][7] += 1
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    before, after = (transformers_logits(load_transformers(one, "f32"), rows)[0] for one in (model_folder("tied_both_stored"), folder))
    assert not torch.equal(before[:, 7], after[:, 7]) and torch.equal(before[:, 8:], after[:, 8:])
    (words,) = lancet_logits_of_all([folder], rows, "f32", tmp_path)
    assert "lm_head.weight: expected the numbers of model.embed_tokens.weight, as config.json ties the two" in words
