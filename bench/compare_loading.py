"""lancet beside transformers: loading and exporting one checkpoint, in turn, in one run.

A checkpoint of about one billion random bf16 weights in several shards is made in a temporary folder (by lancet_bench), or --model
names one. Each side loads it until every byte is on the device, then sums every weight's bytes; the sums
must be equal. "load" is the call that loads (from_pretrained; opening the files and reading them), "loaded and summed" has the sum
too, which is where transformers, which maps the file when the type stays, reads it. "export" is save_pretrained; and
lancet's export of the same weights, five matrices written from memory, with everything synced to the disk. transformers does not
sync: its time is given without, and with an fsync of its files, which is what lancet's time has in it. Imports and start-up are
left out. Right before each load that counts the same side loads once more and gives it back: so the page cache is warm, and so is
free memory, which a virtual machine has to fetch from its host when it has lain idle for seconds. Where that fails, times are too
long, never too short: the fastest round of either side stands beside the medians.

    .venv/bin/python bench/compare_loading.py
"""
import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from result_table import print_json

REPOSITORY = Path(__file__).resolve().parent.parent
# 0.98 billion parameters: 1.96 GB in bf16
SHAPE = "hidden=2048,ffn=8192,layers=15,heads=32,kv_heads=8,vocab=16384"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=REPOSITORY / "build" / "lancet_bench")
    parser.add_argument("--model", type=Path, help="a bf16 checkpoint; default: made")
    parser.add_argument("--shape", default=SHAPE, help="of the checkpoint that is made")
    parser.add_argument("--repeat", type=int, default=3, help="rounds that count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="the table of bench/results/loading.json")
    arguments = parser.parse_args()
    if not arguments.bench.exists():
        sys.exit(f"--bench: {arguments.bench} does not exist: build it with make bench")
    return arguments


def run_bench(arguments, *options):
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads)}
    command = [str(arguments.bench), "--threads", str(arguments.threads), *map(str, options)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lancet_bench: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def remove(folder):
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def same_files(ours, base):
    """The names of the shards whose bytes differ."""
    shards = sorted(file.name for file in base.glob("*.safetensors"))
    differ = [name for name in shards if subprocess.run(["cmp", "-s", ours / name, base / name]).returncode]
    return differ if shards else ["no shards"]


def time_lancet(arguments, model, dtype, folder):
    options = ["--model", model, "--dtype", dtype, "--device", "cpu"]
    if dtype != "bf16":
        return json.loads(run_bench(arguments, *options, "--file-times", "load"))
    out = folder / "lancet-export"
    result = json.loads(run_bench(arguments, *options, "--file-times", "load,export", "--export-to", out))
    if differ := same_files(out, model):
        sys.exit(f"lancet's export of unchanged weights differs from the base: {', '.join(differ)}")
    remove(out)
    return result


def word_sum(torch, tensor):
    """Sum of the bytes as 64-bit numbers, modulo 2^64; the last one filled up with zeros."""
    flat = tensor.detach().reshape(-1).view(torch.uint8)
    if rest := flat.numel() % 8:
        flat = torch.cat([flat, flat.new_zeros(8 - rest)])
    return flat.view(torch.int64).sum().item()


def checksum(torch, model):
    """In name order, each tensor's sum times its place: bench/file_times.cpp does the same."""
    tensors = sorted(model.named_parameters(), key=lambda entry: entry[0].encode())
    return str(sum(place * word_sum(torch, tensor) for place, (_, tensor) in enumerate(tensors, 1)) % 2**64)


def sync_files(folder):
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def time_transformers(arguments, model_folder, dtype, folder):
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(arguments.threads)
    torch_dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[dtype]
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch_dtype)
    checksum(torch, model)  # where the files are mapped, reading them is part of loading
    del model
    gc.collect()
    began = time.perf_counter()
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch_dtype)
    loaded = time.perf_counter()
    result = {"checksum": checksum(torch, model), "load_s": loaded - began}
    result["checksum_s"] = time.perf_counter() - loaded
    if dtype == "bf16":
        out = folder / "transformers-export"
        began = time.perf_counter()
        model.save_pretrained(out, max_shard_size="500MB")
        result["export_s"] = time.perf_counter() - began
        sync_files(out)
        result["export_and_sync_s"] = time.perf_counter() - began
        remove(out)
    return result


