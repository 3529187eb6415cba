"""The forward that make_golden.py writes out, against transformers in f32: the goldens rest on it."""
import make_golden
import pytest
import torch

from engine import assert_rows_close, load_transformers, transformers_logits
from test_logits import rows_for

NMSE_F32 = 1e-10


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_plain_forward_equals_transformers(any_model, model_folder, dtype):
    folder = model_folder(any_model)
    rows = rows_for(folder)
    plain = make_golden.Llama(folder, dtype)
    ours = [plain.forward(torch.tensor([row]))[0] for row in rows]
    assert_rows_close(ours, transformers_logits(load_transformers(folder, "f32"), rows), NMSE_F32)


def test_padding_on_the_right_changes_nothing(model_folder):
    plain, rows = make_golden.Llama(model_folder("untied")), [[1, 5, 9], [1, 7, 11, 13, 17, 19]]
    together = plain.forward(make_golden.padded(rows))
    alone = [plain.forward(torch.tensor([row]))[0] for row in rows]
    assert_rows_close([together[0, :3], together[1]], alone, 1e-24)
