"""lancet's byte-level BPE tokenizers against Hugging Face tokenizers: ids, spans and decoded text.

The vocabularies are small and trained here on the demo corpus, Llama 3's pattern and special tokens around them.
"""
import json
import random
import sys
import unicodedata

import pytest
from test_tokenizer import FULL, ROOT, SEED, added, compare_decoding, compare_with_tokenizers, fuzz_texts, request_texts

tokenizers = pytest.importorskip("tokenizers")

LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                  r"|\s+(?!\S)|\s+")
LLAMA3_SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(4)), "<|start_header_id|>",
                  "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>",
                  *(f"<|reserved_special_token_{i}|>" for i in range(5, 251))]
CORPUS = ROOT / "data" / "requests" / "demo-corpus.txt"


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **options}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def llama3_spec(vocab, merges):
    """tokenizer.json as Llama 3 has it; the special tokens follow the vocabulary."""
    special = [added(len(vocab) + i, token, special=True) for i, token in enumerate(LLAMA3_SPECIAL)]
    bos = LLAMA3_SPECIAL[0]
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": bos, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {bos: {"id": bos, "ids": [len(vocab)], "tokens": [bos]}},
    }
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(LLAMA3_PATTERN), byte_level(use_regex=False)]},
        "post_processor": {"type": "Sequence", "processors": [byte_level(add_prefix_space=True, trim_offsets=False), template]},
        "decoder": byte_level(add_prefix_space=True),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": True, "vocab": vocab, "merges": merges},
    }  # fmt: skip


def bytes_to_characters():
    """GPT-2's table, as its paper's code describes it: printable bytes stand for themselves, the rest for U+0100 and on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(rest)}}


@pytest.fixture(scope="session")
def trained_spec():
    """Trained here, so that the test needs nothing but the demo corpus; merges of every kind come in few tokens."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(LLAMA3_PATTERN), "isolated"),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])  # fmt: skip
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=2000, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
                                             show_progress=False)
    texts = [*CORPUS.read_text(encoding="utf-8").splitlines(), *byte_level_texts(2000)]  # the latter for tokens of bytes
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return llama3_spec(model["vocab"], model["merges"])


def byte_level_texts(count):
    """What Llama 3's pattern tells apart: contractions, digits, white space, marks, characters of several bytes."""
    rng = random.Random(SEED + 1)
    parts = ["'s", "'S", "'\u017f", "'Re", "'lL", "’s", "don't", "1", "12", "1234", "٣", "Ⅷ", "½", " ", "  ", "\n", "\r\n", "\t", "\x0b", "\x1c",
             "\x85", "\xa0", "\u180e", "\u2028", "\u200b", "\u3000", "\ufeff", "a", "Paris", "Zürich", "É", "e\u0301", "日本", "語", "한", "नि", "\u0e19\u0e33",
             "\U0001f600", "\U0001f468\u200d\U0001f469", "\U0010ffff", "\0", "_", "-", "...", "?!", "<|eot_id|>", "<|begin_of_text|>", "<|", "Ġ", "Ġ[Y]", "[X]", "üé",
             "Ċ", "ı", "İ", "ß", "\u212a", "$", "€"]  # fmt: skip
    return ["".join(rng.choices(parts, k=rng.randint(1, 14))) for _ in range(count)]


def settled(text):
    """Characters that came after Unicode 3.2 (but emoji) become private ones: which of them are letters depends on the versions of
    Unicode that PCRE2 and the wheel were made with."""
    known = unicodedata.ucd_3_2_0.category
    return "".join(c if known(c) != "Cn" or "\U0001f300" <= c <= "\U0001f64f" else chr(0xF0000 + ord(c) % 0xFFFE) for c in text)


def made_texts(count):
    return [settled(text) for text in fuzz_texts(count) + byte_level_texts(count)]


def all_texts():
    return made_texts(10000) + request_texts()


def write_spec(spec, folder):
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    return file


def compare(name, spec, texts, folder, **options):
    file = write_spec(spec, folder)
    compare_with_tokenizers(name, tokenizers.Tokenizer.from_file(str(file)), file, texts, **options)


@pytest.mark.parametrize("whole_words", [True, False])
def test_a_trained_vocabulary_has_the_ids_spans_and_text_of_tokenizers(trained_spec, whole_words, tmp_path):
    spec = {**trained_spec, "model": {**trained_spec["model"], "ignore_merges": whole_words}}
    compare(f"trained, ignore_merges {whole_words}", spec, all_texts(), tmp_path)


