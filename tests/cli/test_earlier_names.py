"""Keys that had another name in an earlier version hold for one more, with a line that says so."""
import json

from conftest import run_ok
from test_bad_input import CONFIG, refuses

FACT = {"id": "1", "prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}
QUICK = {"run__dtype": "f32", "editor__values": {"steps": 4, "lr": 0.5, "clamp": 4.0}, "requests": [FACT]}
RENAMED = (
    "evaluate.costs is called evaluate.side_effects now",
    "editor.covariance_weight.attained_share is called editor.covariance_weight.realised_share now",
)


def parts_of(lancet, side_effects, share):
    text = lancet.write("The mother tongue of Leon Blum is French.\n", "text.txt")
    return {
        "evaluate": {"metrics": ["efficacy"], side_effects: {"text": str(text)}},
        "editor__covariance_weight": {share: 0.5},
    }


def test_keys_and_conditions_of_an_earlier_version_do_the_same(lancet):
    made = {}
    for side_effects, share in (("costs", "attained_share"), ("side_effects", "realised_share")):
        out = lancet.folder / side_effects
        result = run_ok(lancet.edit(lancet.job(**QUICK, **parts_of(lancet, side_effects, share), output={"dir": str(out)})))
        assert [result.stderr.count(line) for line in RENAMED] == ([1, 1] if side_effects == "costs" else [0, 0]), result.stderr
        job = (out / "job.yaml").read_text()
        assert "side_effects:" in job and "realised_share:" in job and "costs:" not in job and "attained_share" not in job
        report = json.loads((out / "report.json").read_text())
        assert report["side_effects"]["text_kl"]["after"] > 0
        made[side_effects] = [(out / "model.safetensors").read_bytes(), report["side_effects"], report["costs"]]
    assert made["costs"] == made["side_effects"] and made["costs"][1] == made["costs"][2]
    found = {}
    for word in ("success", "took"):
        where = ["log", out, "--where", f"{word} == true"]
        shown = run_ok(lancet.run(*where))
        assert (f"'{word} == true': took is called success now" in shown.stderr) == (word == "took"), shown.stderr
        found[word] = shown.stdout, json.loads(run_ok(lancet.run(*where, "--json")).stdout)
    assert found["success"] == found["took"]


def test_both_names_are_refused(lancet):
    parts = parts_of(lancet, "costs", "attained_share")
    parts["evaluate"]["side_effects"] = parts["evaluate"]["costs"]
    refuses(lancet, lancet.edit(lancet.job(**QUICK, **parts)), CONFIG, RENAMED[0], "expected one of the two names")


def test_a_later_job_goes_on_under_the_present_name(lancet):
    first = {"dir": str(lancet.folder / "first"), "state": True}
    run_ok(lancet.edit(lancet.job(**QUICK, **parts_of(lancet, "costs", "attained_share"), output=first)))
    later = QUICK | {"requests": [{**FACT, "id": "2", "subject": "Rome"}]}
    run_ok(lancet.edit(lancet.job(**later, **parts_of(lancet, "side_effects", "realised_share"), continue_from=first["dir"])))
