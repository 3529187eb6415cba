"""The oracle of attention's kernels against torch's own attention and its gradients in f64."""
import numpy as np
import pytest
import torch
from attention_oracle import Attention, Layout, Numbers
from stored_types import EXACT


def torch_attention(layout, tensors, scale, cap):
    """Row by row, with a mask."""
    query, key, value, pool_key, pool_value = tensors
    group = query.shape[1] // key.shape[1]
    out = []
    for m, (row, place) in enumerate(zip(layout.query_rows, layout.query_places, strict=True)):
        own, earlier = slice(*layout.token_bounds[row : row + 2]), list(layout.earlier[row])
        keys, values = (
            torch.cat([pool[:, earlier].transpose(0, 1), fresh[own]]).repeat_interleave(group, 1) for pool, fresh in ((pool_key, key), (pool_value, value))
        )
        scores = scale * torch.einsum("hc,shc->hs", query[m], keys)
        scores = cap * torch.tanh(scores / cap) if cap else scores
        scores = scores.masked_fill(~torch.from_numpy(layout.seen(row, place)), -torch.inf)
        out.append(torch.einsum("hs,shc->hc", scores.softmax(-1), values))
    return torch.stack(out)


@pytest.mark.parametrize(("window", "cap"), [(0, 0.0), (3, 0.0), (0, 2.0)])
def test_the_oracle_is_torchs_attention(window, cap):
    layout = Layout((3, 1, 4), ((4, 0, 2), (), (1, 1)), (0, 2, 3, 4, 7), window)
    rng = np.random.default_rng(3)
    shapes = [(5, 4, 6), (8, 2, 6), (8, 2, 6), (2, 5, 6), (2, 5, 6), (5, 4, 6)]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    found = Attention(layout, Numbers(*(array.astype(EXACT) for array in arrays)), 0.4, cap)
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays[:5]]
    out = torch_attention(layout, tensors, 0.4, cap)
    expected = [out.detach(), *torch.autograd.grad(out, tensors[:3], torch.tensor(arrays[5]))]
    for got, tensor in zip((found.out, found.grad_query, found.grad_key, found.grad_value), expected, strict=True):
        assert np.abs(got.astype(float) - tensor.numpy()).max() < 1e-13