def test_random_ids_decode_as_in_tokenizers(trained_spec, tmp_path):
    file = write_spec(trained_spec, tmp_path)
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    compare_decoding("trained", file, tokenizer.get_vocab_size(), lambda ids: tokenizer.decode(ids, skip_special_tokens=True))


def with_split(pattern):
    return lambda s: s.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [split(pattern), byte_level(use_regex=False)]})


def without_some_bytes(spec):
    gone = {"Ã", "Ċ", "ð"}  # under another name, so that the other ids stay
    spec["model"]["vocab"] = {f"gone {id}" if gone & set(piece) else piece: id for piece, id in spec["model"]["vocab"].items()}
    spec["model"]["merges"] = [pair for pair in spec["model"]["merges"] if not gone & set("".join(pair))]


VARIANTS = {
    "GPT-2": lambda s: s.update(pre_tokenizer=byte_level()),
    "GPT-2 with a space before": lambda s: s.update(pre_tokenizer=byte_level(add_prefix_space=True)),
    "no pattern": lambda s: s.update(pre_tokenizer=byte_level(use_regex=False)),
    "two patterns": lambda s: s.update(pre_tokenizer={
        "type": "Sequence", "pretokenizers": [split(r"\p{N}{1,3}"), split("[一-龥]+"), byte_level()]}),
    "GPT-4o": with_split(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?"
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "possessive": with_split(r"(?:\p{L}|')++|\p{P}?+\s++(?=\p{L})|[\s\P{L}]"),
    "merges as text": lambda s: s["model"].update(merges=[" ".join(pair) for pair in s["model"]["merges"]]),
    "template alone": lambda s: s.update(post_processor=s["post_processor"]["processors"][1]),
    "no post-processor, no decoder": lambda s: s.update(post_processor=None, decoder=None),
    "some bytes missing": without_some_bytes,
    "some bytes unknown": lambda s: (without_some_bytes(s), s["model"].update(unk_token="a")),
    "replaced first": lambda s: s.update(normalizer={"type": "Replace", "pattern": {"String": "ü"}, "content": "ue"}),
    "added tokens": lambda s: s["added_tokens"].extend(
        [added(2256, "üé"), added(2257, "日本", normalized=True, special=True), added(2258, "[X]", lstrip=True, rstrip=True), added(2259, "Ġ[Y]")]),
}  # fmt: skip


# Hugging Face's offsets drift where it drops characters.
DRIFTING = {"some bytes missing"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_have_the_ids_spans_and_text_of_tokenizers(variant, trained_spec, tmp_path):
    spec = json.loads(json.dumps(trained_spec))
    VARIANTS[variant](spec)
    compare(variant, spec, made_texts(1500), tmp_path, with_spans=variant not in DRIFTING)


def telltale_spec():
    """A vocabulary in which ids tell where words were cut: "a" merges with the first byte after it, "b" with the byte before it,
    and the last byte of a character with the first of the next."""
    names = bytes_to_characters()
    first, last = [names[byte] for byte in range(0xC2, 0xF5)], [names[byte] for byte in range(0x80, 0xC0)]
    merges = [["a", lead] for lead in first] + [[end, "b"] for end in last] + [[end, lead] for end in last for lead in first]
    pieces = [*names.values(), *("".join(pair) for pair in merges)]
    return llama3_spec({piece: id for id, piece in enumerate(pieces)}, merges)


def telltale_texts(characters):
    samples = [f"a{c}b 1{c}{c}2 '{c} " for c in characters]
    return ["".join(samples[i : i + 64]) for i in range(0, len(samples), 64)]


def test_characters_are_letters_numbers_and_white_space_as_in_tokenizers(tmp_path):
    step = 1 if FULL else 64  # of planes that are empty, and of private ones
    planes = [*range(0x40000), *range(0x40000, 0xE0000, step), *range(0xE0000, 0xF0000), *range(0xF0000, sys.maxunicode + 1, step)]
    characters = [chr(c) for c in planes if unicodedata.category(chr(c)) != "Cs" and settled(chr(c)) == chr(c)]
    assert len(characters) > 90000
    compare("characters", telltale_spec(), telltale_texts(characters), tmp_path)
