"""Set-ups of published tokenizers: their components as the public files have them, around small vocabularies that are trained here.

A set-up is a name and a function of `Trained` that gives a tokenizer.json. What makes ids differ is in the components: where words
are cut, what is normalised, how unknown characters are spelled, which added tokens there are. The vocabularies are small.
"""
import json
import random

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = CL100K.replace("{1,3}", "")
POSSESSIVE = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*")
TEKKEN = CASED + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (CASED.replace("+|[^", "+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^", 1) + r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")  # fmt: skip
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")  # fmt: skip
DEEPSEEK_3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_LETTERS = (r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝ"
                    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
                    "\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184"
                    "Ⰰ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
DEEPSEEK_MARKS = r"\s?[!-/:-~！-／：-～‘-‟　-。]+"
GALACTICA = r"[0-9]|[\(\)\[\]\{\}]|([!\"\#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*"


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **options}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def digits(individual=True):
    return {"type": "Digits", "individual_digits": individual}


def metaspace(**options):
    return {"type": "Metaspace", "replacement": "▁", **options}


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def sequence(key, *members):
    return {"type": "Sequence", key: list(members)}


def words(*members):
    return members[0] if len(members) == 1 else sequence("pretokenizers", *members)


def added(content, **options):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **options}


def template(before=(), behind=(), ids=None):
    """TemplateProcessing with special tokens around a text."""
    special = [*before, *behind]
    place = {"Sequence": {"id": "A", "type_id": 0}}
    single = [*({"SpecialToken": {"id": t, "type_id": 0}} for t in before), place, *({"SpecialToken": {"id": t, "type_id": 0}} for t in behind)]
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in special}}  # fmt: skip


def trained_model(tokenizer, trainer, texts):
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]


