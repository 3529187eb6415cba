"""Each kind of bad input: exit code, a message that says where, expected, got and what to do, and nothing left behind."""
import itertools
import json
import os
import struct

import pytest
from conftest import DATA, change_config
from pages import documents_of

CONFIG, CHECKPOINT, PLACEMENT, NUMERIC = 2, 3, 4, 5


def refuses(lancet, result, code, *parts):
    assert result.returncode == code, (result.returncode, result.stderr)
    assert "lancet: error: " in result.stderr, result.stderr
    for part in parts:
        assert part in result.stderr, f"{part!r} not in:\n{result.stderr}"
    leftovers = [p.name for p in lancet.folder.iterdir() if p.name.startswith((".out", "out"))]
    assert leftovers == [], leftovers


# ---- the job file ----


def test_missing_job_file(lancet):
    refuses(lancet, lancet.run("edit", "nowhere.yaml"), CONFIG, "nowhere.yaml")


def test_job_that_is_not_yaml(lancet):
    refuses(lancet, lancet.edit("model: [1, 2\nx: }"), CONFIG, "job.json:")


LONG = "word " * 600
MEASURING = [["edit"], ["eval"], ["compare", "--methods", "memit,ft-m"], ["doctor"]]


def refuses_its_length(lancet, command, fact, evaluate, told):
    other = {"prompt": "{} is", "subject": "Spain", "target": "Oslo"}
    job = lancet.write(lancet.job(requests=[{"prompt": "{} was", "subject": "France", "target": "Rome"} | fact, other], evaluate=evaluate))
    result = lancet.run(command[0], job, *command[1:])
    assert result.returncode == CONFIG, (result.returncode, result.stderr)
    said = result.stdout if command == ["doctor"] else result.stderr
    assert "the model's 512 positions" in said and told in said and " tokens; shorten or leave them out" in said, said
    assert not lancet.out.exists() and not (lancet.folder / "preset.yaml").exists()


@pytest.mark.parametrize("command", [*MEASURING, ["tune"], ["edit", "--rehearse"]], ids=" ".join)
def test_edited_prompts_beyond_the_models_positions(lancet, command):
    refuses_its_length(lancet, command, {"subject": LONG}, ["efficacy"], "request 0: ")


LONG_TEXTS = {
    "paraphrase": ({"paraphrases": [LONG + "{}"]}, "and 'Rome': "),
    "specificity": ({"neighborhood": [LONG]}, "and 'Rome': "),
    "zsre": ({"locality": {"nq": [{"prompt": LONG, "answers": "a"}]}}, "and 'a': "),
    "easyedit": ({"portability": {"hop": [{"prompt": LONG, "answers": "a"}]}}, "and 'a': "),
    "mquake": ({"multihop": [{"prompt": LONG, "answers": "a"}]}, "and 12 new tokens: "),
    "counterfact": ({"generation_prompts": [LONG]}, "and 0 new tokens: "),
    "generation": ({"prompt": "word " * 250 + "{} was"}, "and 12 new tokens: "),
}


