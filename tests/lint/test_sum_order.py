"""What a GPU adds up in any order gives other bits the next time. Each call that might is named here, with why it does not.

tests/support/sum_order.h refuses on fake devices what does, by its numbers; this finds what no test runs there.
"""
import re

import pytest
from cpp_source import REPOSITORY, load_sources, source

ANYWHERE = (
    r"index_add|index_copy|index_reduce|index_put|_index_put_impl|scatter|scatter_add|scatter_reduce|masked_scatter|put(?=_)|(?<=::)put|bincount|histc"
    r"|cumsum|cumprod|logcumsumexp|kthvalue|median|nanmedian|embedding_bag|(?!has_attention\b)\w*attention\w*"
)
# In the backward pass they add, so where a gradient may come along.
READS = r"index_select|gather|take_along_dim|embedding"
WITH_GRADIENTS = ("models/", "src/training/", "src/kernels/")

UNIQUE = "no place comes twice"
NO_GRADIENT = "no gradient comes this way"
VALUE_ALONE = "the place that is found with it may differ, the number does not; only that is used"
WHOLE = "whole numbers add up exactly, in any order"
ATTENTION = "docs/reliability.md: on GPUs attention's gradients add in any order"
TWICE = "at most two gradients meet that are not zero, a label's and the drift's: they make one sum in either order"
# (file, operation): why its result has one order
HAS_AN_ORDER = {
    ("editors/nse.cpp", "index_copy"): UNIQUE,
    ("models/batching.cpp", "index_select"): NO_GRADIENT,
    ("models/blocks/attention.cpp", "index_select"): "a place that comes twice is padding, whose gradients are zero",
    ("models/mixers/recurrent_mixer.cpp", "gather"): NO_GRADIENT,
    ("models/mixers/recurrent_mixer.cpp", "index_select"): "a place that comes twice is padding, whose gradients are zero",
    ("models/blocks/experts.cpp", "bincount"): WHOLE,
    ("models/blocks/experts.cpp", "gather"): UNIQUE,
    ("models/blocks/experts.cpp", "scatter"): UNIQUE,
    ("models/blocks/experts.cpp", "index_copy"): UNIQUE,
    ("models/blocks/experts.cpp", "index_select"): "permutations: no place comes twice",
    ("models/blocks/sequence_info.cpp", "index_copy"): UNIQUE,
    ("models/blocks/sequence_info.cpp", "index_select"): NO_GRADIENT,
    ("models/blocks/packed_attention.cpp", "index_select"): NO_GRADIENT,
    ("models/blocks/sequence_info.cpp", "bincount"): WHOLE,
    ("models/blocks/sequence_info.cpp", "cumsum"): WHOLE,
    ("models/causal_lm.cpp", "embedding"): "no weight is a leaf of autograd",
    ("models/cumulative_sums.cpp", "cumsum"): "of host tensors alone",
    ("models/generate.cpp", "index_select"): NO_GRADIENT,
    ("models/generate.cpp", "gather"): NO_GRADIENT,
    ("models/batching.cpp", "gather"): "of ranks, not of a tensor",
    ("src/deltas/delta_filters.cpp", "kthvalue"): VALUE_ALONE,
    ("src/editor_parts/automatic_options.cpp", "median"): VALUE_ALONE,
    ("src/editor_parts/layered_editor.cpp", "index_copy"): UNIQUE,
    ("src/editor_parts/layered_options.cpp", "index_copy"): UNIQUE,
    ("src/editor_parts/layer_passes.cpp", "median"): VALUE_ALONE,
    ("src/editor_parts/layer_passes.cpp", "index_copy"): UNIQUE,
    ("src/kernels/attention/attention.cpp", "scaled_dot_product_attention"): ATTENTION,
    ("src/kernels/attention/ragged_attention.cpp", "index_copy"): UNIQUE,
    ("src/kernels/attention/ragged_attention.cpp", "index_select"): UNIQUE,
    ("src/kernels/attention/attention.cpp", "_flash_attention_forward"): NO_GRADIENT,
    ("src/kernels/gram.cpp", "index_select"): NO_GRADIENT,
    ("src/kernels/linear.cpp", "gather"): "one place a row",
    ("src/statistics/curvature.cpp", "cumsum"): "of host tensors alone",
    ("src/tracing/causal_trace.cpp", "index_copy"): UNIQUE,
    ("src/training/row_states.cpp", "index_copy"): UNIQUE,
    ("src/training/activations.cpp", "index_select"): NO_GRADIENT,
    ("src/training/activations.cpp", "scatter"): "one place a row",
    ("src/training/activations.cpp", "take_along_dim"): NO_GRADIENT,
    ("src/training/row_states.cpp", "index_select"): NO_GRADIENT,
    ("src/training/row_states.cpp", "index_copy"): UNIQUE,
    ("src/training/row_states.cpp", "index_select"): UNIQUE,
    ("src/training/text_batch.cpp", "index_copy"): UNIQUE,
    ("src/training/text_batch.cpp", "index_select"): "no place comes twice, or with equal gradients",
    ("src/training/text_training.cpp", "index_select"): NO_GRADIENT,
    ("src/training/value_batch.cpp", "index_copy"): UNIQUE,
    ("src/training/value_batch.cpp", "index_select"): TWICE,
    ("src/training/value_optimizer.cpp", "index_copy"): UNIQUE,
    ("src/training/value_optimizer.cpp", "index_select"): NO_GRADIENT,
}


