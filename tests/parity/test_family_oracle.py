"""The plain versions on any family: equal to the Llama that is written out, and each edit has the property that defines it."""
import sys

import checkpoints
import pytest
import torch
from engine import ROOT, nmse
from family_checkpoints import make_checkpoint

sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "oracle" / "golden")]
import families  # noqa: E402
import make_families  # noqa: E402
import memit_family  # noqa: E402
from bench import Bench  # noqa: E402
from make_golden import read_lines, read_requests  # noqa: E402
from methods import METHODS  # noqa: E402

DEMO = ROOT / "data" / "demo-model"
REQUESTS, LINES = ROOT / "data/requests/demo.json", read_lines(ROOT / "data/requests/demo-corpus.txt", make_families.LINES)
IDS = torch.randint(3, 2000, (1, 60), generator=torch.Generator().manual_seed(7))


@pytest.fixture(autouse=True)
def with_gradients():
    with torch.enable_grad():
        yield


def test_llama_s_deltas_are_those_of_the_llama_written_out(tmp_path, monkeypatch):
    monkeypatch.setitem(checkpoints.VARIANTS, "one_layer_more", dict(num_hidden_layers=4))  # after the last edited one
    folder = checkpoints.make_checkpoint("one_layer_more", tmp_path / "llama", DEMO)
    written_out, any_family = Bench(folder), families.FamilyBench(folder)
    for bench in (written_out, any_family):
        bench.read_statistics(LINES, make_families.LAYERS)
    sections = make_families.sections(any_family)
    assert len(sections) == 6
    for section, places in sections.values():
        batches = [read_requests(REQUESTS, batch) for batch in places]
        ours, theirs = (METHODS[section["method"]](bench, section, batches) for bench in (any_family, written_out))
        assert [list(deltas) for deltas in ours] == [list(deltas) for deltas in theirs]
        for one, other in zip(ours, theirs):
            assert max(nmse(one[name], other[name]) for name in other) < 1e-20


def one_layer_edit(bench):
    """MEMIT of one layer with plain prompts. Returns before and after: what is left of the residuals, by place; and the share."""
    layer = bench.layers[-1]
    section = dict(method="memit", layers=[layer], values=make_families.VALUES, contexts=["{}"])
    section |= dict(covariance_weight=make_families.covariance_weight(bench))
    requests, model, left = read_requests(REQUESTS, [0, 298, 1]), bench.fresh(section), {}
    place = memit_family.places_of(section, model)
    z = bench.values(model, requests, layer, place, section)
    keys = bench.keys(model, requests, ["{}"], layer).T
    share = keys.T @ torch.linalg.solve(section["covariance_weight"] * bench.covariances[layer] + keys @ keys.T, keys)
    for name in ("before", "after"):
        left[name] = z - bench.at_lookup(model, requests, ["{}"], place[0], layer)[:, 0]
        for weight, delta in memit_family.edit(bench, section, [requests])[0].items() if name == "before" else []:
            model.change(weight, delta)
    return left["before"], left["after"], share


MODELS = make_families.MODELS


@pytest.mark.parametrize("name", MODELS)
def test_an_edit_leaves_the_residual_that_the_system_says(name, tmp_path):
    """r -> r (I - K^T (lambda C + K K^T)^-1 K), to rounding, where a change shows linearly."""
    bench = families.FamilyBench(make_checkpoint(MODELS[name], tmp_path / name, DEMO))
    bench.read_statistics(LINES, make_families.OWN_LAYERS.get(name, make_families.LAYERS))
    before, after, share = one_layer_edit(bench)
    assert nmse(after, before - share.T @ before) < 1e-20
    assert (after.norm(dim=1) < 0.9 * before.norm(dim=1)).all()


def test_after_gemma_2_s_norm_a_change_is_not_linear(tmp_path, monkeypatch):
    """The trap that the place stands for: at the block's output the same system leaves another residual."""
    monkeypatch.setitem(families.FAMILIES["gemma2"], "linear_place", "block")
    bench = families.FamilyBench(make_checkpoint("gemma2", tmp_path / "gemma2", DEMO))
    bench.read_statistics(LINES, make_families.LAYERS)
    before, after, share = one_layer_edit(bench)
    assert nmse(after, before - share.T @ before) > 1e-3


def test_plain_experts_are_transformers_own(tmp_path):
    folder = make_checkpoint("qwen3_moe", tmp_path / "moe", DEMO)
    net = families.load_double(folder)
    with torch.no_grad(), families.double_precision():
        expected = net(IDS).logits
        plain = families.Net(folder).module(IDS).logits
    assert nmse(plain, expected) < 1e-28


def test_an_expert_that_no_request_reaches_is_not_changed(tmp_path):
    bench = families.FamilyBench(make_checkpoint("qwen3_moe", tmp_path / "moe", DEMO))
    bench.read_statistics(LINES, make_families.LAYERS)
    section, _ = make_families.sections(bench)["memit"]
    (deltas,) = memit_family.edit(bench, section, [read_requests(REQUESTS, [1])])
    assert 0 < len(deltas) < 2 * bench.experts(1)


def test_a_conv1d_s_change_is_transposed(tmp_path):
    bench = families.FamilyBench(make_checkpoint("gpt2_inner", tmp_path / "gpt2", DEMO))
    model = bench.fresh({})
    name = model.weight_name("down", 1)
    assert model.weights[name].shape == (64, 96)
    assert model.stored(name, model.weights[name]).equal(bench.net.module.get_parameter(name))
