"""The tokenizers of the families beside Llama, on every string of the request files: ids, and text back from them; spans on fewer.

The first merges of GPT-2's, GPT-NeoX's, Qwen2's and Mistral's own lie in tests/fixtures/tokenizers; ones like Gemma's, Phi-4's and
OLMo 2's are trained here on the demo corpus. Random texts are compared in every respect by the functions of test_tokenizer.py.
"""
import json
import shutil
import unicodedata
from functools import lru_cache

import pytest
from test_byte_level import CORPUS, added, byte_level, byte_level_texts, made_texts, settled
from test_tokenizer import (TOKENIZERS, compare_decoding, compare_with_sentencepiece, compare_with_tokenizers, fuzz_texts, report,
                            request_texts, run_tool, spans_spell_their_pieces, walked_spans)  # fmt: skip

tokenizers = pytest.importorskip("tokenizers")

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K_POSSESSIVE = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")


def given_back(text, normalizes):
    """What comes back of a text by its ids; nothing is said of one that spells special tokens, which are left out."""
    return None if "<|" in text else unicodedata.normalize("NFC", text) if normalizes else text


def compare_ids(name, model, texts, expected, decoded):
    """Ids of all texts, and the texts that come back, where they are known beforehand (None: not looked at)."""
    answers = run_tool(model, texts, "--brief")
    report(f"{name} ids", len(texts), [(text, ours, ids) for text, ours, ids in zip(texts, answers, expected) if ours.get("ids") != ids])
    report(f"{name} text", len(texts), [(ours["text"], text) for ours, text in zip(answers, decoded) if text not in (None, ours["text"])])


def spans_spell_their_tokens(tokenizer, text, ids, spans):
    """Whether the text that tokens cover is their bytes, once composed. Tokens that share a character are taken together."""
    data, groups = text.encode("utf-8"), []  # [begin, end, ids]
    for id, (begin, end) in zip(ids, spans):
        if groups and begin < groups[-1][1]:
            groups[-1][1] = max(groups[-1][1], end)
            groups[-1][2].append(id)
        else:
            groups.append([begin, end, [id]])
    return "".join(data[b:e].decode("utf-8") for b, e, _ in groups) == text and all(
        unicodedata.normalize("NFC", data[b:e].decode("utf-8")) == tokenizer.decode(ids, skip_special_tokens=False) for b, e, ids in groups)


def decomposed_texts(count):
    """Texts of which about half are not NFC."""
    extra = ["e\u0301", "o\u0302\u0323", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u0344", "\u0958", "\u212b", "a\u0323\u0301", "\u0f73", "\u304b\u3099"]
    texts = byte_level_texts(count)
    return [settled(text[: i % 7] + extra[i % len(extra)] + text[i % 7 :]) if i % 2 else text for i, text in enumerate(texts)]


def check_published(name, folder, texts):
    """Random texts in every respect, and the ids of request texts."""
    file = folder / "tokenizer.json"
    spec = json.loads(file.read_text(encoding="utf-8"))
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps({**spec, "post_processor": None}))  # all it does here is to trim offsets
    normalizes = tokenizer.normalizer is not None
    own = [text for text in texts if not normalizes or unicodedata.normalize("NFC", text) == text]
    compare_with_tokenizers(name, tokenizer, file, own)
    requests = request_texts()
    expected = [encoding.ids for encoding in tokenizer.encode_batch_fast(requests)]
    compare_ids(name, file, requests, expected, [given_back(text, normalizes) for text in requests])
    return file, tokenizer


@pytest.mark.parametrize("name", ["gpt2", "gpt-neox-20b", "qwen2"])
def test_published_vocabularies_have_the_ids_spans_and_text_of_tokenizers(name):
    file, tokenizer = check_published(name, TOKENIZERS / name, made_texts(700))
    special = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    compare_decoding(name, file, tokenizer.get_vocab_size(),
                     lambda ids: tokenizer.decode([id for id in ids if id not in special], skip_special_tokens=False))  # fmt: skip


@pytest.mark.parametrize("name", ["gpt-neox-20b", "qwen2"])
def test_texts_that_are_not_composed_have_the_ids_of_tokenizers_and_spans_of_whole_characters(name):
    file = TOKENIZERS / name / "tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    texts = decomposed_texts(1600)
    assert sum(unicodedata.normalize("NFC", text) != text for text in texts) > 500
    # Hugging Face's offsets leave out what a character is composed of but its first part, so that spans have their own oracle.
    answers = run_tool(file, texts)
    expected = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    report(f"{name} ids", len(texts), [(text, ours, ids) for text, ours, ids in zip(texts, answers, expected) if ours.get("ids") != ids])
    report(f"{name} spans", len(texts),
           [(text, ours["spans"]) for text, ours in zip(texts, answers) if not spans_spell_their_tokens(tokenizer, text, ours["ids"], ours["spans"])])