class Trained:
    """Models of the kinds that causal language models use, each trained once."""

    def __init__(self, texts, sentencepiece_model):
        self.texts = texts
        self.sentencepiece = sentencepiece_model  # BPE of the SentencePiece kind, with bytes
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(tokenizers.Regex(O200K), "isolated"),
                                                           pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        trainer = trainers.BpeTrainer(vocab_size=1800, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        self.bytes = trained_model(tokenizer, trainer, texts)
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=1200, unk_token="<unk>", special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False)
        self.unigram = trained_model(tokenizer, trainer, texts)
        tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False)
        self.word_ends = trained_model(tokenizer, trainer, texts)

    def spec(self, model, special=("<|endoftext|>",), **parts):
        """A tokenizer.json; `special` are added tokens, or their contents."""
        tokens = [dict(token) if isinstance(token, dict) else added(token) for token in special]
        vocabulary = model["vocab"]
        known = vocabulary if isinstance(vocabulary, dict) else {piece: id for id, (piece, _) in enumerate(vocabulary)}
        following = len(known)
        for token in tokens:
            if token["content"] in known:
                token["id"] = known[token["content"]]
            else:
                token["id"], following = following, following + 1
        ids = {token["content"]: token["id"] for token in tokens}
        if callable(parts.get("post_processor")):
            parts["post_processor"] = parts["post_processor"](ids)
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": None, "pre_tokenizer": None,
                "post_processor": None, "decoder": None, **parts, "model": model}  # fmt: skip

    def by_bytes(self, *pre, special=("<|endoftext|>",), ignore_merges=False, **parts):
        model = {**self.bytes, "ignore_merges": ignore_merges}
        return self.spec(model, special, pre_tokenizer=words(*pre), decoder=byte_level(), **parts)

    def by_pattern(self, pattern, **options):
        return self.by_bytes(split(pattern), byte_level(use_regex=False), **options)

    def like_llama(self, prefix=True, special=("<unk>", "<s>", "</s>"), **parts):
        normalizer = [{"type": "Prepend", "prepend": "▁"}] if prefix else []
        decoders = [replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
        decoders += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
        return self.spec(self.sentencepiece, special, **{
            "normalizer": sequence("normalizers", *normalizer, replace(" ", "▁")), "decoder": sequence("decoders", *decoders),
            "post_processor": lambda ids: template(["<s>"], ids=ids), **parts})  # fmt: skip


def begins_with(token, **options):
    return lambda ids: sequence("processors", byte_level(trim_offsets=False, **options), template([token], ids=ids))


PHI_SPACES = [added(" " * n, special=False, normalized=True) for n in range(2, 32)] + [added("\t" * n, special=False, normalized=True) for n in range(2, 10)]
NFC = {"type": "NFC"}

# Before Digits, Punctuation and the others opened, those with True did not.
SETUPS = {
    "GPT-2": lambda t: t.by_bytes(byte_level(), post_processor=byte_level(trim_offsets=False)),
    "GPT-J": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", *(added(f"<|extratoken_{i}|>", special=False) for i in range(1, 8)))),
    "GPT-Neo": lambda t: t.by_bytes(byte_level(add_prefix_space=False), post_processor=byte_level(trim_offsets=False)),
    "GPT-NeoX-20B": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", "<|padding|>", *PHI_SPACES[:24]), normalizer=NFC),
    "Pythia": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", "<|padding|>"), normalizer=NFC),
    "OPT": lambda t: t.by_bytes(byte_level(), special=("<pad>", "</s>", added("<unk>", normalized=True)), post_processor=begins_with("</s>")),
    "OPT-350m (RobertaProcessing)": lambda t: t.by_bytes(byte_level(), special=("<s>", "</s>"), post_processor=lambda ids: {
        "type": "RobertaProcessing", "sep": ["</s>", ids["</s>"]], "cls": ["<s>", ids["<s>"]], "trim_offsets": False, "add_prefix_space": False}),
    "Galactica": lambda t: t.by_bytes(split("SPL1T-TH1S-Pl3A5E", "Removed", kind="String"), digits(), split(GALACTICA), byte_level(),
                                      special=("<pad>", "</s>", "[START_REF]", "[END_REF]", "<work>")),
    "BLOOM": lambda t: t.by_bytes(split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), byte_level(use_regex=False), special=("<unk>", "<s>", "</s>", "<pad>")),
    "MPT": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", "<|padding|>"), normalizer=NFC),
    "Falcon-7B": lambda t: t.by_bytes({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(), digits(False), split("[0-9][0-9][0-9]"),
                                      special=("<|endoftext|>", ">>TITLE<<", ">>ABSTRACT<<")),
    "Falcon-40B": lambda t: t.by_bytes({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(), digits(False), split("[0-9][0-9][0-9]"),
                                       special=("<|endoftext|>", ">>QUESTION<<", ">>ANSWER<<"), post_processor=byte_level(trim_offsets=False)),
    "Falcon3": lambda t: t.by_bytes({"type": "Punctuation", "behavior": "Contiguous"}, digits(), byte_level(), special=("<|endoftext|>", "<|pad|>")),
    "StarCoder": lambda t: t.by_bytes(digits(), byte_level(), special=("<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>")),
    "StarCoder2": lambda t: t.by_bytes(digits(), byte_level(), special=("<|endoftext|>", "<file_sep>", "<repo_name>")),
    "SantaCoder": lambda t: t.by_bytes(digits(), byte_level(add_prefix_space=False), special=("<|endoftext|>", "<fim-prefix>")),
    "Granite 3": lambda t: t.by_bytes(digits(), byte_level(), special=("<|end_of_text|>", "<fim_prefix>", "<|start_of_role|>", "<|end_of_role|>")),
    "Granite code": lambda t: t.by_bytes(digits(), byte_level(), special=("<|endoftext|>", "<reponame>"), normalizer=None),
    "SmolLM": lambda t: t.by_bytes(digits(), byte_level(), special=("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>")),
    "SmolLM2": lambda t: t.by_bytes(digits(), byte_level(), special=("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<jupyter_code>")),
    "SmolLM3": lambda t: t.by_pattern(CL100K, special=("<|begin_of_text|>", "<|im_start|>", "<|im_end|>", added("<think>", special=False)),
                                      ignore_merges=True),
    "CodeGen": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", *PHI_SPACES)),
    "Phi-2": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", *PHI_SPACES)),
    "Phi-4": lambda t: t.by_pattern(POSSESSIVE, special=("<|endoftext|>", added("<|im_start|>", lstrip=True, rstrip=True), "<|im_end|>")),
    "StableLM 3B": lambda t: t.by_bytes(byte_level(), normalizer=NFC),
    "StableLM 2": lambda t: t.by_pattern(CL100K, special=("<|endoftext|>", "<|im_start|>", "<|fim_prefix|>"), normalizer=NFC),
    "Qwen2.5": lambda t: t.by_pattern(QWEN, special=("<|endoftext|>", "<|im_start|>", "<|im_end|>", added("<tool_call>", special=False)), normalizer=NFC),
    "Qwen3": lambda t: t.by_pattern(QWEN, special=("<|endoftext|>", "<|im_end|>", added("<think>", special=False), added("</think>", special=False)),
                                    normalizer=NFC),
    "Llama 3": lambda t: t.by_pattern(CL100K, special=("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"), ignore_merges=True,
                                      post_processor=begins_with("<|begin_of_text|>")),
    "Llama 4": lambda t: t.by_pattern(O200K, special=("<|begin_of_text|>", "<|eot|>", "<|header_start|>"), ignore_merges=True,
                                      post_processor=begins_with("<|begin_of_text|>")),
    "gpt-oss": lambda t: t.by_pattern(O200K, special=("<|startoftext|>", "<|return|>", "<|channel|>", "<|message|>")),
    "DeepSeek-LLM": lambda t: t.by_bytes(split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split(DEEPSEEK_MARKS), split(r"\s+$"), split("[一-龥ࠀ-一가-\ud7ff]+"),
                                         digits(), byte_level(use_regex=False), special=("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
                                         post_processor=begins_with("<｜begin▁of▁sentence｜>")),
    "DeepSeek-Coder": lambda t: t.by_bytes(split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-\ud7ff]+"), digits(),
                                           byte_level(use_regex=False), special=("<｜begin▁of▁sentence｜>", "<|EOT|>")),
    "DeepSeek-V2": lambda t: t.by_bytes(split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split(DEEPSEEK_MARKS), split(r"\s+$"), split("[一-龥ࠀ-一가-\ud7ff]+"),
                                        digits(), byte_level(use_regex=False), special=("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")),
    "DeepSeek-V3": lambda t: t.by_bytes(split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK_3), byte_level(use_regex=False),
                                        special=("<｜begin▁of▁sentence｜>", added("<｜User｜>", special=False), added("<think>", special=False, normalized=True)),
                                        post_processor=lambda ids: template(["<｜begin▁of▁sentence｜>"], ids=ids)),
    "Command R": lambda t: t.by_bytes(digits(), byte_level(trim_offsets=True), special=("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<EOS_TOKEN>"), normalizer=NFC,
                                      post_processor=lambda ids: template(["<BOS_TOKEN>"], ids=ids)),
    "Aya": lambda t: t.by_bytes(digits(), byte_level(), special=("<BOS_TOKEN>", "<|USER_TOKEN|>"), normalizer=NFC),
    "OLMo": lambda t: t.by_bytes(byte_level(), special=("<|endoftext|>", "<|padding|>", added("|||IP_ADDRESS|||", special=False, normalized=True)), normalizer=NFC),
    "OLMo 2": lambda t: t.by_pattern(CL100K, special=("<|endoftext|>", "<|fim_prefix|>", "<|pad|>")),
    "EXAONE 3.5": lambda t: t.by_bytes(split(CL100K), byte_level(use_regex=False), special=("[PAD]", "[BOS]", "[|endofturn|]"), normalizer=NFC),
    "GLM-4": lambda t: t.by_pattern(CL100K, special=("<|endoftext|>", "[gMASK]", "<sop>", "<|user|>"),
                                    post_processor=lambda ids: template(["[gMASK]", "<sop>"], ids=ids)),
    "Mistral NeMo": lambda t: t.by_pattern(TEKKEN, special=("<unk>", "<s>", "</s>", "[INST]", "[/INST]"), ignore_merges=True,
                                           post_processor=lambda ids: template(["<s>"], ids=ids)),
    "Kimi K2": lambda t: t.by_pattern(KIMI, special=("[BOS]", "[EOS]", "<|im_end|>")),
    "LFM2": lambda t: t.by_pattern(CL100K, special=("<|startoftext|>", "<|im_end|>"), ignore_merges=True,
                                   post_processor=lambda ids: template(["<|startoftext|>"], ids=ids)),
    "Llama 2": lambda t: t.like_llama(),
    "Mistral 7B": lambda t: t.like_llama(special=("<unk>", "<s>", "</s>", "[INST]")),
    "Mistral 7B v0.3 (Metaspace)": lambda t: t.like_llama(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="first", split=False)),
    "Yi": lambda t: t.like_llama(prefix=False, special=("<unk>", "<s>", "</s>", added("<|im_start|>", special=False))),
    "InternLM2": lambda t: t.like_llama(special=("<unk>", "<s>", "</s>", "<|plugin|>", "<|interpreter|>", "<|im_end|>", "<|im_start|>")),
    "Phi-3": lambda t: t.like_llama(special=("<unk>", "<s>", added("</s>", rstrip=True, special=False), added("<|end|>", rstrip=True), "<|endoftext|>")),
    "Gemma": lambda t: t.like_llama(prefix=False, normalizer=replace(" ", "▁"), pre_tokenizer=split(" ", "MergedWithPrevious", kind="String"),
                                    special=("<unk>", "<s>", "</s>", *(added("\n" * n, special=False) for n in range(2, 8)),
                                             *(added("▁" * n, special=False) for n in range(2, 8)))),
    "XGLM": lambda t: t.spec(t.unigram, ("<s>", "<pad>", "</s>", "<unk>"), decoder=metaspace(prepend_scheme="always"),
                             normalizer=sequence("normalizers", {"type": "Precompiled", "precompiled_charsmap": t.charsmap}, replace(" {2,}", " ", "Regex")),
                             pre_tokenizer=metaspace(prepend_scheme="always"), post_processor=lambda ids: template(["</s>"], ids=ids)),
    "GPT (OpenAI's first)": lambda t: t.spec(t.word_ends, ("<unk>",), decoder={"type": "BPEDecoder", "suffix": "</w>"}, pre_tokenizer={"type": "BertPreTokenizer"},
                                             normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                                                         "lowercase": True}),
}  # fmt: skip


