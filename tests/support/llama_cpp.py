"""llama.cpp itself, as the wheel xllamacpp, in a process of its own: what it says after some prompts with greedy decoding."""
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

BESIDE = Path(sys.prefix) / "beside"  # `make setup-full` installs it there
ASK = """
import json, sys
import xllamacpp
path, prompts, tokens = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.warmup = path, 512, 1, False
server = xllamacpp.Server(params)
asked = [server.handle_completions({"prompt": prompt, "max_tokens": tokens, "temperature": 0}) for prompt in prompts]
print("ANSWERS" + json.dumps([answer["choices"][0]["text"].strip() for answer in asked]))
"""


def said_by(path, prompts, tokens=12):
    is_here = importlib.util.find_spec("xllamacpp") is not None or (BESIDE / "xllamacpp").is_dir()
    assert is_here, f"xllamacpp is not in {BESIDE}: make setup-full"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(BESIDE)]))}
    command = [sys.executable, "-c", ASK, str(path), json.dumps(list(prompts)), str(tokens)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("ANSWERS")).removeprefix("ANSWERS"))