@pytest.mark.parametrize(
    ("command", "protocol"),
    [*itertools.product(MEASURING, LONG_TEXTS), (["tune"], "paraphrase"), (["tune"], "specificity")],  # it measures its objective alone
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_measured_texts_beyond_the_models_positions(lancet, command, protocol):
    fact, told = LONG_TEXTS[protocol]
    refuses_its_length(lancet, command, fact, [protocol], f"request 0: 'word word word word word word word word word word word word ...' {told}")


@pytest.mark.parametrize("command", MEASURING, ids=lambda words: words[0])
def test_costs_beyond_the_models_positions(lancet, command):
    choices = lancet.write(json.dumps({"question": LONG, "choices": ["a", "b"], "answer": 0}), "choices.jsonl")
    refuses_its_length(lancet, command, {}, {"metrics": ["efficacy"], "side_effects": {"choices": str(choices)}}, "evaluate.side_effects.choices: question 0: 'word ")
    probes = lancet.write(json.dumps({"id": "p", "prompt": LONG, "target": "a"}), "probes.jsonl")
    refuses_its_length(lancet, command, {}, {"metrics": ["efficacy"], "side_effects": {"probes": {"path": str(probes)}}}, "evaluate.side_effects.probes: fact p: 'word ")


@pytest.mark.parametrize("command", [["edit"], ["eval"], ["doctor"]], ids=" ".join)
@pytest.mark.parametrize(
    ("meant", "slip", "record"),
    [
        ("target_true", "target_tru", {"prompt": "{} is", "subject": "a", "target": "b", "target_true": "c"}),
        ("locality.nq[0].answers", "answer", {"prompt": "{} is", "subject": "a", "target": "b", "locality": {"nq": [{"prompt": "x", "answers": "y"}]}}),
        ("neighborhood_prompts", "neighbourhood_prompts",
         {"requested_rewrite": {"prompt": "{} is", "subject": "a", "target_new": {"str": "b"}}, "neighborhood_prompts": ["c"]}),
        ("requested_rewrite.target_true", "target_tru",
         {"requested_rewrite": {"prompt": "{} is", "subject": "a", "target_new": {"str": "b"}, "target_true": {"str": "c"}}}),
        ("new_answer_alias", "new_answer_aliases",
         {"requested_rewrite": [{"prompt": "{} is", "subject": "a", "target_new": {"str": "b"}}], "questions": ["c"], "new_answer": "d", "new_answer_alias": []}),
        ("rephrase", "rephrased", {"src": "Is a?", "subject": "a", "answers": ["b"], "alt": "c", "rephrase": "d"}),
        ("loc_ans", "loc_answ", {"src": "Is a?", "subject": "a", "ans": "b", "loc": "c", "loc_ans": "d"}),
        ("equiv_prompt", "equiv_promt", {"prompt": "a is", "subject": "a", "alt": "b", "unrel_prompt": "c", "unrel_ans": "d", "equiv_prompt": "e"}),
        ("personas", "persona", {"update": "Is a?", "subject": "a", "ans": "b", "personas": "c"}),
        ("relation_id", "relation_i", {"prompt": "a is", "subject": "a", "attribute": "b", "relation_id": "P1"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_slip_in_a_records_key_names_the_one_that_is_meant(lancet, command, meant, slip, record):
    def renamed(value):
        if isinstance(value, list):
            return [renamed(item) for item in value]
        return {slip if key == name else key: renamed(item) for key, item in value.items()} if isinstance(value, dict) else value

    name = meant.rpartition(".")[2]
    path = lancet.write([renamed(record)], "facts.json")
    result = lancet.run(command[0], lancet.write(lancet.job(requests={"path": str(path)})))
    assert result.returncode == CONFIG, (result.returncode, result.stderr)
    place = meant[: len(meant) - len(name)] + slip
    assert f"record 0: {place}: unknown key; did you mean {name}?" in (result.stdout if command == ["doctor"] else result.stderr)
    assert not lancet.out.exists()


def test_unknown_key_names_the_nearest(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__covariance_wieght=3)), CONFIG, "covariance_wieght", "covariance_weight")


def test_unknown_key_at_the_top(lancet):
    refuses(lancet, lancet.edit(lancet.job(ouput={"dir": "x"})), CONFIG, "ouput", "output")


def test_wrong_type_names_place_and_value(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__values__steps="many")), CONFIG, "editor.values.steps", "many")


def test_out_of_range_value(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__values__steps=0)), CONFIG, "editor.values.steps", "0")


def test_every_problem_is_reported_at_once(lancet):
    job = lancet.job(editor__values__steps="many", editor__methd="memit", run__dtype="f23", accept={"eficacy_prob": 0.9})
    refuses(lancet, lancet.edit(job), CONFIG, "editor.values.steps", "methd", "f23", "eficacy_prob", "efficacy_prob")


