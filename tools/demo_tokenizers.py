"""Decides which tokenizer a demo model has: SentencePiece as Llama's or Gemma's, or byte-level BPE as GPT-2's or Qwen's.

Each class trains on text, encodes without special tokens, and writes the files that users of such a model have.
`start`: ids that stand before every document; `end`: the id after it.
"""
import io
import json

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SPACE = "\u2581"
END_OF_TEXT = "<|endoftext|>"
QWEN_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def bpe_merges(pieces):
    """The vocabulary; and the merges: every split of a piece into two pieces, ordered by the rank of the piece."""
    size = pieces.vocab_size()
    vocab = {pieces.id_to_piece(i): i for i in range(size)}
    ranked = []
    for i in range(size):
        if pieces.is_control(i) or pieces.is_unknown(i) or pieces.is_byte(i):
            continue
        piece = pieces.id_to_piece(i)
        halves = ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        splits = sorted((vocab[a], vocab[b], a, b) for a, b in halves if a in vocab and b in vocab)
        ranked += [(-pieces.get_score(i), a, b) for _, _, a, b in splits]
    ranked.sort(key=lambda merge: merge[0])
    return vocab, [(a, b) for _, a, b in ranked]


class SentencePiece:
    """SentencePiece BPE with byte fallback: tokenizer.model, and the same as a tokenizer.json."""

    def __init__(self, folder, text, vocab_size):
        options = dict(vocab_size=vocab_size, model_type="bpe", byte_fallback=True, character_coverage=0.9995)
        options |= dict(split_digits=True, normalization_rule_name="identity") | self.IDS
        options |= dict(remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)
        model = io.BytesIO()  # not a file prefix: the trainer would store its folder in the model
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text), model_writer=model, minloglevel=2, num_threads=2, **options
        )
        (folder / "tokenizer.model").write_bytes(model.getvalue())
        self.pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        self.size, self.start, self.end = self.pieces.vocab_size(), [self.IDS["bos_id"]], self.IDS["eos_id"]

    def encode(self, text):
        return self.pieces.encode(text)

    def write(self, folder, lines):
        """tokenizer.json and its configs; ids equal on every line, or it fails."""
        vocab, merges = bpe_merges(self.pieces)
        fast = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        bos = self.set_pipeline(fast)
        fast.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, self.start[0])]
        )
        fast.save(str(folder / "tokenizer.json"))
        write_json(folder / "tokenizer_config.json", self.CONFIG | self.SPECIAL | self.MORE)
        (folder / "special_tokens_map.json").write_text(json.dumps(self.SPECIAL))
        for line in lines:
            assert fast.encode(line).ids == self.start + self.encode(line), line


class LlamaTokenizer(SentencePiece):
    IDS = dict(bos_id=1, eos_id=2, unk_id=0, pad_id=-1, add_dummy_prefix=True)
    SPECIAL = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    CONFIG = dict(tokenizer_class="PreTrainedTokenizerFast")
    MORE = dict(pad_token="</s>", add_bos_token=True, add_eos_token=False, clean_up_tokenization_spaces=False)
    MORE |= dict(model_max_length=512)

    def set_pipeline(self, fast):
        """Returns the token that begins a text."""
        fast.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
        strip = decoders.Strip(content=" ", left=1)
        fast.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), strip])
        fast.add_special_tokens([AddedToken(x, normalized=False, special=True) for x in ("<unk>", "<s>", "</s>")])
        return "<s>"


class GemmaTokenizer(SentencePiece):
    """No space before the text; the tokenizer.json is built as Gemma's is: Replace, Split by a string, byte fallback."""

    IDS = dict(pad_id=0, eos_id=1, bos_id=2, unk_id=3, add_dummy_prefix=False, pad_piece="<pad>", eos_piece="<eos>")
    IDS |= dict(bos_piece="<bos>", unk_piece="<unk>")
    SPECIAL = dict(bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>")
    CONFIG = dict(tokenizer_class="GemmaTokenizer")
    MORE = dict(add_bos_token=True, add_eos_token=False, clean_up_tokenization_spaces=False, model_max_length=512)

    def set_pipeline(self, fast):
        """Returns the token that begins a text."""
        fast.normalizer = normalizers.Replace(" ", SPACE)
        fast.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        fast.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
        fast.add_special_tokens([AddedToken(x, normalized=False, special=True) for x in self.SPECIAL.values()])
        return "<bos>"


class ByteLevel:
    """Byte-level BPE without a token that begins a text: vocab.json, merges.txt, and the same as a tokenizer.json."""

    def __init__(self, _folder, text, vocab_size):
        self.fast = Tokenizer(models.BPE())
        self.set_pipeline()
        self.fast.decoder = decoders.ByteLevel()
        self.fast.post_processor = processors.ByteLevel(trim_offsets=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=vocab_size - 1, initial_alphabet=alphabet, show_progress=False)
        self.fast.train_from_iterator(text, trainer)
        self.fast.add_special_tokens([AddedToken(END_OF_TEXT, normalized=False, special=True)])  # the last id, as GPT-2's
        self.size, self.start, self.end = self.fast.get_vocab_size(), [], self.fast.token_to_id(END_OF_TEXT)

    def encode(self, text):
        return self.fast.encode(text).ids

    def write(self, folder, lines):
        """The files; ids equal on every line when transformers reads them, or it fails."""
        from transformers import PreTrainedTokenizerFast

        self.fast.save(str(folder / "tokenizer.json"))
        bpe = json.loads(self.fast.to_str())["model"]
        vocab = bpe["vocab"] | {END_OF_TEXT: self.end}
        (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False), encoding="utf-8")
        merges = "\n".join(" ".join(merge) for merge in bpe["merges"])
        (folder / "merges.txt").write_text("#version: 0.2\n" + merges + "\n", encoding="utf-8")
        special = dict(eos_token=END_OF_TEXT, pad_token=END_OF_TEXT) | self.SPECIAL
        config = dict(tokenizer_class=self.CLASS, clean_up_tokenization_spaces=False, model_max_length=512)
        write_json(folder / "tokenizer_config.json", config | special)
        (folder / "special_tokens_map.json").write_text(json.dumps(special))
        read = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        for line in lines:
            assert read(line)["input_ids"] == self.encode(line), line


class Gpt2Tokenizer(ByteLevel):
    SPECIAL = dict(bos_token=END_OF_TEXT, unk_token=END_OF_TEXT)
    CLASS = "GPT2Tokenizer"

    def set_pipeline(self):
        self.fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)


class QwenTokenizer(ByteLevel):
    SPECIAL = {}
    CLASS = "Qwen2Tokenizer"

    def set_pipeline(self):
        self.fast.normalizer = normalizers.NFC()
        split = pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated")
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self.fast.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
