"""Where a model lies: a folder, or a name of the Hugging Face hub that was downloaded."""

from __future__ import annotations

import os
import pathlib
import re

from .errors import ConfigError

_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def cache_folder() -> pathlib.Path:
    """As huggingface_hub has it, by its variables."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return pathlib.Path(cache).expanduser()
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface")
    return pathlib.Path(home).expanduser() / "hub"


def model_folder(model: str) -> str:
    """The folder itself, or the snapshot of a hub's name in the local cache. Nothing is downloaded."""
    if os.path.exists(model) or not _NAME.fullmatch(model):
        return model
    stored = cache_folder() / f"models--{model.replace('/', '--')}"
    try:
        revision = (stored / "refs" / "main").read_text().strip()
    except OSError:
        revision = ""
    snapshot = stored / "snapshots" / revision
    if not revision or not (snapshot / "config.json").exists():
        raise ConfigError(f"{model}: neither a folder nor a model in {cache_folder()}: download it with: hf download {model}")
    return str(snapshot)