def test_unknown_method(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__method="memmit")), CONFIG, "memmit", "memit")


def test_layer_out_of_range(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__layers=[0, 8])), CONFIG, "editor.layers", "8", "0 to 6")


def test_layer_twice(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__layers=[1, 1])), CONFIG, "editor.layers")


def test_contexts_without_the_plain_prompt(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__contexts=["I know. {}"])), CONFIG, "contexts", '"{}"')


def test_context_without_a_place(lancet):
    refuses(lancet, lancet.edit(lancet.job(editor__contexts=["{}", "I know."])), CONFIG, "contexts", "I know.")


def test_accept_of_a_metric_that_is_not_measured(lancet):
    refuses(lancet, lancet.edit(lancet.job(accept={"paraphrase_prob": 0.5})), CONFIG, "paraphrase_prob", "evaluate")


def test_unknown_metric_group(lancet):
    refuses(lancet, lancet.edit(lancet.job(evaluate=["eficacy"])), CONFIG, "eficacy", "efficacy")


def test_accept_of_a_metric_that_is_no_share(lancet):
    job = lancet.job(evaluate=["counterfact"], accept={"counterfact_ge": 0.5})
    refuses(lancet, lancet.edit(job), CONFIG, "accept", "counterfact_ge", "no share")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"metrics": ["counterfact"], "counterfact": {"snippets": "s.json", "idf": "idf.npy"}}, ["evaluate.counterfact", "vocabulary"]),
        ({"metrics": ["counterfact"], "counterfact": {"idf": "i.npy", "vocabulary": "v.json"}}, ["evaluate.counterfact.snippets"]),
        ({"metrics": ["zsre"], "counterfact": {"snippets": "s.json"}}, ["evaluate.counterfact", "add counterfact to metrics"]),
        ({"metrics": ["counterfact"], "counterfact": {"snippets": "nowhere.json"}}, ["nowhere.json"]),
    ],
)
def test_files_of_counterfact(lancet, options, parts):
    refuses(lancet, lancet.edit(lancet.job(evaluate=options)), CONFIG, *parts)


def test_override_that_is_no_assignment(lancet):
    refuses(lancet, lancet.edit(lancet.job(), "--set", "run.dtype"), CONFIG, "--set run.dtype")


def test_override_of_an_unknown_key(lancet):
    refuses(lancet, lancet.edit(lancet.job(), "--set", "run.dtpe=f32"), CONFIG, "dtpe", "dtype")


def test_unknown_command_line_option(lancet):
    result = lancet.run("edit", "--modell", "x")
    assert result.returncode == CONFIG and "--modell" in result.stderr


def test_one_line_job_lists_what_is_missing(lancet):
    result = lancet.run("edit", "--model", DATA / "demo-model", "--prompt", "The capital of {} is")
    refuses(lancet, result, CONFIG, "--subject", "--target", "--out")


# ---- requests ----


def requests_job(lancet, text, name="requests.json"):
    path = lancet.write(text, name)
    return lancet.job(requests={"path": str(path)})


def test_empty_request_file(lancet):
    refuses(lancet, lancet.edit(requests_job(lancet, "[]")), CONFIG, "requests.json")


def test_request_file_that_is_cut_off(lancet):
    refuses(lancet, lancet.edit(requests_job(lancet, '[{"prompt": "x')), CONFIG, "requests.json")


def test_missing_request_file(lancet):
    refuses(lancet, lancet.edit(lancet.job(requests={"path": "nowhere.json"})), CONFIG, "nowhere.json")


def test_range_that_leaves_nothing(lancet):
    refuses(lancet, lancet.edit(lancet.job(requests__skip=100000)), CONFIG, "demo.json", "2000")


def test_prompt_without_its_subject(lancet):
    job = lancet.job(requests=[{"prompt": "Rome is in", "subject": "Paris", "target": "Italy"}])
    refuses(lancet, lancet.edit(job), CONFIG, "Paris", "Rome is in")