def hard_lines(settled, count=2019):
    """Lines that tell tokenizers apart. `settled` makes characters of young versions of Unicode private ones."""
    rng = random.Random(5619)
    parts = ["'s", "'LL", "don't", "’s", "1", "23", "4567", "1,234.5", "٣٤", "Ⅷ", "½", "²", "①", "x²+y³", "१२", " ", "  ", "    ", "\t", "\t\t", "\n", "\n\n", "\r\n",
             "\r", "\x0b", "\x1c", "\x85", "\xa0", "\u180e", "\u2003", "\u2028", "\u200b", "\u200d", "\u3000", "\ufeff", "\ufffd", "\0", "\x7f", "a", "Paris", " the", "The capital of",
             "Zürich", "É", "e\u0301", "o\u0302\u0323", "ﬁn", "ﬃ", "㌀", "ｆｕｌｌ", "İstanbul", "ß", "ẞ", "ſ", "K", "日本語", "東京", "한국어", "\u1112\u1161\u11ab", "नमस्ते", "ที่", "ไทย", "שָׁלוֹם", "مرحبا",
             "ελληνικά", "Привет", "й", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f466", "\U0001f1e9\U0001f1ea", "☺️", "\U0010ffff", "\ue000", "_", "-", "--", "...", "…", "?!", "!!!!", "((", ")]}",
             "[", "\\", "/", "//", "$", "€", "+=", "<=", "`", "~", "^^", "|", "||", "«", "»", "、", "。", "！", "‘", "”", "•", "<s>", "</s>", "<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>",
             " <|im_start|> ", "<think>", "<｜User｜>", "[INST]", "<BOS_TOKEN>", "<|begin_of_text|>", "<|", "|>", "<0x41>", "<0xE2>", "▁", "▁▁", "Ġ", "Ċ", "##a", "@@", "</w>", "SPL1T-TH1S-Pl3A5E", "[START_REF]",
             "http://a.b/c?d=e&f", "a@b.co", "#include <x>", "def f(x):", "    return x", "{\"k\": [1, 2]}", "CamelCaseWord", "snake_case_word", "\\frac{1}{2}", "0x1F", "1e-5", "v1.2.3", "|||IP_ADDRESS|||",
             ">>TITLE<<", "Donaudampfschifffahrtsgesellschaft"]  # fmt: skip
    lines = ["", " ", "  ", "\n", "\r\n\r\n", " a", "a ", " \n a", "a" * 3000, "7" * 400, " " * 500, "\n" * 300, "ab " * 900, "!" * 300, "語" * 500, "e\u0301" * 300, "\U0001f600" * 200]
    while len(lines) < count:
        weights = rng.choice([3, 8, 20])
        line = "".join(rng.choice(parts) + (" " if rng.random() < 0.25 else "") for _ in range(rng.randint(1, weights)))
        if rng.random() < 0.2:
            line += "".join(chr(rng.choice([rng.randint(1, 0x7FF), rng.randint(0x800, 0xD7FF), rng.randint(0xE000, 0xFFFF), rng.randint(0x10000, 0x10FFFF)]))
                            for _ in range(rng.randint(1, 8)))
        lines.append(line)
    return [settled(line) for line in lines]
