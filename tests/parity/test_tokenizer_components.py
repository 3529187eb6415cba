"""lancet's tokenizers against Hugging Face tokenizers, component by component and set-up by set-up: ids, spans, decoded text.

A set-up is what a family's published tokenizer.json consists of, around a small vocabulary that is trained here
(tokenizer_setups.py). Every line of `hard_lines` must have the same ids in both.
"""
import json
import subprocess

import pytest
from test_byte_level import CORPUS, byte_level_texts, settled
from test_tokenizer import BINARY, DEMO, SEED, byte_positions, covers, fuzz_texts, run_tool, spans_agree
from tokenizer_setups import (SETUPS, Trained, added, byte_level, digits, hard_lines, metaspace, replace, sequence, split,
                              template, words)  # fmt: skip

tokenizers = pytest.importorskip("tokenizers")
sentencepiece = pytest.importorskip("sentencepiece")


def fields(message):
    """The fields of a protocol buffer's message that hold bytes: (number, bytes)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            varint()
        elif tag & 7 == 2:
            size = varint()
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            at += 8 if tag & 7 == 1 else 4


def compiled_charsmap():
    """SentencePiece's table for nmt_nfkc, in base64: normalizer_spec (3), precompiled_charsmap (2)."""
    import base64
    import io

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e"] * 20), model_writer=model, vocab_size=9, model_type="unigram",
                                             hard_vocab_limit=False, normalization_rule_name="nmt_nfkc", minloglevel=2)
    [normalizer] = [value for number, value in fields(model.getvalue()) if number == 3]
    [charsmap] = [value for number, value in fields(normalizer) if number == 2]
    return base64.b64encode(charsmap).decode()