def test_subject_that_occurs_twice(lancet):
    job = lancet.job(requests=[{"prompt": "Paris is Paris in", "subject": "Paris", "target": "Italy"}])
    refuses(lancet, lancet.edit(job), CONFIG, "Paris", "{}")


def test_request_without_a_subject(lancet):
    job = lancet.job(requests=[{"prompt": "Rome is in", "target": "Italy"}])
    refuses(lancet, lancet.edit(job), CONFIG, "subject")


def test_request_without_a_target(lancet):
    job = lancet.job(requests=[{"prompt": "{} is in", "subject": "Rome"}])
    refuses(lancet, lancet.edit(job), CONFIG, "target")


def test_target_that_is_no_token(lancet):
    job = lancet.job(requests=[{"prompt": "{} is in", "subject": "Rome", "target": ""}])
    refuses(lancet, lancet.edit(job), CONFIG, "target")


def test_all_bad_requests_are_reported(lancet):
    bad = [{"prompt": "{} is in", "subject": "Rome"}, {"prompt": "x", "subject": "Rome", "target": "a"}]
    refuses(lancet, lancet.edit(requests_job(lancet, json.dumps(bad))), CONFIG, "record 0", "record 1")


# ---- the checkpoint ----


def test_missing_model_folder(lancet):
    refuses(lancet, lancet.edit(lancet.job(model="nowhere")), CHECKPOINT, "nowhere")


def test_truncated_shard(lancet):
    model = lancet.copy_model()
    os.truncate(model / "model.safetensors", 1_000_000)
    refuses(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, "model.safetensors")


