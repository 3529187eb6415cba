"""Ten commands on the demo model, one after another, as somebody tries lancet: `make check` runs them after each change."""
import json

from conftest import DATA, run_ok

FACTS = DATA / "requests" / "demo.json"
MODEL = DATA / "demo-model"


def test_ten_commands_on_the_demo(lancet):
    def run(*arguments):
        return run_ok(lancet.run(*arguments)).stdout

    assert "decoder" in run("inspect", MODEL).lower() or "layers" in run("inspect", MODEL)
    made = run("init", "--model", MODEL, "--requests", FACTS)
    (lancet.folder / "job.yaml").write_text(made)
    small = ["--set", "requests.limit=2", "--set", "statistics.tokens=2000", "--set", f"statistics.cache={lancet.folder / 'cache'}"]
    small += ["--set", "evaluate=[efficacy, specificity, generation]", "--set", f"output.dir={lancet.out}", "--set", "run.threads=1"]
    assert "2 request(s) in the format" in run("doctor", "job.yaml", *small)
    assert "2 requests a batch" in run("plan", "job.yaml", *small)
    edited = run("edit", "job.yaml", *small)
    assert f"written: {lancet.out}" in edited and "2 of 2 edits took" in edited, edited
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["status"] == "done" and report["verdicts"]["success"] == 2
    assert [len(batch["edits"]) for batch in json.loads(run("log", lancet.out, "--json"))["batches"]] == [2]
    fact = report["requests"][0]
    answer = run("generate", "--model", lancet.out, "--prompt", fact["prompt"].replace("{}", fact["subject"]), "--tokens", "4")
    assert fact["target"] in answer, (answer, fact)
    run("export", "adapter", lancet.out, "--out", lancet.folder / "adapter")
    assert (lancet.folder / "adapter" / "adapter_model.safetensors").is_file()
    assert "report.html" in run("report", lancet.out)
    run("undo", lancet.out, "--edits", fact["id"], "--out", lancet.folder / "undone")
    before = fact["continuation"]["before"].split()[0]
    assert before in run("generate", "--model", lancet.folder / "undone", "--prompt", fact["prompt"].replace("{}", fact["subject"]), "--tokens", "4")