@pytest.fixture(scope="module")
def trained():
    demo = json.loads((DEMO / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    texts = [*CORPUS.read_text(encoding="utf-8").splitlines(), *byte_level_texts(2000)]
    result = Trained(texts, demo)
    result.charsmap = compiled_charsmap()
    return result


@pytest.fixture(scope="module")
def lines():
    return hard_lines(settled)


def opens(file):
    done = subprocess.run([BINARY, file], input="", capture_output=True, text=True)
    return done.returncode == 0, done.stderr.strip()


def differences(spec, texts, folder, check_spans):
    """What differs from the library: of each text its ids, its spans where both mean the same by them, and the text that ids give."""
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    opened, error = opens(file)
    if not opened:
        return [error]
    theirs = tokenizers.Tokenizer.from_file(str(file))
    special = {id for id, token in theirs.get_added_tokens_decoder().items() if token.special}
    expected = theirs.encode_batch(texts)
    decoded = theirs.decode_batch([[id for id in e.ids if id not in special] for e in expected], skip_special_tokens=False)
    found = []
    for text, ours, other, back in zip(texts, run_tool(file, texts), expected, decoded):
        if ours.get("ids") != other.ids:
            found.append(("ids", text, ours, other.tokens))
            continue
        at = byte_positions(text)
        size = at[-1]
        spans = ours["spans"]
        if any(not 0 <= begin <= end <= size for begin, end in spans) or any(a[0] > b[0] for a, b in zip(spans, spans[1:])):
            found.append(("spans", text, spans))
        if check_spans and not (spans_agree(other.tokens, spans, [[at[b], at[e]] for b, e in other.offsets]) and covers(text, spans)):
            found.append(("spans", text, spans, other.offsets))
        if ours["text"] != back:
            found.append(("decode", text, ours["text"], back))
    return found


def changes_text(spec):
    """Whether the library's offsets are of another kind: they drift where a normalizer takes characters away or apart."""
    return spec["normalizer"] is not None and spec["normalizer"]["type"] in ("NFC", "BertNormalizer", "Sequence")


@pytest.mark.parametrize("name", SETUPS)
def test_a_published_set_up_has_the_ids_of_tokenizers(name, trained, lines, tmp_path):
    spec = SETUPS[name](trained)
    found = differences(spec, lines, tmp_path, check_spans=not changes_text(spec) and name != "Galactica")  # it drops a mark
    print(f"{name}: {len(lines)} lines, {len(found)} differences")
    assert not found, found[:3]


def test_the_table_of_set_ups(trained, lines, tmp_path, capsys):
    """How many of the set-ups open and agree, as one table. Each of them has a test of its own above."""
    rows = []
    for name, make in SETUPS.items():
        spec = make(trained)
        found = differences(spec, lines[:200], tmp_path, check_spans=False)
        rows.append((name, "agrees" if not found else "does not open" if isinstance(found[0], str) else "differs"))
    with capsys.disabled():
        print()
        for name, state in rows:
            print(f"  {name:32} {state}")
        print(f"  {sum(state == 'agrees' for _, state in rows)} of {len(rows)} set-ups have the library's ids")
    assert len(rows) >= 53
    assert all(state == "agrees" for _, state in rows)


BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRE_TOKENIZERS = {
    **{f"split {behavior} {'inverted' if invert else ''}": [split(r"[\p{L}\d]+| ", behavior, invert)] for behavior in BEHAVIORS for invert in (False, True)},
    **{f"split string {behavior}": [split(" ", behavior, kind="String")] for behavior in BEHAVIORS},
    **{f"punctuation {behavior}": [{"type": "Punctuation", "behavior": behavior}] for behavior in BEHAVIORS},
    "punctuation by default": [{"type": "Punctuation"}],
    "digits together": [digits(False)],
    "digits alone": [digits(True)],
    "white space": [{"type": "Whitespace"}],
    "white space split": [{"type": "WhitespaceSplit"}],
    "BERT": [{"type": "BertPreTokenizer"}],
    "delimiter": [{"type": "CharDelimiterSplit", "delimiter": "a"}],
    "fixed length": [{"type": "FixedLength", "length": 3}],
    "nothing is matched": [split(r"(?=(\d{3})+(?!\d))")],
    "matches of nothing": [split(r"x*", "MergedWithPrevious")],
    "anchors": [split(r"^[a-z]|\s+$|.\b")],
    "words of Oniguruma": [split(r"\w+|\W", "Isolated")],
    "no digits": [split(r"\D+", "Removed", True)],
    "classes in classes": [split(r"[^(\s|[.,!?…。])]+|[a-z&&[^aeiou]]+|[\p{L}&&[^\p{Han}\p{Greek}]]")],
    "code points": [split(r"[\x{4E00}-\x{9FFF}\u00e0-\u00ff]+|\x41")],
    "look-behind": [split(r"(?<=\d)[a-z]|(?<![\s\d])\p{P}|(?>a+)b")],
    "a reference back": [split(r"([a-zA-Z0-9!?.])\1+")],
    "scripts": [split(r"\p{Han}+|\p{Hiragana}+|\p{Hangul}+|\p{Cyrillic}+|\p{Arabic}+|\P{Latin}")],
}  # fmt: skip


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_a_pre_tokenizer_has_the_ids_of_tokenizers(name, trained, lines, tmp_path):
    for pre in ([*PRE_TOKENIZERS[name], byte_level(use_regex=False)], [byte_level(add_prefix_space=True), *PRE_TOKENIZERS[name]]):
        found = differences(trained.by_bytes(*pre), lines, tmp_path, check_spans=False)
        assert not found, found[:3]


@pytest.mark.parametrize("name", ["prefix space in words", "two byte levels", "metaspace then split", "split then metaspace", "metaspace first in words"])
def test_pre_tokenizers_that_write_in_words_have_the_ids_of_tokenizers(name, trained, lines, tmp_path):
    pre = {
        "prefix space in words": [split(r"\p{L}+"), byte_level(add_prefix_space=True)],
        "two byte levels": [byte_level(use_regex=False), byte_level()],
        "metaspace then split": [metaspace(prepend_scheme="always", split=False), split("▁", "MergedWithNext", kind="String"), digits()],
        "split then metaspace": [split(r"\d+"), metaspace(prepend_scheme="always")],
        "metaspace first in words": [split(r"\d+"), metaspace(prepend_scheme="first", split=False)],
    }[name]
    spec = trained.by_bytes(*pre) if "byte" in name or "space in" in name else trained.like_llama(normalizer=None, pre_tokenizer=words(*pre))
    assert not (found := differences(spec, lines, tmp_path, check_spans=False)), found[:3]


def bert_normalizer(**options):
    return {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **options}


NORMALIZERS = {
    **{form: {"type": form} for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents", "ByteLevel")},
    "NFD and StripAccents": sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
    "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "strip left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "strip right": {"type": "Strip", "strip_left": False, "strip_right": True},
    "replace a regular expression": replace(r"\s+", " ", "Regex"),
    "replace nothing": replace(r"(?<=[a-z])(?=[A-Z])", "_", "Regex"),  # at a text's begin, the library doubles what is put in
    "prepend": {"type": "Prepend", "prepend": "a "},
    "BERT cleans": bert_normalizer(clean_text=True),
    "BERT spaces Chinese": bert_normalizer(handle_chinese_chars=True),
    "BERT strips accents": bert_normalizer(strip_accents=True),
    "BERT lowercases": bert_normalizer(lowercase=True, strip_accents=None),
    "precompiled": None,
}  # fmt: skip


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_normalizer_has_the_ids_of_tokenizers(name, trained, lines, tmp_path):
    normalizer = NORMALIZERS[name] or {"type": "Precompiled", "precompiled_charsmap": trained.charsmap}
    pre = [split(".", kind="Regex")] if name == "ByteLevel" else [byte_level()]
    spec = trained.by_bytes(*pre, normalizer=normalizer)
    assert not (found := differences(spec, lines, tmp_path, check_spans=False)), found[:3]


def unigram(trained, **options):
    parts = {"pre_tokenizer": metaspace(prepend_scheme="always"), "decoder": metaspace(prepend_scheme="always")}
    model = {**trained.unigram, **{key: options.pop(key) for key in list(options) if key in ("byte_fallback", "vocab", "unk_id")}}
    return trained.spec(model, ("<s>", "</s>", "<unk>"), **{**parts, **options})


@pytest.mark.parametrize("name", ["plain", "whole texts", "byte fallback", "pieces that stand twice", "no normalizer or pre-tokenizer"])
def test_unigram_has_the_ids_of_tokenizers(name, trained, lines, tmp_path):
    vocab = trained.unigram["vocab"]
    spec = {
        "plain": lambda: unigram(trained),
        "whole texts": lambda: unigram(trained, pre_tokenizer=metaspace(prepend_scheme="first", split=False)),
        "byte fallback": lambda: unigram(trained, byte_fallback=True, vocab=[*vocab, *([f"<0x{byte:02X}>", -20.0] for byte in range(256))],
                                         decoder=sequence("decoders", replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"})),
        "pieces that stand twice": lambda: unigram(trained, vocab=[*vocab, *([piece, score + 1] for piece, score in vocab[100:200])]),
        "no normalizer or pre-tokenizer": lambda: unigram(trained, pre_tokenizer=None, decoder=None),
    }[name]()  # fmt: skip
    assert not (found := differences(spec, [line for line in lines if len(line) < 1000], tmp_path, check_spans=False)), found[:3]


def test_bpe_with_marks_of_words_has_the_ids_of_tokenizers(trained, lines, tmp_path):
    spec = SETUPS["GPT (OpenAI's first)"](trained)
    marked = json.loads(json.dumps(spec))  # a prefix inside words as well
    prefixed = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    prefixed.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    prefixed.train_from_iterator(trained.texts, tokenizers.trainers.BpeTrainer(vocab_size=1000, special_tokens=["<unk>"],
                                                                               continuing_subword_prefix="##", show_progress=False))
    marked.update(model=json.loads(prefixed.to_str())["model"], decoder={"type": "WordPiece", "prefix": "##", "cleanup": True})
    for one in (spec, marked):
        assert not (found := differences(one, lines, tmp_path, check_spans=False)), found[:3]


DECODERS = {
    "replace a regular expression": sequence("decoders", replace("Ġ+", " ", "Regex"), {"type": "Fuse"}),
    "word ends": {"type": "BPEDecoder", "suffix": "Ġ"},
    "word pieces": {"type": "WordPiece", "prefix": "Ġ", "cleanup": False},
    "word pieces cleaned up": {"type": "WordPiece", "prefix": "Ġ", "cleanup": True},
    "metaspace": metaspace(prepend_scheme="never"),
    "strip": sequence("decoders", {"type": "Strip", "content": "Ġ", "start": 2, "stop": 0}, {"type": "Fuse"}),
}  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_gives_the_text_of_tokenizers(name, trained, lines, tmp_path):
    spec = {**trained.by_bytes(byte_level()), "decoder": DECODERS[name]}
    assert not (found := differences(spec, [line for line in lines if line], tmp_path, check_spans=False)), found[:3]


def test_post_processors_put_the_tokens_of_tokenizers_around_a_text(trained, lines, tmp_path):
    special = ("<s>", "</s>", "[X]")
    ids = {token["content"]: token["id"] for token in trained.by_bytes(byte_level(), special=special)["added_tokens"]}
    bert = {"type": "BertProcessing", "sep": ["</s>", ids["</s>"]], "cls": ["<s>", ids["<s>"]]}
    roberta = {**bert, "type": "RobertaProcessing", "trim_offsets": False, "add_prefix_space": True}
    for processor in (bert, roberta, template(["[X]"], ["</s>"], ids), sequence("processors", template(["<s>"], ids=ids), byte_level(trim_offsets=False))):  # fmt: skip
        spec = trained.by_bytes(byte_level(), special=special, post_processor=processor)
        assert not (found := differences(spec, lines[:300], tmp_path, check_spans=False)), (processor["type"], found[:3])


ADDED_TOKENS = {
    "single words": [added("the", single_word=True, special=False), added("Paris", single_word=True), added("!", single_word=True, special=False),
                     added("é", single_word=True, special=False), added("1", single_word=True, normalized=True, special=False)],
    "single words that strip": [added("the", single_word=True, lstrip=True, rstrip=True, special=False), added("a", single_word=True, rstrip=True)],
    "ids in another order": [{**added("<z>"), "id": 90003}, {**added("<y>"), "id": 90001}, {**added("<x>"), "id": 90002}],
    "tokens that stand twice": [added("<z>"), added("<z>", lstrip=True), added("<y>", special=False), added("<y>", rstrip=True, special=False)],
    "tokens that are pieces": [added("the", special=False), added("is", normalized=True)],
}  # fmt: skip


@pytest.mark.parametrize("name", ADDED_TOKENS)
def test_added_tokens_have_the_ids_of_tokenizers(name, trained, lines, tmp_path):
    texts = [*lines, "the theme the. other the", "Paris Parisian (Paris) Paris", "a!b ! !! a1 1 1a é aé éa", "<z><y> <x> <z>", "_the the_ the-the \u0301the the\u0301"]
    spec = trained.by_bytes(byte_level(), normalizer={"type": "Lowercase"} if name == "single words" else None)
    tokens = [dict(token) for token in ADDED_TOKENS[name]]
    spec["added_tokens"] += [{**token, "id": token["id"] or 80000} for token in tokens]
    assert not (found := differences(spec, texts, tmp_path, check_spans=False)), found[:3]


def test_random_texts_have_the_ids_of_tokenizers_where_steps_follow_each_other(trained, tmp_path):
    """Falcon's order: words are spelled in bytes, and cut again by what then stands there."""
    texts = [settled(text) for text in fuzz_texts(3000)]
    print(f"seed {SEED}")
    for name in ("Falcon-7B", "DeepSeek-V2", "XGLM"):
        found = differences(SETUPS[name](trained), texts, tmp_path, check_spans=False)
        assert not found, (name, found[:3])
