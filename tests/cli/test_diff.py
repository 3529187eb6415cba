"""`lancet diff`, as a user runs it."""
import json
import shutil

import pytest
import torch
from conftest import DATA
from safetensors.torch import load_file, save_file
from test_bad_input import CONFIG, refuses

DEMO = DATA / "demo-model"
DOWN = "model.layers.1.mlp.down_proj.weight"


def change(folder, changes, dtype=None):
    """Adds to tensors of a model folder; a tensor that is not there comes, one with None goes."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name, delta in changes.items():
        if delta is None:
            del tensors[name]
        else:
            old = tensors.get(name)
            tensors[name] = (delta if old is None else (old.double() + delta)).to((dtype or old.dtype) if old is not None else delta.dtype)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})


def low_rank(rank, shape=(256, 768), size=1.0):
    generator = torch.Generator().manual_seed(rank)
    left, right = torch.randn(shape[0], rank, generator=generator), torch.randn(rank, shape[1], generator=generator)
    product = left.double() @ right.double()
    return size * product / product.norm()


def diff(lancet, *arguments):
    return lancet.run("diff", *arguments, "--devices", "cpu")


def report_of(lancet, *arguments):
    result = diff(lancet, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_model_and_itself(lancet):
    report = report_of(lancet, DEMO, lancet.copy_model())
    assert report["format"] == "lancet-diff-1"
    assert report["weights"] == {"equal_bytes": 74, "equal_numbers": 0, "different": 0}
    assert not any(report[key] for key in ("different", "other_shapes", "only_before", "only_after", "config", "files", "adapter"))


def test_every_kind_of_difference_is_told(lancet):
    model = lancet.copy_model()
    change(model, {DOWN: low_rank(3, size=20), "model.norm.weight": torch.ones(256), "lm_head.weight": torch.zeros(4096, 256, dtype=torch.bfloat16)})
    change(model, {"model.layers.2.mlp.up_proj.weight": 0.05 * torch.randn(768, 256, generator=torch.Generator().manual_seed(1))})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False, "rms_norm_eps": 1e-6}))
    (model / "tokenizer_config.json").write_text("{}")
    (model / "special_tokens_map.json").unlink()
    result = diff(lancet, DEMO, model)
    assert result.returncode == 0, result.stderr
    for part in ("71 weights of equal bytes", "3 differ", DOWN, "rounding", "(dense)", "in the second alone: lm_head.weight",
                 "config.json: rms_norm_eps: 1e-05, then 1e-06", "files of other content: tokenizer_config.json", "files of the first alone: special_tokens_map.json"):  # fmt: skip
        assert part in result.stdout, result.stdout
    report = report_of(lancet, DEMO, model)
    assert report["only_after"] == ["lm_head.weight"] and report["only_before"] == []
    assert set(report["config"]) == {"tie_word_embeddings", "rms_norm_eps"}
    assert report["files"] == {"special_tokens_map.json": "only_before", "tokenizer_config.json": "other"}
    weights = {weight["weight"]: weight for weight in report["different"]}
    assert weights[DOWN]["spectrum"]["rank"] == 3 and weights[DOWN]["spectrum"]["low_rank"]
    assert abs(weights[DOWN]["norm"] - 20) < 0.01 and weights[DOWN]["shape"] == [256, 768]
    assert weights["model.norm.weight"]["spectrum"] is None and weights["model.norm.weight"]["changed"] == 256
    assert not weights["model.layers.2.mlp.up_proj.weight"]["spectrum"]["low_rank"]


def test_other_types_have_equal_numbers(lancet):
    """f32 holds every number of bf16."""
    model = lancet.copy_model()
    tensors = load_file(model / "model.safetensors")
    save_file({name: tensor.float() for name, tensor in tensors.items()}, model / "model.safetensors", metadata={"format": "pt"})
    assert report_of(lancet, DEMO, model)["weights"] == {"equal_bytes": 0, "equal_numbers": 74, "different": 0}


def test_a_quantised_model_is_compared_as_it_unpacks(lancet, shallow):
    result = lancet.run("quantise", shallow, "--format", "gptq", "--corpus", DATA / "requests" / "demo-corpus.txt",
                        "--out", lancet.folder / "packed", "--devices", "cpu", "--tokens", 4000)  # fmt: skip
    assert result.returncode == 0, result.stderr
    report = report_of(lancet, shallow, lancet.folder / "packed")
    assert report["weights"] == {"equal_bytes": 6, "equal_numbers": 0, "different": 14}
    for weight in report["different"]:
        assert weight["type"] == {"before": "BF16", "after": "gptq"}
        assert 0.01 < weight["relative_norm"] < 0.3, weight


def test_the_adapter_has_what_is_said(lancet):
    model = lancet.copy_model()
    change(model, {DOWN: low_rank(3, size=20), "model.layers.0.self_attn.q_proj.weight": low_rank(40, (256, 256), 30), "model.norm.weight": torch.ones(256)})
    out = lancet.folder / "found"
    result = diff(lancet, DEMO, model, "--out", out, "--rank", 16)
    assert result.returncode == 0, result.stderr
    assert "not in the adapter: model.norm.weight" in result.stdout and "rank 16" in result.stdout, result.stdout
    report = json.loads((out / "diff.json").read_text())
    assert report["adapter"]["rank"] == 16 and report["adapter"]["modules"] == 2
    base, other = load_file(DEMO / "model.safetensors"), load_file(model / "model.safetensors")
    adapter = load_file(out / "adapter_model.safetensors")
    lost = {weight["weight"]: weight["adapter"] for weight in report["different"]}
    assert lost["model.norm.weight"]["directions"] == 0 and "matrix" in lost["model.norm.weight"]["left_out"]
    assert (lost[DOWN]["directions"], lost["model.layers.0.self_attn.q_proj.weight"]["directions"]) == (3, 16)
    for name in (DOWN, "model.layers.0.self_attn.q_proj.weight"):
        module = name.removesuffix(".weight")
        pair = [adapter[f"base_model.model.{module}.lora_{side}.weight"].double() for side in "BA"]
        rest = (other[name].double() - base[name].double() - pair[0] @ pair[1]).norm().item()
        assert abs(rest - lost[name]["lost_norm"]) < 1e-4 * rest
    refuses(lancet, diff(lancet, DEMO, model, "--out", out), CONFIG, "exists already", "--replace")
    assert diff(lancet, DEMO, model, "--out", out, "--replace").returncode == 0


def test_nothing_for_an_adapter_is_refused(lancet):
    model = lancet.copy_model()
    refuses(lancet, diff(lancet, DEMO, model, "--out", lancet.folder / "found"), CONFIG, "an adapter can have", "got none")
    change(model, {"model.norm.weight": torch.ones(256)})
    refuses(lancet, diff(lancet, DEMO, model, "--out", lancet.folder / "found"), CONFIG, "an adapter can have", "got others")
    assert not (lancet.folder / "found").exists()


def test_other_families_are_refused(lancet):
    model = lancet.copy_model()
    config = json.loads((model / "config.json").read_text()) | {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": None}
    for key in ("attention_bias", "mlp_bias", "pretraining_tp"):
        config.pop(key)
    (model / "config.json").write_text(json.dumps(config))
    refuses(lancet, diff(lancet, DEMO, model), CONFIG, "expected a model of the family", "Llama", "got Mistral")


# ---- journals ----


def edit(lancet, name, requests):
    path = lancet.folder / f"{name}.json"
    path.write_text(json.dumps(requests))
    job = lancet.job(requests__path=str(path), requests__limit=None, evaluate=[], editor__values__steps=2, output__dir=str(lancet.folder / name))
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    return lancet.folder / name


def request(id, target, prompt="{} was employed in", subject="Francis Hagerup"):
    return {"id": id, "prompt": prompt, "subject": subject, "target": target}


def test_edits_are_compared_by_their_facts(lancet):
    first = edit(lancet, "first", [request("a", "Oslo"), request("b", "Rome", subject="Lerin Duarte"), request("c", "Paris", "{} lives in")])
    second = edit(lancet, "second", [request("x", "Rome", subject="Lerin Duarte"), request("y", "Vienna"), request("z", "Lyon", "{} died in")])
    result = lancet.run("diff", first, second, "--edits", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["format"] == "lancet-edits-diff-1" and report["same_base"] and report["common"] == 1
    assert [edit["id"] for edit in report["only_before"]] == ["c"] and [edit["id"] for edit in report["only_after"]] == ["z"]
    assert [(pair["before"]["target"], pair["after"]["target"]) for pair in report["contradictions"]] == [("Oslo", "Vienna")]
    text = lancet.run("diff", first, second, "--edits").stdout
    for part in ("1 edit in both, 1 in the first alone, 1 in the second alone, 1 that contradict each other",
                 "first: Francis Hagerup lives in -> Paris", "contradiction: Francis Hagerup was employed in -> Oslo, and Vienna"):  # fmt: skip
        assert part in text, text
    refuses(lancet, lancet.run("diff", first, DEMO, "--edits"), CONFIG, "demo-model", "edits/journal.jsonl", "without --edits")
    refuses(lancet, lancet.run("diff", first, second, "--edits", "--out", "x"), CONFIG, "--edits", "--out")
    shutil.rmtree(second)


@pytest.mark.parametrize(("arguments", "parts"), [(["nowhere"], ["nowhere"]), (["--rank", "0"], ["--rank"]), (["--rank", "513"], ["--rank"])])
def test_bad_input(lancet, arguments, parts):
    result = diff(lancet, DEMO, *([DEMO] if "--rank" in arguments else []), *arguments)
    assert result.returncode in (2, 3) and all(part in result.stderr for part in parts), result.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_found_is_applied_elsewhere(lancet, dtype):
    """`lancet apply` of the adapter gives the checkpoint that it was found from."""
    base, model = lancet.copy_model(), lancet.out.parent / "edited"
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(base / "model.safetensors").items()}
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    shutil.copytree(base, model)
    change(model, {DOWN: low_rank(4), "model.layers.2.mlp.down_proj.weight": low_rank(7)})
    found, applied = lancet.out.parent / "found", lancet.out.parent / "applied"
    assert diff(lancet, base, model, "--out", found).returncode == 0
    shutil.move(base, base.parent / "moved")
    refuses(lancet, lancet.run("apply", found, "--out", applied), CONFIG, "base_model_name_or_path", "--to")
    result = lancet.run("apply", found, "--to", base.parent / "moved", "--out", applied)
    assert result.returncode == 0 and DOWN in result.stdout, result.stderr
    record = json.loads((applied / "apply.json").read_text())
    assert record["output"] == "checkpoint" and [weight["rank"] for weight in record["weights"]] == [4, 7]
    expected, got = load_file(model / "model.safetensors"), load_file(applied / "model.safetensors")
    assert expected.keys() == got.keys()
    for name in expected:
        if "down_proj" not in name:
            assert torch.equal(got[name], expected[name]), name
            continue
        error = (got[name].double() - expected[name].double()).norm() / expected[name].double().norm()
        # what bf16 rounds of a weight is 2^-18 / 3 of it
        assert error**2 < (1e-12 if dtype == torch.float32 else 2**-18 / 3), name
    refuses(lancet, lancet.run("apply", found, "--to", base.parent / "moved", "--out", applied), CONFIG, "exists already")
    refuses(lancet, lancet.run("apply", found, "--to", base.parent / "moved", "--out", lancet.out, "--rebase"), CONFIG, "no requests")
    assert not lancet.out.exists()