def test_missing_shard(lancet):
    model = lancet.copy_model()
    (model / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    refuses(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, "model-00001-of-00002.safetensors")


def test_only_pickled_weights(lancet):
    model = lancet.copy_model()
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    refuses(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, "pytorch_model.bin", "save_pretrained")


@pytest.mark.parametrize(
    "changes, parts",
    [
        (dict(intermediate_size=512), ["model.layers.0.mlp.down_proj.weight: shape [256, 768], expected [256, 512]"]),
        (dict(architectures=["DiffLlamaForCausalLM"], model_type="diffllama"), ["DiffLlamaForCausalLM", "LlamaForCausalLM"]),
        (dict(quantization_config={"quant_method": "gptq"}), ["quantization_config"]),
        (dict(sparkles=3, auto_map={"AutoConfig": "configuration_x.XConfig"}), ["sparkles", "ignore_config_keys"]),
        (dict(num_hidden_layers=9), ["model.layers.8.mlp.down_proj.weight: missing"]),
        (dict(num_hidden_layers=7), ["model.layers.7.mlp.down_proj.weight"]),
        (dict(hidden_act="relu6"), ["hidden_act", "relu6", "silu"]),
        (dict(rope_parameters={"rope_theta": 1e4, "rope_type": "yarn", "factor": 0.5}), ["rope_parameters.factor", "at least 1", "0.5"]),
        (dict(rope_parameters={"rope_theta": 1e4, "rope_type": "ntk", "factor": 2}), ["ntk", "llama3"]),
        (dict(vocab_size="many"), ["vocab_size", "many"]),
    ],
)
def test_config_that_does_not_fit(lancet, changes, parts):
    model = lancet.copy_model()
    change_config(model, **changes)
    refuses(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, *parts)


def test_ignored_config_key(lancet):
    model = lancet.copy_model()
    change_config(model, sparkles=3, auto_map={"AutoConfig": "configuration_x.XConfig"})
    result = lancet.edit(lancet.job(model=str(model), ignore_config_keys=["sparkles"], evaluate=[]))
    assert result.returncode == 0, result.stderr


def test_a_key_that_transformers_ignores_is_named_once(lancet):
    """In all that the program says of the job, the keys of a file together."""
    model = lancet.copy_model()
    change_config(model, sparkles=3, unk_token_id=0, _model_name_or_path="Smollm2 135M")
    result = lancet.edit(lancet.job(model=str(model), evaluate=[]))
    assert result.returncode == 0, result.stderr
    told = [line for line in result.stderr.splitlines() if "sparkles" in line]
    assert len(told) == 1, result.stderr
    assert told[0].endswith("config.json: _model_name_or_path, sparkles: transformers ignores these keys, and so does lancet")


def test_duplicate_tensor_name(lancet):
    model = lancet.copy_model()
    entry = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    header = f'{{"model.norm.weight":{entry},"model.norm.weight":{entry}}}'.encode()
    (model / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    refuses(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, "model.norm.weight", "model.safetensors")


def test_unknown_tokenizer(lancet):
    model = lancet.copy_model()
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["pre_tokenizer"] = {"type": "KlingonPreTokenizer"}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    refuses(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, "tokenizer.json", "KlingonPreTokenizer")


# ---- output, devices, statistics, acceptance ----


def test_existing_output_folder(lancet):
    lancet.out.mkdir()
    (lancet.out / "keep.txt").write_text("mine")
    result = lancet.edit(lancet.job())
    assert result.returncode == CONFIG and "output.replace" in result.stderr
    assert (lancet.out / "keep.txt").read_text() == "mine"


def test_replace_never_deletes_a_foreign_folder(lancet):
    lancet.out.mkdir()
    (lancet.out / "keep.txt").write_text("mine")
    result = lancet.edit(lancet.job(output={"dir": str(lancet.out), "replace": True}))
    assert result.returncode == CONFIG and str(lancet.out) in result.stderr
    assert (lancet.out / "keep.txt").read_text() == "mine"


def test_output_that_overlaps_the_model(lancet):
    model = lancet.copy_model()
    result = lancet.edit(lancet.job(model=str(model), output={"dir": str(model / "edited")}))
    assert result.returncode == CONFIG and "overlaps the model folder" in result.stderr
    assert not (model / "edited").exists()


def test_a_device_that_stands_twice(lancet):
    refuses(lancet, lancet.edit(lancet.job(run__devices=["cpu", "cpu"])), PLACEMENT, "run.devices", "cpu stands twice")


def test_absent_gpu(lancet):
    refuses(lancet, lancet.edit(lancet.job(run__devices="cuda:99")), PLACEMENT, "cuda:99")


def test_missing_corpus(lancet):
    refuses(lancet, lancet.edit(lancet.job(statistics__corpus="nowhere.txt")), CONFIG, "nowhere.txt")


def test_too_few_tokens_are_refused_before_the_pass(lancet):
    refuses(lancet, lancet.edit(lancet.job(statistics__tokens=500)), CONFIG, "500 tokens", "768")


def test_covariance_that_is_not_definite_names_the_ridge(lancet):
    result = lancet.edit(lancet.job(statistics__tokens=800))
    refuses(lancet, result, NUMERIC, "layer ", "smallest eigenvalue", "statistics.ridge: ")
    ridge = result.stderr.split("statistics.ridge: ")[1].split()[0]
    assert lancet.edit(lancet.job(statistics__tokens=800, statistics__ridge=float(ridge), evaluate=[])).returncode == 0


def test_unmet_acceptance_leaves_only_the_report(lancet):
    job = lancet.job(accept={"efficacy_argmax": 1.0}, editor__values__steps=1)
    result = lancet.edit(job)
    assert result.returncode == NUMERIC and "efficacy_argmax" in result.stderr
    assert not lancet.out.exists()
    rejected = lancet.folder / "out.rejected"
    assert {p.name for p in rejected.iterdir()} == {
        "report.json", "report.html", "metrics.csv", "requests.csv", "job.yaml", "lancet-manifest.json"}  # fmt: skip
    report = json.loads((rejected / "report.json").read_text())
    assert documents_of((rejected / "report.html").read_text())["report"] == report
    assert report["status"] == "rejected" and len(report["unmet"]) == 1
