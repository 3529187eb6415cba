"""lm-evaluation-harness on lancet beside its own model of transformers: records a second, and whether the answers agree.

    PYTHONPATH=build/python python bench/compare_lm_eval.py [--records 400] [--rounds 3]

Questions with two answers each, from the demo's facts. Both run in turn in one process, on the same threads.
"""
import argparse
import json
import logging
import pathlib
import statistics
import time

import lancet
from lancet.lm_eval import LancetLM
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

ROOT = pathlib.Path(__file__).resolve().parents[1]


def asked(count):
    """Two continuations of each prompt: the true answer and another."""
    instances = []
    for record in json.loads((ROOT / "data" / "requests" / "demo.json").read_text())[: (count + 1) // 2]:
        rewrite = record["requested_rewrite"]
        for answer in ("target_true", "target_new"):
            arguments = (rewrite["prompt"].format(rewrite["subject"]), " " + rewrite[answer]["str"])
            instances.append(Instance("loglikelihood", {}, arguments, len(instances)))
    return instances[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(ROOT / "data" / "demo-model"))
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="of transformers")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    models = {"lancet": LancetLM(path=options.model, dtype="f32"),
              "transformers": HFLM(pretrained=options.model, dtype="float32", device="cpu", batch_size=options.batch)}  # fmt: skip
    instances = asked(options.records)
    seconds, answers = {name: [] for name in models}, {}
    for turn in range(options.rounds + 1):
        for name, model in models.items():
            begun = time.perf_counter()
            answers[name] = model.loglikelihood(instances, disable_tqdm=True)
            if turn > 0:  # the first one warms up
                seconds[name].append(time.perf_counter() - begun)
    worst = max(abs(one[0] - other[0]) for one, other in zip(*answers.values()))
    assert [one[1] for one in answers["lancet"]] == [other[1] for other in answers["transformers"]]
    for name in models:
        print(f"{name}: {len(instances) / statistics.median(seconds[name]):.0f} records/s")
    ratios = [theirs / ours for ours, theirs in zip(seconds["lancet"], seconds["transformers"])]
    print(f"lancet {lancet.__version__} is {statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f}); log p differs by {worst:.1e} at most")


if __name__ == "__main__":
    main()
