"""lancet's tokenizers against Hugging Face tokenizers, transformers and SentencePiece: ids, spans and decoded text.

Runs <LANCET_BUILD>/tests/tokenize_lines once per tokenizer over strings of the request files and a seeded fuzz: every eighth string,
and with LANCET_TEST_FULL=1 (make test-full) each of them.
"""
import json
import os
import random
import subprocess
import unicodedata
from functools import lru_cache
from pathlib import Path

import pytest

tokenizers = pytest.importorskip("tokenizers")

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
TOKENIZERS = FIXTURES / "tokenizers"
DEMO = ROOT / "data" / "demo-model"
BINARY = Path(os.environ.get("LANCET_BUILD", ROOT / "build")) / "tests" / "tokenize_lines"
FOLDERS = {"demo": DEMO, "joined words": TOKENIZERS / "joined-words"}
SEED = 20240521
FULL = bool(os.environ.get("LANCET_TEST_FULL"))


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from strings_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from strings_in(member)


@lru_cache(maxsize=None)
def request_texts():
    files = [ROOT / "data" / "requests" / "demo.json", *sorted((FIXTURES / "requests").glob("**/*.json"))]
    texts = sorted({text for file in files for text in strings_in(json.loads(file.read_text(encoding="utf-8")))})
    return texts if FULL else texts[::8]


@lru_cache(maxsize=None)
def fuzz_texts(count):
    print(f"fuzz seed {SEED}")
    rng = random.Random(SEED)
    plain = "abcdefghij klmnopqrst uvwxyz ABCDEFG 0123456789 .,;:!?'\"-()"
    odd = " \t\n\r\0\x01\x1b\x7f\x85\xa0\u00ad\u1680\u2003\u2028\u200b\u200d\u3000\u2581\ufeff\ufffd"
    words = ["<s>", "</s>", "<unk>", "<|start_story|>", "<|end_story|>", "<0x41>", "<0xE2>", "  ", "   ", "\n\n", "▁▁", "[X]",
             "Paris", "The capital of", "Danielle Darrieux", "\U0001f600", "\U0001f468\u200d\U0001f469", "e\u0301", "\ufb03",
             "\u3300", "日本語", "Ελλάδα", "שלום", "नमस्ते", "\U0010ffff", "Zürich", "…"]
    classes = [
        lambda: rng.choice(plain),
        lambda: rng.choice(odd),
        lambda: rng.choice(words),
        lambda: " " * rng.randint(1, 6),
        lambda: chr(rng.choice([rng.randint(0x80, 0x7FF), rng.randint(0x800, 0xD7FF), rng.randint(0xE000, 0xFFFF),
                                rng.randint(0x10000, 0x10FFFF)])),
    ]
    texts = ["", " ", "  ", "\n", "▁", "<s>", " <s> ", "<s><s>", "a" * 5000, "ab " * 3000]
    for _ in range(count):
        weights = [rng.random() ** 3 for _ in classes]
        texts.append("".join(rng.choices(classes, weights)[0]() for _ in range(rng.randint(0, 30))))
    return texts


def run_tool(model, lines, *options):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([BINARY, model, *options], input=text, capture_output=True, text=True, encoding="utf-8", check=True)
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(answers) == len(lines)
    return answers


def byte_positions(text):
    """positions[i]: the byte at which character i begins."""
    positions = [0]
    for character in text:
        positions.append(positions[-1] + len(character.encode("utf-8")))
    return positions


def report(name, compared, mismatches):
    print(f"{name}: {compared} compared, {len(mismatches)} mismatches")
    assert not mismatches, mismatches[:5]


def spans_agree(token_texts, ours, theirs):
    """Equal, but for tokens that cover no text: Hugging Face gives a dummy prefix of its own the first character's span and puts
    all special tokens at (0, 0); lancet gives both an empty span, that of special tokens after the text at its end."""
    last = len(ours) - 1
    return all(our == their or (our[0] == our[1] and (text in ("▁", "Ġ") or index in (0, last)))
               for index, (text, our, their) in enumerate(zip(token_texts, ours, theirs)))


def covers(text, spans):
    """No byte of the text is left out."""
    done = 0
    for begin, end in spans:
        if done < begin < end:
            return False
        done = max(done, end)
    return done == len(text.encode("utf-8"))


def compare_with_tokenizers(name, tokenizer, model, texts, with_spans=True):
    special = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    answers = run_tool(model, texts)
    expected = tokenizer.encode_batch(texts)
    # tokenizers 0.23 fails to skip special tokens that are "normalized" (it looks up their normalised form), so they are taken
    # out here.
    decoded = tokenizer.decode_batch([[id for id in e.ids if id not in special] for e in expected], skip_special_tokens=False)
    ids, spans, decodes = [], [], []
    for text, ours, theirs, back in zip(texts, answers, expected, decoded):
        if ours.get("ids") != theirs.ids:
            ids.append((text, ours, theirs.tokens))
            continue
        at = byte_positions(text)
        converted = [[at[begin], at[end]] for begin, end in theirs.offsets]
        if with_spans and not (spans_agree(theirs.tokens, ours["spans"], converted) and covers(text, ours["spans"])):
            spans.append((text, ours["spans"], converted))
        if ours["text"] != back:
            decodes.append((text, ours["text"], back))
    report(f"{name} ids", len(texts), ids)
    report(f"{name} spans", len(texts) if with_spans else 0, spans)
    report(f"{name} decode", len(texts), decodes)


