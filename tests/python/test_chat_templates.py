"""A tokenizer of transformers that is handed over with its chat template: lancet wraps prompts in what the tokenizer's own apply_chat_template
gives, wherever the template comes from."""
import pathlib

import pytest
import torch
from conftest import ROOT, lancet

TEMPLATES = sorted((ROOT / "tests" / "fixtures" / "chat_templates").glob("*.jinja"))
MARKS = ["<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_sep|>", "<start_of_turn>", "<end_of_turn>"]
FACT = {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}
CHATML = "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


@pytest.fixture(scope="module")
def parts(tiny):
    """A model with rows for the marks of turns, and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS})
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_pretrained(tiny)
    model.resize_token_embeddings(len(tokenizer))
    return model.eval(), tokenizer


def edited(parts, template, tmp_path_factory, **how):
    """The report of an edit that also asks in the chat form."""
    model, tokenizer = parts
    tokenizer.chat_template = template
    options = {"method": "memit", "layers": [0], "covariance_weight": 20, "values": {"steps": 1}, "device": "cpu", "dtype": "f32", "progress": False}
    statistics = {"corpus": str(ROOT / "data" / "requests" / "demo-corpus.txt"), "tokens": 500, "cache": str(tmp_path_factory.getbasetemp() / "cache")}
    with lancet.open(model, tokenizer, contexts={"generate": 0, "chat": "model"}, statistics=statistics, **options, **{"evaluate": [], **how}) as session:
        return session.edit([FACT]).report


def by_transformers(tokenizer, text, **how):
    """What apply_chat_template makes of a user's text, and its tokens, where no thought is wanted."""
    messages = [{"role": "user", "content": text}]
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, enable_thinking=False, thinking=False, **how)


@pytest.mark.parametrize("path", TEMPLATES[::6], ids=lambda path: path.stem)
def test_prompts_are_wrapped_as_the_tokenizer_wraps_them(path, parts, tmp_path_factory):
    text = path.read_text(encoding="utf-8")
    report = edited(parts, text, tmp_path_factory)
    expected = by_transformers(parts[1], "{}", tokenize=False).removeprefix(parts[1].bos_token)
    assert expected.rstrip().endswith("<think>") or report["contexts"] == ["{}", expected], (path, report["contexts"], expected)
    assert report["contexts"][1].startswith(expected.rstrip())


def test_answers_in_chat_are_those_of_transformers(parts, tmp_path_factory):
    """The same greedy answer after the same tokens. The template has the token that begins a text: where it has not, apply_chat_template leaves
    it out, and lancet puts it there if the tokenizer does so around every other text."""
    model, tokenizer = parts
    report = edited(parts, CHATML, tmp_path_factory, evaluate=["chat"])
    ids = by_transformers(tokenizer, FACT["prompt"].format(FACT["subject"]), return_tensors="pt", return_dict=True)["input_ids"]
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    answer = model.generate(ids, max_new_tokens=12, do_sample=False, eos_token_id=[tokenizer.eos_token_id, end], pad_token_id=0)[0, ids.shape[1] :]
    shown = report["requests"][0]["continuation"]["before"]
    assert shown and shown.strip() == tokenizer.decode(answer, skip_special_tokens=True).strip(), report["requests"][0]


def test_a_folder_is_wrapped_as_transformers_wraps_it(tiny, parts, tmp_path, tmp_path_factory):
    """The template in a file of its own and within tokenizer_config.json, as both versions of transformers write it."""
    model, tokenizer = parts
    tokenizer.chat_template = CHATML
    for in_file in (True, False):
        folder = tmp_path / str(in_file)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder, save_jinja_files=in_file)
        assert (folder / "chat_template.jinja").exists() == in_file
        report = edited_folder(folder, tmp_path_factory)
        assert report["contexts"][1] == by_transformers(tokenizer, "{}", tokenize=False).removeprefix(tokenizer.bos_token)


def edited_folder(folder: pathlib.Path, tmp_path_factory):
    statistics = {"corpus": str(ROOT / "data" / "requests" / "demo-corpus.txt"), "tokens": 500, "cache": str(tmp_path_factory.getbasetemp() / "cache")}
    options = {"layers": [0], "covariance_weight": 20, "values": {"steps": 1}, "device": "cpu", "dtype": "f32", "progress": False, "evaluate": []}
    with lancet.open(folder, method="memit", contexts={"generate": 0, "chat": "model"}, statistics=statistics, **options) as session:
        return session.edit([FACT]).report


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for m in messages %}{{ raise_exception('no users here') }}{% endfor %}", "no users here"),
        ("{% for m in messages %}{{ m.content }}", "endfor"),
        ("{{ messages[0].content|nofilter }}", "nofilter"),
    ],
)
def test_what_transformers_refuses_is_refused(template, words, parts, tmp_path_factory):
    import jinja2

    parts[1].chat_template = template
    with pytest.raises(jinja2.exceptions.TemplateError):
        by_transformers(parts[1], "x", tokenize=False)
    with pytest.raises(lancet.TokenizerError, match=words):
        edited(parts, template, tmp_path_factory)
