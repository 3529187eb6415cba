"""How well methods edit a real model: 40 CounterFact facts that it answers rightly, each method with what lancet chooses.

    .venv/bin/python bench/real_quality.py --model smollm2                       the table of docs/benchmarks.md, by and by
    .venv/bin/python bench/real_quality.py --model gemma3 --facts 20 --methods memit,rome

Facts are the first of data/requests/demo.json whose true answer is the model's likeliest one. Where the model knows fewer than --facts of its 2,000,
the first of the others fill the list up: `efficacy_true` of the unedited row says how many are known. Each method edits all of them at once, by
`lancet edit --model MODEL --requests FACTS --out OUT` and the settings of METHODS; what it wrote is opened by transformers, which judges it
(transformers_judge.py says how). lancet's own figures of the same weights stand beside, in the rows' files. `plain` is bench/plain_memit.py, published MEMIT as a loop of a page; its own
changes are judged in the same way.

A row is kept in --work as it ends, so that the same command goes on where it was stopped; the table in bench/results/real-quality.json is
made of all rows that are there. --model takes a name of tools/real_models.py or a folder.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tools"))

import transformers_judge  # noqa: E402
from real_models import MODELS, prepare  # noqa: E402
from result_table import KEYS, machine  # noqa: E402

DATA = REPOSITORY / "data"
RESULT = REPOSITORY / "bench" / "results" / "real-quality.json"
TEXT_CHARACTERS = 12_000

# What somebody adds to `lancet edit` by --set.
TEXT_ALONE = "memit, text alone"
METHODS = {
    "memit": [],
    # as a published MEMIT has it: no chat among the contexts, no entities in the statistics
    TEXT_ALONE: ["editor.contexts={}", "editor.entities.weight=0"],
    "memit, `targets: replay`": ["editor.targets=replay"],
    **{name: [f"editor.method={name}"] for name in ("alphaedit", "emmet", "nse", "pmet", "rome", "r-rome", "ft-m", "ft-l", "ultraedit")},
}
PLAIN = "plain MEMIT"
UNEDITED = "unedited"
SHORT = {"plain": PLAIN, "replay": "memit, `targets: replay`", "text": TEXT_ALONE}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help=f"{', '.join(MODELS)}, or a folder (default: %(default)s)")
    parser.add_argument("--facts", type=int, default=40, help="how many (default: %(default)s)")
    parser.add_argument("--requests", type=Path, help="take all facts of this file of CounterFact records, known or not")
    parser.add_argument("--skip", type=int, default=0, help="known facts before the first")
    parser.add_argument("--methods", type=lambda text: [part.strip() for part in text.split(",")], metavar="A,B",
                        help=f"of {', '.join(name for name in METHODS if ',' not in name)}, {', '.join(SHORT)} (default: all)")  # fmt: skip
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "real-quality", help="where rows and facts are kept (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as lancet's, for each of its jobs")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write", nargs="?", type=Path, const=RESULT, metavar="FILE",
                        help=f"the table of all rows in --work of --facts facts (default: {RESULT.relative_to(REPOSITORY)})")  # fmt: skip
    return parser.parse_args()


def write_json(path, value):
    """Whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value, ensure_ascii=False, indent=1))
    unfinished.replace(path)


def open_model(folder, threads):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(threads)
    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().requires_grad_(False)
    return net, AutoTokenizer.from_pretrained(folder)


def known_facts(arguments, folder, place):
    """The first facts of the project's that the model answers rightly, and where these are too few the first of the others after them."""
    if arguments.requests:
        arguments.facts = len(json.loads(arguments.requests.read_text()))
        return arguments.requests.resolve()
    path = place / f"facts-{arguments.skip}-{arguments.facts}.json"
    if not path.exists():
        facts, known, others = json.loads((DATA / "requests" / "demo.json").read_text()), [], []
        net, tokenizer = open_model(folder, arguments.threads)
        for begin in range(0, len(facts), 100):
            some = facts[begin : begin + 100]
            for fact, is_known in zip(some, transformers_judge.knows(net, tokenizer, some)):
                (known if is_known else others).append(fact)
            print(f"{len(known)} of the first {begin + len(some)} facts are known", file=sys.stderr, flush=True)
            if len(known) >= arguments.skip + arguments.facts:
                break
        if len(known) < arguments.skip + arguments.facts:
            print(f"{len(known)} are known: the rest are the first of those that are not", file=sys.stderr)
        write_json(path, (known + others)[arguments.skip : arguments.skip + arguments.facts])
    return path