def compare_decoding(name, model, vocab_size, decode):
    rng = random.Random(SEED)
    lists = [[rng.randrange(vocab_size if rng.random() < 0.5 else min(300, vocab_size)) for _ in range(rng.randint(0, 12))]
             for _ in range(4000)]
    answers = run_tool(model, lists)
    mismatches = [(ids, ours["text"], decode(ids)) for ids, ours in zip(lists, answers) if ours["text"] != decode(ids)]
    report(f"{name} decode of random ids", len(lists), mismatches)


@pytest.mark.parametrize("model", FOLDERS)
def test_request_texts_have_the_ids_spans_and_text_of_tokenizers(model):
    file = FOLDERS[model] / "tokenizer.json"
    compare_with_tokenizers(model, tokenizers.Tokenizer.from_file(str(file)), file.parent, request_texts())


@pytest.mark.parametrize("model", FOLDERS)
def test_random_texts_have_the_ids_spans_and_text_of_tokenizers(model):
    file = FOLDERS[model] / "tokenizer.json"
    compare_with_tokenizers(model, tokenizers.Tokenizer.from_file(str(file)), file.parent, fuzz_texts(10000))


@pytest.mark.parametrize("model", FOLDERS)
def test_random_ids_decode_as_in_tokenizers(model):
    file = FOLDERS[model] / "tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    special = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}

    def decode(ids):
        return tokenizer.decode([id for id in ids if id not in special], skip_special_tokens=False)

    compare_decoding(model, file.parent, tokenizer.get_vocab_size(), decode)


def test_request_and_random_texts_have_the_ids_of_transformers():
    transformers = pytest.importorskip("transformers")
    texts = request_texts() + fuzz_texts(10000)
    expected = transformers.AutoTokenizer.from_pretrained(DEMO)(texts)["input_ids"]
    mismatches = [(text, ours, ids) for text, ours, ids in zip(texts, run_tool(DEMO, texts), expected) if ours.get("ids") != ids]
    report("demo ids (transformers)", len(texts), mismatches)


def metaspace(**options):
    return {"type": "Metaspace", "replacement": "▁", **options}


def added(id, content, **options):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **options}


def without_some_bytes(spec):
    vocab = spec["model"]["vocab"]
    for piece in ["<0xE2>", "<0xC3>", "<0x3C>"]:
        vocab[piece.replace("x", "y")] = vocab.pop(piece)


VARIANTS = {
    "metaspace always split": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="always", split=True)),
    "metaspace always whole": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="always", split=False)),
    "metaspace first split": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="first", split=True)),
    "metaspace first whole": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="first", split=False)),
    "metaspace never": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="never")),
    "metaspace legacy": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(add_prefix_space=True)),
    "metaspace decoder": lambda s: s.update(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="first"),
                                            decoder=metaspace(prepend_scheme="first")),
    "metaspace decoder never": lambda s: s.update(decoder=metaspace(prepend_scheme="never")),
    "metaspace after prepend": lambda s: s.update(pre_tokenizer=metaspace(prepend_scheme="first", split=True)),
    "nothing before the model": lambda s: s.update(normalizer=None, pre_tokenizer=None),
    "replace of words": lambda s: s.update(normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": "▁bc"}),
    "no post-processor, no decoder": lambda s: s.update(post_processor=None, decoder=None),
    "unknown fused": lambda s: s["model"].update(byte_fallback=False),
    "unknown not fused": lambda s: s["model"].update(byte_fallback=False, fuse_unk=False),
    "no unknown token": lambda s: s["model"].update(byte_fallback=False, unk_token=None),
    "some bytes missing": without_some_bytes,
    "whole words": lambda s: (s.update(normalizer=None, pre_tokenizer=metaspace()), s["model"].update(ignore_merges=True)),
    "normalized added tokens": lambda s: s["added_tokens"].extend(
        [added(4096, "[X]", normalized=True), added(4097, "Danielle Darrieux", normalized=True, special=True)]),
    "stripping added tokens": lambda s: s["added_tokens"].extend(
        [added(4096, "[X]", lstrip=True, rstrip=True), added(4097, "Paris", lstrip=True), added(4098, "\n\n", rstrip=True)]),
    "nested added tokens": lambda s: s["added_tokens"].extend(
        [added(4096, "<|start"), added(4097, "<|start_story|>"), added(4098, "▁▁"), added(4099, "  ")]),
}