def compare(arguments, model, folder):
    import transformers  # before anything is timed
    from transformers import LlamaForCausalLM  # noqa: F401

    result = {"transformers": transformers.__version__, "threads": arguments.threads}
    result["bytes"] = sum(file.stat().st_size for file in model.glob("*.safetensors"))
    result["shards"] = len(list(model.glob("*.safetensors")))
    for dtype in ("bf16", "f32"):
        rounds = {"transformers": [], "lancet": []}
        for _ in range(arguments.repeat):
            for side, measure in (("transformers", time_transformers), ("lancet", time_lancet)):
                rounds[side].append(measure(arguments, model, dtype, folder))
        sums = {one["checksum"] for side in rounds.values() for one in side}
        if len(sums) != 1:
            sys.exit(f"{dtype}: the two sides do not hold the same weights: {sums}")
        result[dtype] = {side: over(many, statistics.median) for side, many in rounds.items()} | {"checksum": sums.pop()}
        result[dtype]["fastest"] = {side: over(many, min) for side, many in rounds.items()}
    result["load_average"] = os.getloadavg()[0]
    return result


def over(rounds, choose):
    for one in rounds:
        one["load_and_sum_s"] = one["load_s"] + one["checksum_s"]
    return {name: choose(one[name] for one in rounds) for name in rounds[0] if name != "checksum"}


ROWS = [  # what, the type, the name of the seconds on either side
    ("load, bf16 kept", "bf16", "load_s", "load_s"),
    ("loaded and summed, bf16 kept", "bf16", "load_and_sum_s", "load_and_sum_s"),
    ("load, bf16 to f32", "f32", "load_s", "load_s"),
    ("loaded and summed, bf16 to f32", "f32", "load_and_sum_s", "load_and_sum_s"),
    ("export (theirs not synced)", "bf16", "export_s", "export_s"),
    ("export, both synced", "bf16", "export_and_sync_s", "export_s"),
]


def print_table(result):
    print(f"{result['bytes'] / 1e9:.2f} GB in {result['shards']} shards, transformers {result['transformers']}, seconds")
    print(f"{'':34}{'medians: theirs':>16}{'lancet':>9}{'ratio':>8}{'fastest: theirs':>18}{'lancet':>9}{'ratio':>8}")
    for name, dtype, their_name, our_name in ROWS:
        cells = []
        for sides, width in ((result[dtype], 16), (result[dtype]["fastest"], 18)):
            theirs, ours = sides["transformers"][their_name], sides["lancet"][our_name]
            cells.append(f"{theirs:{width}.3f}{ours:9.3f}{theirs / ours:7.1f}x")
        print(f"{name:34}{''.join(cells)}")
    ours = result["bf16"]["lancet"]
    print(f"sums equal: bf16 {result['bf16']['checksum']}, f32 {result['f32']['checksum']}; lancet's export equals the base")
    print(f"anonymous memory: load grew by {ours['load_anonymous_bytes'] / 1e6:.0f} MB (bf16), ", end="")
    print(f"export by {ours['export_anonymous_bytes'] / 1e6:.0f} MB")
    print(f"{result['threads']} threads; load average at the end {result['load_average']:.2f}")


def page_table(result):
    """Columns and rows as docs/benchmarks.md has them: medians and fastest, in seconds."""
    rows = []
    for name, dtype, *names in ROWS:
        (theirs, ours), (their_best, our_best) = (
            [sides[side][seconds] for side, seconds in zip(("transformers", "lancet"), names)] for sides in (result[dtype], result[dtype]["fastest"])
        )
        rows.append([name, f"{theirs:.3f}, {their_best:.3f}", f"{ours:.3f}, {our_best:.3f}", f"{theirs / ours:.1f} x of the medians"])
    return ["", f"transformers {result['transformers']}", "lancet", "ratio"], rows


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="lancet-compare-") as name:
        folder = Path(name)
        model = arguments.model
        if model is None:
            model = folder / "model"
            run_bench(arguments, "--shape", arguments.shape, "--dtype", "bf16", "--make-checkpoint", model)
        result = compare(arguments, model, folder)
    if arguments.json:
        print_json(*page_table(result), measured=result)
    else:
        print_table(result)


if __name__ == "__main__":
    main()