@pytest.mark.parametrize("version", ["v0.1", "v0.3"])
def test_mistrals_models_have_the_ids_spans_and_text_of_sentencepiece(version):
    sentencepiece = pytest.importorskip("sentencepiece")
    file = TOKENIZERS / f"mistral-7b-{version}.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    spans_are_right = lambda text, ids, spans: spans == walked_spans(processor, text)
    compare_with_sentencepiece(f"Mistral {version}", processor, file, fuzz_texts(600), spans_are_right)
    requests = request_texts()
    compare_ids(f"Mistral {version}", file, requests, processor.encode(requests, add_bos=True), requests)


def test_a_model_without_a_dummy_prefix_has_the_ids_spans_and_text_of_sentencepiece(tmp_path):
    """As Gemma's: byte fallback, no dummy prefix, white space kept, turns as user-defined pieces."""
    sentencepiece = pytest.importorskip("sentencepiece")
    file = tmp_path / "tokenizer.model"
    with open(file, "wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS.read_text(encoding="utf-8").splitlines()[:4000]), model_writer=out, model_type="bpe",
            vocab_size=1200, byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
            remove_extra_whitespaces=False, user_defined_symbols=["<start_of_turn>", "<end_of_turn>", "\n\n"],
            pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>", minloglevel=2)  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    texts = fuzz_texts(1500) + ["<start_of_turn>user\n Hi<end_of_turn>\n\n", " a", "  a ", "\n\n\n"]
    compare_with_sentencepiece("like Gemma's model", processor, file, texts,
                               lambda text, ids, spans: spans_spell_their_pieces(processor, text, ids[1:], spans[1:], lambda part: part))  # fmt: skip


def write_vocab_and_merges(spec, folder):
    """The files that a tokenizer.json of byte-level BPE was made of."""
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in spec["model"]["merges"]]
    (folder / "vocab.json").write_text(json.dumps(spec["model"]["vocab"]), encoding="utf-8")
    (folder / "merges.txt").write_text("".join(line + "\n" for line in ["#version: 0.2", *merges]), encoding="utf-8")


@pytest.mark.parametrize("name", ["gpt2", "qwen2"])
def test_vocab_and_merges_have_the_ids_of_transformers(name, tmp_path):
    transformers = pytest.importorskip("transformers")
    write_vocab_and_merges(json.loads((TOKENIZERS / name / "tokenizer.json").read_text(encoding="utf-8")), tmp_path)
    shutil.copy(TOKENIZERS / name / "tokenizer_config.json", tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = made_texts(500) + decomposed_texts(500) + request_texts()[::10]
    compare_ids(f"{name}, vocab.json", tmp_path, texts, theirs(texts)["input_ids"], [None] * len(texts))


def test_added_tokens_of_older_files_have_the_ids_of_transformers(tmp_path):
    """As GPT-J has them: tokens after the vocabulary, named in added_tokens.json."""
    transformers = pytest.importorskip("transformers")
    spec = json.loads((TOKENIZERS / "gpt2" / "tokenizer.json").read_text(encoding="utf-8"))
    write_vocab_and_merges(spec, tmp_path)
    size = len(spec["model"]["vocab"])
    extra = {f"<|extratoken_{i}|>": size + i for i in range(143)}
    end = {"content": "<|endoftext|>", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    names = {"bos_token": end, "eos_token": end, "unk_token": end}
    for file, content in {"added_tokens.json": extra, "special_tokens_map.json": names,
                          "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", **names}}.items():  # fmt: skip
        (tmp_path / file).write_text(json.dumps(content))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = [f"{text}<|extratoken_{i % 143}|> {text}<|endoftext|>" for i, text in enumerate(made_texts(300))]
    compare_ids("GPT-J's files", tmp_path, texts, theirs(texts)["input_ids"], [None] * len(texts))
    assert run_tool(tmp_path, [[size - 1, size, size + 142, size + 143, 99999]])[0]["text"] == "<|extratoken_0|><|extratoken_142|>"


@pytest.mark.parametrize("prefix", ["legacy", "first", "never"])
def test_added_tokens_beside_mistrals_model_split_the_text_into_stretches(prefix, tmp_path):
    """Each stretch between added tokens has the ids that sentencepiece gives it, with its dummy prefix or without."""
    sentencepiece = pytest.importorskip("sentencepiece")
    shutil.copy(TOKENIZERS / "mistral-7b-v0.3.model", tmp_path / "tokenizer.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    ids_of = {"<s>": 1, "</s>": 2, "[INST]": 3, "[/INST]": 4, "<|more|>": processor.vocab_size()}
    decoder = {id: {"content": token, "special": True, "lstrip": False, "rstrip": False} for token, id in ids_of.items()}
    options = {"legacy": {"legacy": True}, "first": {"legacy": False}, "never": {"add_prefix_space": False}}[prefix]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder, **options}))
    normal = processor.normalize  # only to see that this model changes spaces and nothing else
    assert normal("a  b\u0301 ") == "▁a▁▁b\u0301▁"
    bare = lambda text: processor.encode("\n" + text)[2:]  # after a line's end, which nothing merges with, there is no dummy prefix
    assert processor.encode("\n") == processor.encode("\n\n")[:2] and bare("a") != processor.encode("a")

    def expected(parts):
        ids, at = [1], 0
        for part in parts:
            has_prefix = prefix == "legacy" or (prefix == "first" and at == 0)
            ids += [ids_of[part]] if part in ids_of else (processor.encode(part) if has_prefix else bare(part))
            at += len(part)
        return ids

    texts = made_texts(400)
    cases = [["[INST]", text, "[/INST]", other] if i % 2 else [text, "</s>", "<|more|>", other]
             for i, (text, other) in enumerate(zip(texts, texts[1:]))
             if text and other and "<" not in text + other and "[" not in text + other]  # fmt: skip
    assert len(cases) > 200
    answers = run_tool(tmp_path, ["".join(parts) for parts in cases])
    report(f"stretches ({prefix})", len(cases), [(parts, ours, expected(parts)) for parts, ours in zip(cases, answers) if ours.get("ids") != expected(parts)])


