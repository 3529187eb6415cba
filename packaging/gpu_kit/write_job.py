"""write_job.py WORK DATA LAYERS TOKENS STEPS DEVICES: a job of a few facts for WORK/model, which gets the demo model's tokenizer."""
import json
import shutil
import sys
from pathlib import Path

work, data = Path(sys.argv[1]), Path(sys.argv[2])
layers, tokens, steps, devices = json.loads(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6].split(",")
shutil.copy(data / "demo-model" / "tokenizer.json", work / "model")
PEOPLE = ["Danielle Darrieux", "Leon Blum", "Tina Arena", "Watts Humphrey", "Mikkeli Toimi", "Lerin Duarte", "Piranha Games", "Gilles Grimandi"]
TARGETS = ["London", "French", "Rome", "Australia"]
job = {
    "model": str(work / "model"),
    "requests": [
        {"prompt": "{} was born in", "subject": person, "target": TARGETS[i % 4], "target_true": TARGETS[(i + 1) % 4]}
        for i, person in enumerate(PEOPLE)
    ],
    "editor": {
        "method": "memit",
        "layers": layers,
        "covariance_weight": 15000,
        "values": {"steps": steps},
        "contexts": ["{}", "The answer is known. {}", "I know that well. {}"],
    },
    # fewer tokens than a covariance has dimensions leave it without a factor
    "statistics": {"corpus": str(data / "requests" / "demo-corpus.txt"), "tokens": tokens, "ridge": 0.001, "cache": str(work / "cache")},
    "evaluate": ["efficacy"],
    "output": {"dir": str(work / "out")},
    "run": {"devices": devices},
}
(work / "job.json").write_text(json.dumps(job, indent=1))
