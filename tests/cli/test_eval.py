"""Protocols, what editing cost, and one model beside another."""
import json
import shutil

import pytest
from conftest import CHATML, DATA, run_ok
from pages import documents_of

FACTS = DATA / "requests" / "demo.json"
CONFIG, CHECKPOINT = 2, 3


def side_effects(lancet, **changes):
    facts = json.loads(FACTS.read_text())[20:24]
    lines = [
        {"question": fact["requested_rewrite"]["prompt"].replace("{}", fact["requested_rewrite"]["subject"]),
         "choices": [fact["requested_rewrite"][target]["str"] for target in ("target_new", "target_true")], "answer": 1}
        for fact in facts
    ]
    choices = lancet.write("\n".join(json.dumps(line) for line in lines), "choices.jsonl")
    text = lancet.write("The mother tongue of Leon Blum is French.\nPiranha Games, created in Vancouver.\n", "text.txt")
    return {"text": str(text), "probes": {"path": str(FACTS), "skip": 30, "limit": 6}, "choices": str(choices)} | changes


def evaluate(lancet, **changes):
    return {"metrics": ["efficacy", "generation", "distracted", "counterfact", "easyedit"], "side_effects": side_effects(lancet, **changes)}


def refuses(result, code, *parts):
    assert result.returncode == code, result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr


def test_an_edit_and_an_eval_beside_the_base_model_agree(lancet):
    result = run_ok(lancet.edit(lancet.job(evaluate=evaluate(lancet))))
    assert "text_kl" in result.stdout and "elsewhere" in result.stdout
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["metrics"]["efficacy_prob"]["interval"]["after"] is None, "of so few requests none is said"
    assert report["side_effects"]["text_kl"]["after"] > 0 and report["side_effects"]["text_kl"]["before"] is None
    assert report["side_effects"]["probe_argmax"]["count"] == 6 and report["side_effects"]["choice_accuracy"]["count"] == 4
    assert documents_of((lancet.out / "report.html").read_text())["report"]["side_effects"] == report["side_effects"]

    job = lancet.job(evaluate=evaluate(lancet), model=str(lancet.out), output=None)
    command = ["eval", lancet.write(job, "eval.json"), "--baseline", DATA / "demo-model"]
    measured = json.loads(run_ok(lancet.run(*command, "--json")).stdout)
    assert measured["baseline"]["content_hash"] == report["model"]["content_hash"]
    for name, metric in report["metrics"].items():
        if metric["unit"] != "bits":  # sampled texts have the company of other rows
            assert (measured["metrics"][name]["baseline"], measured["metrics"][name]["value"]) == (metric["before"], metric["after"]), name
    for name, cost in report["side_effects"].items():
        assert measured["side_effects"][name]["after"] == cost["after"], name
    assert "baseline" in run_ok(lancet.run(*command)).stdout


def test_a_model_beside_itself_costs_nothing(lancet):
    job = lancet.job(evaluate=evaluate(lancet), output=None)
    result = run_ok(lancet.run("eval", lancet.write(job), "--baseline", DATA / "demo-model", "--json"))
    measured = json.loads(result.stdout)
    assert measured["side_effects"]["text_kl"]["after"] == 0 and measured["side_effects"]["probe_text_kept"]["after"] == 1
    assert measured["metrics"]["easyedit_locality_neighborhood_acc"]["value"] == 1


def test_bad_side_effects(lancet):
    def edit(**changes):
        return lancet.edit(lancet.job(evaluate=evaluate(lancet, **changes)))

    refuses(edit(text=str(lancet.folder / "absent.txt")), CONFIG, "absent.txt")
    refuses(edit(text=str(lancet.write("\n", "empty.txt"))), CONFIG, "evaluate.side_effects.text", "at least one document")
    refuses(edit(probes={"path": str(FACTS), "limit": 4}), CONFIG, "evaluate.side_effects.probes: 3 of them are edited by this job")
    refuses(edit(choices=str(lancet.write('{"question": "a"}\n', "bad.jsonl"))), CONFIG, "bad.jsonl: line 1: choices")
    refuses(edit(probes={"path": str(FACTS), "format": "csvv"}), CONFIG, "evaluate.side_effects.probes.format", '"csvv"')
    refuses(edit(txt="x"), CONFIG, "evaluate.side_effects.txt", "did you mean text?")
    refuses(lancet.edit(lancet.job(evaluate=["eficacy"])), CONFIG, "'eficacy'", "Did you mean efficacy?")
    refuses(lancet.edit(lancet.job(accept={"text_kl": 0.1})), CONFIG, "'text_kl': unknown metric")
    assert not lancet.out.exists()


