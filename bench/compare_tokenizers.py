"""lancet's tokenizer beside the tokenizers wheel: tokens a second over a text file, line by line, one thread, in turn, in one run.

The numbers of tokens must be equal. Both keep words that they have seen; each round opens the file anew.

    .venv/bin/python bench/compare_tokenizers.py --tokenizer DIR/tokenizer.json
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def ours(program, tokenizer, text):
    done = subprocess.run([program, tokenizer, "--time", text], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def theirs(tokenizer, text):
    import tokenizers

    lines = text.read_text(encoding="utf-8").splitlines()
    start = time.perf_counter()
    opened = tokenizers.Tokenizer.from_file(str(tokenizer))
    seconds_to_open = time.perf_counter() - start
    begin = time.perf_counter()
    tokens = sum(len(opened.encode(line).ids) for line in lines)
    return {"tokens": tokens, "seconds": time.perf_counter() - begin, "seconds_to_open": seconds_to_open}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=REPOSITORY / "build" / "tests" / "tokenize_lines")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a tokenizer.json")
    parser.add_argument("--text", type=Path, default=REPOSITORY / "data" / "requests" / "demo-corpus.txt")
    parser.add_argument("--repeat", type=int, default=5, help="rounds; the median is printed")
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    rounds = [(ours(arguments.program, arguments.tokenizer, arguments.text), theirs(arguments.tokenizer, arguments.text))
              for _ in range(arguments.repeat)]  # fmt: skip
    tokens = {side["tokens"] for pair in rounds for side in pair}
    if len(tokens) > 1:
        sys.exit(f"the numbers of tokens differ: {sorted(tokens)}")
    for key in ("seconds", "seconds_to_open"):
        lancet, wheel = (statistics.median(pair[side][key] for pair in rounds) for side in (0, 1))
        print(f"{key:16} lancet {lancet:.3f}, tokenizers {wheel:.3f}: {wheel / lancet:.1f} x")
    seconds = statistics.median(pair[0]["seconds"] for pair in rounds)
    print(f"lancet: {tokens.pop() / seconds / 1e6:.2f} million tokens a second")


if __name__ == "__main__":
    main()