def train(pre_tokenizer, normalizer, alphabet, size, special, texts):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer, tokenizer.normalizer = pre_tokenizer, normalizer
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]


@pytest.fixture(scope="module")
def gemma_spec():
    """A tokenizer.json as Gemma's: byte fallback, "▁" for spaces, a Split that finds none, line ends and runs of "▁" as added tokens."""
    words = tokenizers.pre_tokenizers.Split("▁", "merged_with_next")  # to train on; Gemma's own merges were made by sentencepiece
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    lines = [line.replace(" ", "▁") for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    model = train(words, None, [], 2500, special, lines)
    model.update(unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    marks = ["<start_of_turn>", "<end_of_turn>", *("\n" * n for n in range(1, 5)), *("▁" * n for n in range(2, 6)), "<b>"]
    first = len(model["vocab"])
    tokens = [added(id, token, special=True) for id, token in enumerate(special[:5])]
    tokens += [added(first + i, token, special=token.startswith("<s") or token.startswith("<e")) for i, token in enumerate(marks)]
    bos = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing", "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [bos, {"Sequence": {"id": "A", "type_id": 0}}, bos, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                                     {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": model,
    }  # fmt: skip


@pytest.fixture(scope="module")
def cl100k_model():
    cut = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Split(tokenizers.Regex(CL100K), "isolated"),
                                              tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])  # fmt: skip
    texts = [*CORPUS.read_text(encoding="utf-8").splitlines(), *byte_level_texts(1500)]
    return train(cut, None, tokenizers.pre_tokenizers.ByteLevel.alphabet(), 2500, [], texts)


def cl100k_spec(model, pattern, behavior, invert):
    tokens = [added(len(model["vocab"]) + i, token, special=True) for i, token in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_sep|>"])]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}, byte_level(use_regex=False)]},
        "post_processor": byte_level(trim_offsets=False), "decoder": byte_level(), "model": model,
    }  # fmt: skip


def check_made(name, spec, folder):
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    compare_with_tokenizers(name, tokenizer, file, made_texts(700))
    requests = request_texts()
    compare_ids(name, file, requests, [encoding.ids for encoding in tokenizer.encode_batch_fast(requests)], [given_back(text, False) for text in requests])
    return file, tokenizer


def test_one_like_gemmas_has_the_ids_spans_and_text_of_tokenizers(gemma_spec, tmp_path):
    file, tokenizer = check_made("like Gemma's", gemma_spec, tmp_path)
    special = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    compare_decoding("like Gemma's", file, tokenizer.get_vocab_size(),
                     lambda ids: tokenizer.decode([id for id in ids if id not in special], skip_special_tokens=False))  # fmt: skip


@pytest.mark.parametrize("behavior, invert", [("Removed", True), ("Isolated", False)])
def test_ones_like_phi_4s_and_olmo_2s_have_the_ids_spans_and_text_of_tokenizers(behavior, invert, cl100k_model, tmp_path):
    check_made("like Phi-4's", cl100k_spec(cl100k_model, {"Regex": CL100K}, behavior, invert), tmp_path)


CUTS = [("Isolated", True), ("Removed", False), ("Removed", True), ("MergedWithPrevious", False)]


@pytest.mark.parametrize("behavior, invert", CUTS)
@pytest.mark.parametrize("pattern", [{"Regex": CL100K_POSSESSIVE}, {"Regex": r"\p{N}"}, {"String": " "}, {"String": ".+"}])
def test_splits_of_every_kind_have_the_ids_of_tokenizers(pattern, behavior, invert, cl100k_model, tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(cl100k_spec(cl100k_model, pattern, behavior, invert)), encoding="utf-8")
    texts = made_texts(150) + ["a.+b..+", "  a  b ", ".+.+"]
    expected = [encoding.ids for encoding in tokenizers.Tokenizer.from_file(str(file)).encode_batch(texts)]
    compare_ids(f"{pattern} {behavior} {invert}", file, texts, expected, [None] * len(texts))
