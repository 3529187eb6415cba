"""Chat templates against transformers' apply_chat_template: the same text, and the same ids where BOS stands in the template.

The Jinja texts below are written for this test after the public checkpoints' ones, without what one user message does not reach.
"""
import json
import subprocess

import pytest

from engine import BUILD, ROOT
from template_variants import CONVERSATIONS

TEXTS = ["Who wrote Faust?", "  two\nlines \n", "", "a {} and a <b>", "Zürich, 日本", "\u3000\x1c wide\u00a0\n", " \u2003 "]
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
QWEN_2 = SMOLLM.replace("You are a helpful AI assistant named SmolLM, trained by Hugging Face", "You are a helpful assistant.")
QWEN_25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Tools<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
QWEN_3 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {{- "# Tools<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n<think>\\n' + content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
QWEN_3_FIRST = QWEN_3.replace("+ content + '<|im_end|>' + ", "+ message.content + '<|im_end|>' + ")
QWEN_3_INSTRUCT = QWEN_3[: QWEN_3.index("    {%- if enable_thinking")] + "{%- endif %}"
GEMMA = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
GEMMA_3 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
"""
PHI_3_MEDIUM = (
    "{% for message in messages %}{% if (message['role'] == 'user') %}{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + "
    "'<|assistant|>' + '\n'}}{% elif (message['role'] == 'assistant') %}{{message['content'] + '<|end|>' + '\n'}}{% endif %}{% endfor %}"
)
PHI_35 = (
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + "
    "'<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == "
    "'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
PHI_4_MINI = (
    "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message %}{{ '<|' + message['role'] + '|>' + "
    "message['content'] + '<|tool|>' + message['tools'] + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + "
    "'<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"
)
PHI_4_FIRST = (
    "{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] + "
    "'<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|><|im_start|>"
    "assistant<|im_sep|>'}}{% elif (message['role'] == 'assistant') %}{{message['content'] + '<|im_end|>'}}{% endif %}{% endfor %}"
)
PHI_4 = (
    "{% for message in messages %}{% if (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + "
    "'<|im_end|>'}}{% elif (message['role'] == 'assistant') %}{{'<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"
)
MISTRAL_V1 = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- " [INST] " + system_message + "\\n\\n" + message["content"] + " [/INST]" }}
        {%- else %}
            {{- " [INST] " + message["content"] + " [/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] + eos_token}}
    {%- endif %}
{%- endfor %}
"""
MISTRAL_V3 = MISTRAL_V1.replace('" [INST] "', '"[INST] "').replace('" [/INST]"', '"[/INST]"')
GEMMA_MARKS, PHI_MARKS = ["<start_of_turn>", "<end_of_turn>"], ["<|user|>", "<|end|>", "<|assistant|>"]
PHI_4_MARKS = [*TURNS, "<|im_sep|>"]
CASES = [
    ("llama-2", LLAMA_2, []),
    ("mistral", MISTRAL, []),
    ("mistral-v1", MISTRAL_V1, []),
    ("mistral-v3", MISTRAL_V3, ["[INST]", "[/INST]"]),
    ("llama-3", LLAMA_3, HEADERS),
    ("llama-3.1", LLAMA_31, HEADERS),
    ("zephyr", ZEPHYR, []),
    ("chatml", CHATML, TURNS),
    ("smollm", SMOLLM, TURNS),
    ("qwen2", QWEN_2, TURNS),
    ("qwen2.5", QWEN_25, TURNS),
    ("qwen3", QWEN_3_FIRST, TURNS),
    ("qwen3", QWEN_3, TURNS),
    ("qwen3", QWEN_3_INSTRUCT, TURNS),
    ("gemma", GEMMA, GEMMA_MARKS),
    ("gemma", GEMMA.replace("{{ bos_token }}", ""), GEMMA_MARKS),
    ("gemma-3", GEMMA_3, GEMMA_MARKS),
    ("phi-3", "{{ bos_token }}" + PHI_3_MEDIUM, PHI_MARKS),
    ("phi-3", PHI_3_MEDIUM, PHI_MARKS),
    ("phi-3", PHI_35, PHI_MARKS),
    ("phi-4-mini", PHI_4_MINI, PHI_MARKS),
    ("phi-4", PHI_4_FIRST, PHI_4_MARKS),
    ("phi-4", PHI_4, PHI_4_MARKS),
]


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


def compare_with_transformers(name, folder, config):
    from transformers import PreTrainedTokenizerFast

    names = {key: config[key] for key in ("bos_token", "eos_token", "unk_token", "chat_template") if config.get(key)}
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **names)
    lines = "".join(json.dumps(text) + "\n" for text in TEXTS)
    done = subprocess.run([BUILD / "tests" / "wrap_chat", folder], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for text, line in zip(TEXTS, done.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        messages = [{"role": "user", "content": text}]
        wrapped = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert (ours["name"], ours["text"]) == ("the model's", wrapped)
        has_bos = config.get("bos_token") is None or wrapped.startswith(config["bos_token"])
        assert ours["ids"] == theirs(wrapped, add_special_tokens=not has_bos)["input_ids"]
        assert ours["ids"].count(theirs.bos_token_id) == (config.get("bos_token") is not None)


@pytest.mark.parametrize("name, jinja, special", CASES, ids=[f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)])
def test_text_and_ids_equal_transformers(name, jinja, special, tmp_path):
    compare_with_transformers(name, tmp_path, make_folder(tmp_path, jinja, special))


def test_qwen2s_own_files_give_the_text_and_ids_of_transformers():
    folder = ROOT / "tests" / "fixtures" / "tokenizers" / "qwen2"
    compare_with_transformers("qwen2", folder, json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")))


# The file of SmolLM2-135M-Instruct (Apache-2.0), but for the line's end at its end, which Jinja takes away.
SMOLLM_2 = (ROOT / "tests" / "fixtures" / "chat_templates" / "smollm-2.jinja").read_text(encoding="utf-8").removesuffix("\n")
TALKS = {name: talk for name, talk in CONVERSATIONS.items() if talk and talk[-1]["role"] == "user" and all(isinstance(message["content"], str) for message in talk)}


@pytest.mark.parametrize("place", ["a file of its own", "tokenizer_config.json", "one of several"])
def test_smollm2s_own_template_gives_every_conversation_transformers_text_and_ids(place, tmp_path):
    from transformers import PreTrainedTokenizerFast

    config = make_folder(tmp_path, SMOLLM_2, TURNS)
    if place == "a file of its own":
        (tmp_path / "chat_template.jinja").write_text(SMOLLM_2)
        config["chat_template"] = "{{ 'that of the file goes before it' }}"
    elif place == "one of several":
        config["chat_template"] = [{"name": "tool_use", "template": "{{ 'another' }}"}, {"name": "default", "template": SMOLLM_2}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    theirs = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    asked = [json.dumps({"messages": talk}) for talk in TALKS.values()]
    done = subprocess.run([BUILD / "tests" / "wrap_chat", tmp_path], input="\n".join(asked) + "\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and len(TALKS) > 8, done.stderr
    for talk, line in zip(TALKS.values(), done.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        text = theirs.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        assert ours["text"] == text and ours["ids"] == [theirs.bos_token_id, *theirs.apply_chat_template(talk, add_generation_prompt=True, return_dict=False)]