def judged(net, tokenizer, path, baseline=None):
    text = transformers_judge.ordinary_text(TEXT_CHARACTERS)
    return transformers_judge.judge(net, tokenizer, json.loads(path.read_text()), text, baseline)


def run_timed(command, log):
    """Seconds of a clock and of processors, and the exit code."""
    begun = time.monotonic()
    with log.open("w") as file:
        child = subprocess.Popen([str(word) for word in command], stdout=file, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)


def lancet_row(arguments, folder, facts, place, name):
    out = place / "edited"
    log = place / "log.txt"
    settings = [f"statistics.cache={place / 'cache'}", "output.replace=true", f"run.threads={arguments.threads}", *METHODS[name], *arguments.set]
    command = [arguments.lancet, "edit", "--model", folder, "--requests", facts, "--out", out]
    seconds, processor_s, code = run_timed(command + [word for setting in settings for word in ("--set", setting)], log)
    if code != 0:
        sys.exit(f"{name}: exit {code}\n{log.read_text()[-2000:]}")
    report = json.loads((out / "report.json").read_text())
    took = sum(request["verdict"]["success"] for request in report["requests"])
    row = {"seconds": report["seconds"] | {"whole": seconds, "processor": processor_s}, "took": took,
           "lancet": report["metrics"], "warnings": report.get("warnings", []), "settings": METHODS[name]}  # fmt: skip
    return row, out


def plain_row(arguments, folder, facts, place):
    """Published MEMIT with published options for a Llama, and its own page of code. Returns the edited model."""
    import numpy
    import torch

    dump = place / "plain.npz"
    layers = [4, 5, 6, 7, 8]
    command = [sys.executable, REPOSITORY / "bench" / "plain_memit.py", "--model", folder, "--facts", facts, "--n", arguments.facts,
               "--corpus", DATA / "requests" / "demo-corpus.txt", "--layers", ",".join(map(str, layers)), "--lam", 15000, "--lr", 0.5,
               "--steps", 25, "--no-eval", "--dump", dump, "--threads", arguments.threads]  # fmt: skip
    log = place / "plain.txt"
    seconds, processor_s, code = run_timed(command, log)
    if code != 0:
        sys.exit(f"{PLAIN}: exit {code}\n{log.read_text()[-2000:]}")
    net, tokenizer = open_model(folder, arguments.threads)
    with torch.no_grad(), numpy.load(dump) as arrays:
        for layer in layers:
            weight = net.model.layers[layer].mlp.down_proj.weight
            weight += torch.from_numpy(arrays[f"delta{layer}"]).to(weight.dtype)
            weight.copy_(weight.bfloat16())  # as an export of the model's type has it
    options = {"layers": layers, "lam": 15000, "lr": 0.5, "steps": 25, "clamp": 4.0}
    return {"seconds": {"whole": seconds, "processor": processor_s}, "editor": options}, net, tokenizer


def measure(arguments, folder, facts, place, name, baseline):
    if name == UNEDITED:
        return {"transformers": judged(*open_model(folder, arguments.threads), facts)}
    if name == PLAIN:
        row, net, tokenizer = plain_row(arguments, folder, facts, place)
        return row | {"transformers": judged(net, tokenizer, facts, baseline)}
    row, out = lancet_row(arguments, folder, facts, place, name)
    row["transformers"] = judged(*open_model(out, arguments.threads), facts, baseline)
    shutil.rmtree(out)
    return row


# ---- The table -----------------------------------------------------------------------------------------------------------------

