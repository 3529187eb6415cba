"""`lancet trace`, as a user runs it."""
import csv
import json
import xml.etree.ElementTree

import pytest
from conftest import DATA
from safetensors.torch import load_file, save_file
from test_bad_input import CONFIG, refuses

FACTS = DATA / "requests" / "demo.json"
KINDS = ["hidden", "mlp", "attention"]
NUMERIC = 5
CLASSES = ["first subject token", "middle subject tokens", "last subject token"]
CLASSES += ["first subsequent token", "further tokens", "last token"]


def trace(lancet, *arguments):
    common = ["--model", DATA / "demo-model", "--out", lancet.out, "--devices", "cpu", "--dtype", "f32"]
    return lancet.run("trace", *common, *arguments)


def rows_of(lancet):
    with open(lancet.out / "trace.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_file_of_facts(lancet):
    result = trace(lancet, "--facts", FACTS, "--limit", 6, "--samples", 2, "--window", 3)
    assert result.returncode == 0, result.stderr
    for part in ("put back", "peak at layer", "mlp, 3 layers", "average total effect", "suggested layers: ["):
        assert part in result.stdout, result.stdout
    assert {path.name for path in lancet.out.iterdir()} == {"trace.json", "lancet-manifest.json", "trace.csv", *(f"{kind}.svg" for kind in KINDS)}
    report = json.loads((lancet.out / "trace.json").read_text())
    assert report["format"] == "lancet-trace-1" and report["layers"] == 8
    assert report["traced"] == len(report["facts"]) and report["traced"] + report["unknown"] == 6
    assert report["options"]["noise"] == pytest.approx(3 * report["options"]["embedding_deviation"])
    for fact in report["facts"]:
        assert fact["target_true"].startswith(fact["object"].strip()), fact["object"]
        for kind in KINDS:
            effect = fact["indirect_effect"][kind]
            assert [len(row) for row in effect] == [8] * len(fact["tokens"])
            assert all(value == 0 for row in effect[: fact["subject_tokens"][0]] for value in row)
        assert fact["indirect_effect"]["hidden"][-1][-1] == pytest.approx(fact["clean"] - fact["corrupted"])
    average = report["average"]
    assert average["total_effect"] == pytest.approx(average["clean"] - average["corrupted"])
    assert [row["class"] for row in average["token_classes"]] == CLASSES
    table = rows_of(lancet)
    assert len(table) == 3 * 6 * 8
    for row in table:
        effect = average["kinds"][row["kind"]]["indirect_effect"][CLASSES.index(row["token"])][int(row["layer"])]
        assert float(row["indirect_effect"]) == effect
    for kind in KINDS:
        text = (lancet.out / f"{kind}.svg").read_text()
        assert len(xml.etree.ElementTree.fromstring(text).findall(".//{*}rect/{*}title")) == 6 * 8
        assert "prefers-color-scheme: dark" in text and "last subject token" in text


def test_parts_of_a_file_are_parts_of_one_measurement(lancet):
    options = ["--facts", FACTS, "--samples", 1, "--kinds", "hidden", "--keep-unknown", "--json"]
    both = json.loads(trace(lancet, *options, "--limit", 3).stdout)
    lancet.out = lancet.folder / "out2"
    second = json.loads(trace(lancet, *options, "--skip", 1, "--limit", 2).stdout)
    assert both["options"] == second["options"] and both["unknown"] == 0
    for one, other in zip(both["facts"][1:], second["facts"]):
        assert (one["id"], one["index"], one["tokens"]) == (other["id"], other["index"], other["tokens"])
        assert one["corrupted"] == pytest.approx(other["corrupted"], abs=1e-5)


def test_a_damaged_model_and_a_long_prompt_are_told(lancet):
    model = lancet.copy_model()
    weights = load_file(model / "model.safetensors")
    weights["model.norm.weight"][:] = float("nan")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    fact = ["--prompt", "{}, the", "--subject", "Lerin Duarte", "--out", lancet.out]
    result = lancet.run("trace", "--model", model, *fact)
    assert result.returncode == NUMERIC and "is not finite: the model is damaged" in result.stderr, result.stderr
    result = trace(lancet, "--prompt", "{}, the", "--subject", "word " * 600)
    assert result.returncode == CONFIG and "request 0: prompt and target: " in result.stderr and "512 positions" in result.stderr, result.stderr
    assert not lancet.out.exists()


def test_one_fact(lancet):
    result = trace(lancet, "--prompt", "{}, the", "--subject", "Lerin Duarte", "--samples", 2, "--noise", 0.2)
    assert result.returncode == 0, result.stderr
    assert "--window 10: covers all of the model's 8 layers" in result.stderr
    report = json.loads((lancet.out / "trace.json").read_text())
    assert report["options"]["noise"] == 0.2 and report["facts"][0]["target_true"] is None
    first, end = report["facts"][0]["subject_tokens"]
    assert "".join(report["facts"][0]["tokens"][first:end]).strip() == "Lerin Duarte"
    svg = (lancet.out / "hidden.svg").read_text()
    assert report["facts"][0]["tokens"][first].strip() + "*" in svg
    assert {row["token"].rstrip("*") for row in rows_of(lancet)} == set(report["facts"][0]["tokens"])


def test_facts_with_attribute(lancet):
    facts = json.loads(FACTS.read_text())[:4]
    known = [
        {
            "subject": fact["requested_rewrite"]["subject"],
            "prompt": fact["requested_rewrite"]["prompt"].replace("{}", fact["requested_rewrite"]["subject"]),
            "attribute": fact["requested_rewrite"]["target_true"]["str"],
            "template": "{} of another kind",
        }
        for fact in facts
    ]
    path = lancet.write(json.dumps([known[0] | {"attribute": "Zanzibar"}]), "unknown.json")
    refuses(lancet, trace(lancet, "--facts", path), CONFIG, "none of the 1 facts is known to the model", "--keep-unknown")
    path = lancet.write(json.dumps(known), "known.json")
    result = trace(lancet, "--facts", path, "--samples", 1, "--kinds", "mlp", "--window", 2, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["traced"] + report["unknown"] == 4 and report["traced"] > 0


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["expected --facts FILE, or --prompt and --subject"]),
        (["--facts", FACTS, "--prompt", "x"], ["expected either --facts FILE or --prompt and --subject"]),
        (["--prompt", "The capital of {} is"], ["--prompt and --subject"]),
        (["--prompt", "Rome is in", "--subject", "Paris"], ["--prompt", "neither {} nor the subject"]),
        (["--facts", "nowhere.json"], ["nowhere.json"]),
        (["--facts", FACTS, "--skip", 100000], ["--skip 100000: leaves none of the"]),
        (["--facts", FACTS, "--kinds", "hidden,mpl"], ["--kinds hidden,mpl: 'mpl'"]),
        (["--facts", FACTS, "--kinds", "mlp,mlp"], ["mlp stands twice"]),
        (["--prompt", "{} is", "--subject", "Rome", "--limit", 1], ["--skip and --limit"]),
    ],
)
def test_bad_arguments(lancet, arguments, parts):
    refuses(lancet, trace(lancet, *arguments), CONFIG, *parts)


def test_arguments_out_of_range(lancet):
    for arguments in (["--samples", 0], ["--noise", 0], ["--noise", -1], ["--window", 0], ["--limit", 0], ["--skip", -1]):
        assert trace(lancet, "--facts", FACTS, *arguments).returncode == CONFIG, arguments


def test_facts_without_a_subject_are_refused(lancet):
    path = lancet.write([{"prompt": "The sky is", "target": "green", "target_true": "blue"}], "facts.json")
    refuses(lancet, trace(lancet, "--facts", path), CONFIG, "fact 0", "has no subject")


def test_an_existing_folder_stays(lancet):
    lancet.out.mkdir()
    result = trace(lancet, "--facts", FACTS)
    assert result.returncode == CONFIG and "exists already" in result.stderr
    assert list(lancet.out.iterdir()) == []