def calls(sources):
    """(file, operation) -> its first line."""
    found = {}
    for file in sources:
        path = str(file.path)
        if file.folder is None:
            continue
        names = f"{ANYWHERE}|{READS}" if path.startswith(WITH_GRADIENTS) else ANYWHERE
        for match in re.finditer(rf"(?:\.|->|\b(?:at|torch|at::native)::)({names})_?(?:out|outf)?\s*\(", file.code):
            found.setdefault((path, match[1]), file.line_of(match.start()))
    return found


def test_what_a_gpu_adds_has_an_order():
    found = calls(load_sources(REPOSITORY))
    unknown = [f"{path}:{found[path, name]}: {name}" for path, name in sorted(found.keys() - HAS_AN_ORDER.keys())]
    assert not unknown, "does a GPU do it in one order? If so, say why in HAS_AN_ORDER; else give each number a slot of its own"
    assert not HAS_AN_ORDER.keys() - found.keys(), "rows of calls that are gone"


def test_own_kernels_add_in_one_order():
    texts = {path.name: path.read_text() for path in (REPOSITORY / "src" / "kernels" / "device").iterdir() if path.suffix in (".cu", ".h")}
    assert any(name.endswith(".cu") for name in texts)
    assert not [name for name, text in texts.items() if re.search(r"\batomic[A-Z]\w*\s*\(|\bred\.|\batom\.", text)]


@pytest.mark.parametrize(
    "text, name",
    [
        ("none_N.index_add(0, row_L, label_L)", "index_add"), ("x.index_add_(0, i, y)", "index_add"), ("x.cumsum(1, at::kDouble)", "cumsum"),
        ("at::scatter_add(x, 0, i, y)", "scatter_add"), ("x.index_put_({i}, y, true)", "index_put"), ("torch::bincount(x)", "bincount"),
        ("at::cumsum_out(y, x, 1)", "cumsum"), ("at::_efficient_attention_forward(q)", "_efficient_attention_forward"), ("x->put_(i, y)", "put"),
    ],
)  # fmt: skip
def test_calls_finds(text, name):
    assert list(calls([source("src/eval/a.cpp", text)])) == [("src/eval/a.cpp", name)]


def test_calls_that_add_gradients_are_looked_for_where_there_are_some():
    text = "x.index_select(0, i); x.gather(1, i);"
    assert set(calls([source("models/a.cpp", text)])) == {("models/a.cpp", "index_select"), ("models/a.cpp", "gather")}
    assert not calls([source("src/eval/a.cpp", text), source("tests/unit/a.cpp", "x.cumsum(0)")])


def test_calls_lets_pass():
    assert not calls([source("src/eval/a.cpp", 'gather_rows(x); outputs.push_back(x); attention_mask(x); "x.cumsum(0)"; // x.cumsum(0)')])
