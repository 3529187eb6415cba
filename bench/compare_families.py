"""How well methods edit small models of tools/make_demo_model.py: docs/models.md's table, means over sets of facts.

    compare_families.py MODEL... --work FOLDER [--sets 3] [--facts 100] [--skip 200]

Set i has `--facts` facts of the model's facts.json from `--skip` on, behind those of earlier sets, and seed i.
Statistics and text KL are of the model's corpus.txt. What FOLDER has already is not run again.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

REPOSITORY = Path(__file__).resolve().parent.parent
METRICS = ["efficacy_argmax", "paraphrase_argmax", "specificity_prob", "specificity_argmax", "generation_exact"]
SPREAD = {"method": "memit", "layers": [0, 1, 2]}
WIDE = SPREAD | {"layers": [0, 1, 2, 3, 4]}  # five, as published
BREADTH_FIRST = {"method": "ft-m", "order": "breadth-first"}
WHITENED = {"margin": 0.5, "whiten": 0.01, "modules": {"down": [0, 1]}}
ROWS = {  # by label: what the table calls it, and the section `editor`
    "memit": ("`memit`: layer 0", {"method": "memit", "layers": [0]}),  # which `auto` takes in models so small
    "spread": ("layers 0 to 2", SPREAD),
    "replay": ("with `targets: replay`", SPREAD | {"targets": "replay"}),
    "spread-5": ("layers 0 to 4", WIDE),
    "replay-5": ("with `targets: replay`", WIDE | {"targets": "replay"}),
    "alphaedit": ("`alphaedit`", {"method": "alphaedit"}),
    "breadth-first": ("`ft-m`, breadth-first", BREADTH_FIRST),
    "whitened": ("with `margin: 0.5`, `whiten: 0.01`, layers 0, 1", BREADTH_FIRST | WHITENED),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER", help="of jobs, outputs and statistics")
    parser.add_argument("--sets", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--facts", type=int, default=100, help="of a set (default: %(default)s)")
    parser.add_argument("--skip", type=int, default=200, help="facts that options were chosen on (default: %(default)s)")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    return parser.parse_args()


def job_of(model, number, output, arguments):
    corpus = str(model / "corpus.txt")
    return {
        "model": str(model),
        "requests": {"path": str(model / "facts.json"), "skip": arguments.skip + number * arguments.facts, "limit": arguments.facts},
        "compare": {label: section for label, (_, section) in ROWS.items()},
        "statistics": {"corpus": corpus, "tokens": 100000, "cache": str(arguments.work / "cache")},
        "evaluate": {"metrics": ["efficacy", "paraphrase", "specificity", "generation"], "side_effects": {"text": corpus}},
        "run": {"dtype": "f32", "seed": number},
        "output": {"dir": str(output)},
    }


def compared(model, number, arguments):
    """By label, and "before": what the metrics are, and the text KL."""
    output = arguments.work / f"{model.name}-{number}"
    if not (output / "compare.json").exists():
        job = arguments.work / f"{output.name}.json"
        job.write_text(json.dumps(job_of(model, number, output, arguments)))
        print(f"{output.name} ...", file=sys.stderr, flush=True)
        subprocess.run([arguments.lancet, "compare", job, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    report = json.loads((output / "compare.json").read_text())
    found = {"before": (report["before"], None)}
    for method in report["methods"]:
        own = json.loads((output / method["report"]).read_text())
        found[method["label"]] = (method["after"], own["side_effects"]["text_kl"]["after"])
    return found


def cell(sets, label):
    """Of one model: means over its sets."""
    shares = [mean(100 * found[label][0][name] for found in sets) for name in METRICS]
    kl = "" if label == "before" else f", {mean(found[label][1] for found in sets):.2f}"
    return "/".join(f"{share:.0f}" for share in shares) + kl


def main():
    arguments = parse_arguments()
    arguments.work.mkdir(parents=True, exist_ok=True)
    sets = {model.name: [] for model in arguments.models}
    for number in range(arguments.sets):
        for model in arguments.models:
            sets[model.name].append(compared(model, number, arguments))
    print("| | " + " | ".join(sets) + " |\n|" + "---|" * (len(sets) + 1))
    for label, (name, _) in {"before": ("before", None), **ROWS}.items():
        print(f"| {name} | " + " | ".join(cell(found, label) for found in sets.values()) + " |")


if __name__ == "__main__":
    main()