# Here Hugging Face's offsets drift: dropped characters are not counted, and the unknown token comes after later bytes.
DRIFTING = {"no unknown token", "some bytes missing"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_the_demo_tokenizer_have_the_ids_spans_and_text_of_tokenizers(variant, tmp_path):
    spec = json.loads((DEMO / "tokenizer.json").read_text(encoding="utf-8"))
    VARIANTS[variant](spec)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    compare_with_tokenizers(variant, tokenizers.Tokenizer.from_file(str(file)), file, fuzz_texts(1500),
                            with_spans=variant not in DRIFTING)


def walked_spans(processor, text):
    """Spans by walking the text along the pieces; for models that only turn spaces into U+2581 and put one before."""
    at = byte_positions(text)
    spans, done = [[0, 0]], 0
    pending = 0  # byte pieces still to come for the character at `done`
    for index, id in enumerate(processor.encode(text)):
        if not processor.is_byte(id):
            begin, done = done, done + len(processor.id_to_piece(id)) - (index == 0)
            spans.append([at[begin], at[done]])
            continue
        pending = (pending or at[done + 1] - at[done]) - 1
        spans.append([at[done], at[done + 1]])
        done += pending == 0
    assert done == len(text)
    return spans


def spans_spell_their_pieces(processor, text, ids, spans, normalise):
    """Whether the text that tokens cover, normalised, is their pieces. Tokens that share a character are taken together."""
    data = text.encode("utf-8")
    groups = []  # [begin, end, bytes of the pieces]
    for id, (begin, end) in zip(ids, spans):
        piece = processor.id_to_piece(id)
        spelling = bytes([int(piece[3:5], 16)]) if processor.is_byte(id) else piece.encode("utf-8")
        if groups and begin < groups[-1][1]:
            groups[-1][1] = max(groups[-1][1], end)
            groups[-1][2] += spelling
        else:
            groups.append([begin, end, spelling])

    def letters(spelled):
        return "".join(spelled.replace("▁", " ").split())

    return all(letters(normalise(data[begin:end].decode("utf-8"))) == letters(spelling.decode("utf-8"))
               for begin, end, spelling in groups)


def compare_with_sentencepiece(name, processor, file, texts, spans_are_right):
    answers = run_tool(file, texts)
    expected = processor.encode(texts, add_bos=True)
    report(f"{name} ids", len(texts),
           [(text, ours, ids) for text, ours, ids in zip(texts, answers, expected) if ours.get("ids") != ids])
    report(f"{name} spans", len(texts),
           [(text, ours["spans"]) for text, ours in zip(texts, answers) if not spans_are_right(text, ours["ids"], ours["spans"])])

    def decode(ids):  # special tokens are taken out first, as transformers does, so that bytes on both sides of one join
        return processor.decode([id for id in ids if not processor.is_unknown(id) and not processor.is_control(id)])

    report(f"{name} decode", len(texts),
           [(text, ours["text"]) for text, ours in zip(texts, answers) if ours["text"] != decode(ours["ids"])])
    compare_decoding(name, file, processor.vocab_size(), decode)


@pytest.mark.parametrize("file", [TOKENIZERS / "mistral-7b-v0.1.model", DEMO / "tokenizer.model"], ids=["mistral", "demo"])
def test_sentencepiece_models_have_the_ids_spans_and_text_of_sentencepiece(file):
    sentencepiece = pytest.importorskip("sentencepiece")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    compare_with_sentencepiece(file.name, processor, file, fuzz_texts(10000) + request_texts(),
                               lambda text, ids, spans: spans == walked_spans(processor, text))


def test_a_model_that_removes_white_space_has_the_ids_spans_and_text_of_sentencepiece():
    sentencepiece = pytest.importorskip("sentencepiece")
    file = TOKENIZERS / "stories260k.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    compare_with_sentencepiece(
        "stories260K", processor, file, fuzz_texts(10000) + request_texts(),
        lambda text, ids, spans: spans_spell_their_pieces(processor, text, ids[1:], spans[1:], lambda part: part))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_model_that_normalises_has_the_ids_spans_and_text_of_sentencepiece(kind, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    rng = random.Random(SEED)
    parts = ["Paris ", "  ", "e\u0301", "\ufb03", "\u3300", "Ⅷ", "½ ", "ｆｕｌｌ", "한", "\U0001f600", "a", "b", "c ", "the "]
    texts = ["".join(rng.choices(parts, k=rng.randint(0, 12))) for _ in range(4000)]
    known = [text for text in texts if not set("\U0001f600한Ⅷ") & set(text)]  # so that these fall back to bytes
    file = tmp_path / "tokenizer.model"
    with open(file, "wb") as out:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(known), model_writer=out, model_type=kind,
                                                 vocab_size=320, byte_fallback=True, hard_vocab_limit=False,
                                                 normalization_rule_name="nmt_nfkc", minloglevel=2)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    compare_with_sentencepiece(
        f"nmt_nfkc {kind}", processor, file, texts,
        lambda text, ids, spans: spans_spell_their_pieces(processor, text, ids[1:], spans[1:],
                                                          lambda part: unicodedata.normalize("NFKC", part)))
