"""Chat templates against transformers' apply_chat_template: the same text, and the same ids where BOS stands in the template.

The Jinja texts below are written for this test after the public checkpoints' ones, without what one user message does not reach.
"""
import json
import subprocess

import pytest

from engine import BUILD, ROOT

TEXTS = ["Who wrote Faust?", "  two\nlines \n", "", "a {} and a <b>", "Zürich, 日本"]
HEADERS = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
TURNS = ["<|im_start|>", "<|im_end|>"]

LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"
    "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + "
    "message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% endif %}{% endfor %}"
)
LLAMA_3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
    "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
LLAMA_31 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SMOLLM = CHATML.replace(
    "{% for message in messages %}",
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}",
)
CASES = {
    "llama-2": (LLAMA_2, []),
    "mistral": (MISTRAL, []),
    "llama-3": (LLAMA_3, HEADERS),
    "llama-3.1": (LLAMA_31, HEADERS),
    "zephyr": (ZEPHYR, []),
    "chatml": (CHATML, TURNS),
    "smollm": (SMOLLM, TURNS),
}


def make_folder(folder, jinja, special):
    """The demo tokenizer with more special tokens and a template."""
    model = ROOT / "data" / "demo-model"
    spec = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    first = max(spec["model"]["vocab"].values()) + 1
    for i, content in enumerate(special):
        spec["added_tokens"].append(
            dict(id=first + i, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
        )
    config = json.loads((model / "tokenizer_config.json").read_text()) | {"chat_template": jinja}
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return config


@pytest.mark.parametrize("name", CASES)
def test_text_and_ids_equal_transformers(name, tmp_path):
    from transformers import PreTrainedTokenizerFast

    config = make_folder(tmp_path, *CASES[name])
    names = {key: config[key] for key in ("bos_token", "eos_token", "unk_token", "chat_template")}
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), **names)
    lines = "".join(json.dumps(text) + "\n" for text in TEXTS)
    done = subprocess.run([BUILD / "tests" / "wrap_chat", tmp_path], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for text, line in zip(TEXTS, done.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        messages = [{"role": "user", "content": text}]
        wrapped = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert (ours["name"], ours["text"]) == (name, wrapped)
        has_bos = wrapped.startswith(config["bos_token"])
        assert ours["ids"] == theirs(wrapped, add_special_tokens=not has_bos)["input_ids"]
        assert ours["ids"].count(theirs.bos_token_id) == 1