def test_a_baseline_with_another_tokenizer_is_refused(lancet):
    other = lancet.copy_model()
    tokenizer = other / "tokenizer.json"
    tokenizer.write_text(json.dumps(json.loads(tokenizer.read_text()), indent=1))
    job = lancet.write(lancet.job(output=None))
    refuses(lancet.run("eval", job, "--baseline", other), CONFIG, "its tokenizer is another one")
    refuses(lancet.run("eval", job, "--baseline", lancet.folder / "nowhere"), CHECKPOINT, "nowhere")


def chat_model(lancet):
    """The demo model with ChatML's tokens, of which the second is what it writes where it would write "in"."""
    torch, files = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    folder = lancet.copy_model("chat")
    tokenizer, config = (json.loads((folder / name).read_text()) for name in ("tokenizer.json", "config.json"))
    size, word = config["vocab_size"], tokenizer["model"]["vocab"]["▁in"]
    for token in ("<|im_start|>", "<|im_end|>"):
        tokenizer["added_tokens"].append(tokenizer["added_tokens"][0] | {"id": len(tokenizer["model"]["vocab"]), "content": token})
        tokenizer["model"]["vocab"][token] = len(tokenizer["model"]["vocab"])
    weights = files.load_file(folder / "model.safetensors")
    rows = weights["model.embed_tokens.weight"]
    weights["model.embed_tokens.weight"] = torch.cat([rows, rows[1:2], rows[word : word + 1] * 1.05])
    files.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": size + 2}))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(json.loads((folder / "tokenizer_config.json").read_text()) | {"chat_template": CHATML}))
    return folder


def test_instruct_models_are_asked_as_their_template_says(lancet):
    model = chat_model(lancet)

    def answers(template):
        evaluation = {"metrics": ["chat", "generation"], "tokens": 16, "chat_template": template}
        job = lancet.job(model=str(model), evaluate=evaluation, output=None)
        report = json.loads(run_ok(lancet.run("eval", lancet.write(job, "eval.json"), "--json")).stdout)
        assert ("the model's" if template == "model" else "by hand") in report["metrics"]["chat_exact"]["protocol"]
        return [request["continuation"] for request in report["requests"]], report

    own, report = answers("model")
    hand, _ = answers("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")
    assert own != hand and all(there.startswith(here) for here, there in zip(own, hand))
    prompts = [word for request in report["requests"] for word in ("--prompt", request["prompt"])]
    shown = run_ok(lancet.run("generate", "--model", model, "--chat", "--json", "--tokens", "16", *prompts)).stdout
    assert own == [json.loads(line)["text"] for line in shown.splitlines()]


def test_edits_in_a_chat_hold_in_it(lancet):
    """The demo model has never seen a chat: edits of the plain prompt alone do not reach it."""
    template, said = "Therefore, {}:", {}
    for chat in (None, template):
        contexts = {"generate": 0} | ({"chat": chat} if chat else {})
        evaluate = {"metrics": ["generation", "chat"], "chat_template": template}
        run_ok(lancet.edit(lancet.job(requests__limit=6, editor__contexts=contexts, evaluate=evaluate, run__threads=1)))
        report = json.loads((lancet.out / "report.json").read_text())
        said[chat] = {name: report["metrics"][name]["after"] for name in ("generation_exact", "chat_contains")}
        assert report["contexts"] == ["{}", template][: 2 if chat else 1]
        shutil.rmtree(lancet.out)
    assert said[template]["chat_contains"] > said[None]["chat_contains"]
    assert said[template]["generation_exact"] > 0


def test_bad_chat_templates(lancet):
    def edit(template):
        return lancet.edit(lancet.job(evaluate={"metrics": ["chat"], "chat_template": template}))

    refuses(edit("USER:"), CONFIG, "evaluate.chat_template", "exactly one {}", "or 'model'")
    refuses(edit("model"), CHECKPOINT, "no chat_template.jinja", "evaluate.chat_template")
    assert not lancet.out.exists()
