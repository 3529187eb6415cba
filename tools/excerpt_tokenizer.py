"""Cuts a BPE tokenizer to its first merges: a small tokenizer that treats text as the large one does. Made tests/fixtures/tokenizers.

A BPE's first N merges are a BPE themselves, so everything but the vocabulary stays: normalisation, split pattern, special tokens,
byte fallback. Added tokens of a tokenizer.json get the ids after the kept ones, in tokenizer_config.json too.

    excerpt_tokenizer.py FOLDER --merges 1000 --out FOLDER      tokenizer.json and tokenizer_config.json of the byte level
    excerpt_tokenizer.py FILE.model --merges 1000 --out FILE    a SentencePiece BPE model
"""
import argparse
import json
import pathlib


def excerpt_json(folder, merges, out):
    spec = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    model = spec["model"]
    pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"][:merges]]
    results = {left + right for left, right in pairs}
    results |= {token["content"] for token in spec["added_tokens"]}
    kept = [piece for piece in sorted(model["vocab"], key=model["vocab"].get) if len(piece) == 1 or piece in results]
    model["merges"] = [list(pair) for pair in pairs]
    model["vocab"] = {piece: id for id, piece in enumerate(kept)}
    new_ids, after = {}, len(kept)
    for token in spec["added_tokens"]:
        is_after = token["content"] not in model["vocab"]
        new_ids[token["id"]] = after if is_after else model["vocab"][token["content"]]
        token["id"] = new_ids[token["id"]]
        after += is_after
    out.mkdir(parents=True, exist_ok=True)
    (out / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False, indent=None) + "\n", "utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    added = config.get("added_tokens_decoder", {})
    config["added_tokens_decoder"] = {str(new_ids[int(id)]): token for id, token in added.items()}
    (out / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n", "utf-8")


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, bytes of the field with its tag, payload of a length-delimited one) of a protocol buffer's message."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        if tag & 7 == 2:
            size, at = read_varint(data, at)
        else:
            size = {0: read_varint(data, at)[1] - at, 1: 8, 5: 4}[tag & 7]
        yield tag >> 3, data[begin : at + size], data[at : at + size]
        at += size


def is_merge(piece):
    """Whether a SentencePiece (text: field 1, kind: field 3, 1 unless said) is a normal one of several letters."""
    parts = {field: payload for field, _, payload in fields(piece)}
    return len(parts.get(1, b"").decode("utf-8")) > 1 and parts.get(3, b"\1") == b"\1"


def excerpt_sentencepiece(file, merges, out):
    """Field 1 of a ModelProto is a piece; those of several letters stand in the order of their merges."""
    kept, left = [], merges
    for number, whole, payload in fields(file.read_bytes()):
        counts = number == 1 and is_merge(payload)
        left -= counts
        if not counts or left >= 0:
            kept.append(whole)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(b"".join(kept))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--merges", type=int, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    cut = excerpt_json if options.source.is_dir() else excerpt_sentencepiece
    cut(options.source, options.merges, options.out)


if __name__ == "__main__":
    main()
