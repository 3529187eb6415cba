"""Tokens a second that lancet and llama.cpp generate from one GGUF file, on the same cores, and what lancet takes from a model folder.

    .venv/bin/python -m pip install --target DIR xllamacpp
    .venv/bin/python bench/compare_gguf.py --model model.gguf --xllamacpp DIR [--folder FOLDER] [--threads 1]

llama.cpp is asked by its Python package xllamacpp, and says itself how long the tokens took. lancet's time is that of `lancet generate` with many
tokens less that with few, so that loading does not count. Both decode greedily; the texts are printed, since equal files give equal words.
Runs of the two take turns, and the medians of --rounds are compared.
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
PROMPT = "The history of Rome began"
FEW = 8

ASK_LLAMA = """
import json, sys
sys.path.insert(0, sys.argv[1])
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_gpu_layers, params.warmup = sys.argv[2], 512, 0, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
answer = server.handle_completions({"prompt": sys.argv[4], "n_predict": int(sys.argv[5]), "temperature": 0})
answer = json.loads(answer) if isinstance(answer, str) else answer
print("ANSWER" + json.dumps({"rate": answer["timings"]["predicted_per_second"], "text": answer["choices"][0]["text"]}))
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--folder", type=Path, help="the same model as a folder, for a third row")
    parser.add_argument("--xllamacpp", type=Path, required=True, help="the folder that the package is installed in")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--threads", type=int, default=1, help="cores for each program (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=72, help="tokens of a long answer (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    return parser.parse_args()


def on_cores(command, threads):
    cores = sorted(os.sched_getaffinity(0))[:threads]
    return subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))


def llama(arguments):
    command = [sys.executable, "-c", ASK_LLAMA, arguments.xllamacpp, arguments.model, arguments.threads, PROMPT, arguments.tokens]
    out = on_cores([str(word) for word in command], arguments.threads).stdout
    answer = json.loads(next(line for line in out.splitlines() if line.startswith("ANSWER"))[len("ANSWER") :])
    return answer["rate"], answer["text"]


def lancet(arguments, model):
    seconds, text = {}, ""
    for tokens in (FEW, arguments.tokens):
        begun = time.monotonic()
        command = [arguments.lancet, "generate", "--model", model, "--prompt", PROMPT, "--tokens", tokens, "--json", "--quiet"]
        text = json.loads(on_cores([str(word) for word in command], arguments.threads).stdout.splitlines()[0])["text"]
        seconds[tokens] = time.monotonic() - begun
    return (arguments.tokens - FEW) / (seconds[arguments.tokens] - seconds[FEW]), text


def main():
    arguments = parse_arguments()
    runs = {"llama.cpp": lambda: llama(arguments), "lancet": lambda: lancet(arguments, arguments.model)}
    if arguments.folder:
        runs["lancet, folder"] = lambda: lancet(arguments, arguments.folder)
    rates, texts = {name: [] for name in runs}, {}
    for _ in range(arguments.rounds):
        for name, run in runs.items():
            rate, texts[name] = run()
            rates[name].append(rate)
    base = statistics.median(rates["llama.cpp"])
    print("| program | tokens a second | of llama.cpp's |\n|---|---|---|")
    for name, values in rates.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:.1f} ({min(values):.1f} to {max(values):.1f}) | {100 * middle / base:.0f} % |")
    for name, text in texts.items():
        print(f"{name}: {text[:100]!r}")


if __name__ == "__main__":
    main()