COLUMNS = ["model, method", "begins with the target", "efficacy", "paraphrase (true answer)", "specificity", "same next token", "subject kept, leak", "chat", "perplexity", "s"]


def pair(figures, metric):
    return f"{figures[f'{metric}_argmax']:.0f}/{figures[f'{metric}_prob']:.0f}"


def subject_cell(row):
    """lancet's own figures: transformers_judge.py does not ask about subjects."""
    kept, leak = (row.get("lancet", {}).get(f"subject_{name}", {}).get("after") for name in ("kept", "leak"))
    return "" if kept is None or leak is None else f"{100 * kept:.0f}, {100 * leak:.0f}"


def cells(model, name, row):
    figures = row["transformers"]
    return [f"{model}: {name}", f"{figures['starts']:.0f}", pair(figures, "efficacy"), f"{pair(figures, 'paraphrase')} ({figures['paraphrase_true']:.0f})",
            pair(figures, "specificity"), f"{figures['same_next']:.0f}" if "same_next" in figures else "",
            subject_cell(row),
            f"{figures['chat']:.0f}" if "chat" in figures else "", f"{figures['perplexity']:.1f}",
            f"{row['seconds']['processor']:.0f}" if "seconds" in row else ""]  # fmt: skip


def all_rows(work, facts):
    """{(model, method): row}, models and methods in their order."""
    found = {}
    for model in sorted(path.name for path in work.iterdir() if path.is_dir()):
        for name in [UNEDITED, *METHODS, PLAIN]:
            path = row_path(work / model, facts, name)
            if path.exists():
                found[model, name] = json.loads(path.read_text())
    return found


def row_path(place, facts, name):
    return place / f"{facts}-{''.join(c if c.isalnum() else '-' for c in name)}.json"


def print_table(rows):
    lines = [COLUMNS, ["---"] * len(COLUMNS), *(cells(model, name, row) for (model, name), row in rows.items())]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


def write_table(rows, facts, path):
    result = dict(zip(KEYS, [f"bench/real_quality.py --facts {facts}", machine(), COLUMNS, [cells(*key, row) for key, row in rows.items()]]))
    lines = [f" {json.dumps(key)}: {json.dumps(result[key], ensure_ascii=False)}," for key in KEYS[:-1]]
    body = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in result["rows"])
    if path.name not in (REPOSITORY / "docs" / "benchmarks.md").read_text():
        print(f"docs/benchmarks.md has no place for the table yet: put `<!-- begin: bench/results/{path.name} -->` and `<!-- end -->` "
              "there, and run tools/benchmark_tables.py --write", file=sys.stderr)  # fmt: skip
    path.write_text("\n".join(["{", *lines, f' "facts": {facts},', ' "rows": [', body, " ]", "}", ""]))


def main():
    arguments = parse_arguments()
    folder = prepare(arguments.model) if arguments.model in MODELS else Path(arguments.model).resolve()
    wanted = [SHORT.get(name, name) for name in arguments.methods] if arguments.methods else [*METHODS, PLAIN]
    for name in wanted:
        if name not in METHODS and name != PLAIN:
            sys.exit(f"--methods: {name}: expected some of {', '.join([*METHODS, *SHORT])}")
    label = MODELS[arguments.model].folder if arguments.model in MODELS else folder.name
    place = arguments.work / label
    place.mkdir(parents=True, exist_ok=True)
    facts, baseline = known_facts(arguments, folder, place), None
    for name in [UNEDITED, *wanted]:
        path = row_path(place, arguments.facts, name)
        if not path.exists():
            write_json(path, measure(arguments, folder, facts, place, name, baseline))
        row = json.loads(path.read_text())
        baseline = baseline or row["transformers"]
        print("| " + " | ".join(cells(label, name, row)) + " |", flush=True)
    if arguments.write:
        rows = all_rows(arguments.work, arguments.facts)
        write_table(rows, arguments.facts, arguments.write)
        print_table(rows)


if __name__ == "__main__":
    main()
