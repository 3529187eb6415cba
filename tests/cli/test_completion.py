"""`lancet completion`: bash completes lines with the script; zsh reads it."""
import re
import shutil
import subprocess

import pytest
from conftest import LANCET

BASH, ZSH = shutil.which("bash"), shutil.which("zsh")


def script(lancet, shell):
    result = lancet.run("completion", shell)
    assert result.returncode == 0, result.stderr
    path = lancet.folder / f"completion.{shell}"
    path.write_text(result.stdout)
    return path


def complete(lancet, *words):
    """What bash offers for the last word; "=" is a word of its own, as in COMP_WORDBREAKS."""
    program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lancet; printf "%s\\n" "${COMPREPLY[@]}"'
    command = [BASH, "-c", program, "bash", str(script(lancet, "bash")), "lancet", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=lancet.folder, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [line for line in done.stdout.split("\n") if line]


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_bash_completes(lancet):
    (lancet.folder / "a job.yaml").write_text("")
    (lancet.folder / "model").mkdir()
    assert complete(lancet, "ge") == ["generate"]
    commands = complete(lancet, "")
    assert {"edit", "eval", "generate", "completion", "launch", "import"} <= set(commands)
    assert complete(lancet, "import", "") == ["hparams"]
    assert complete(lancet, "generate", "--top") == ["--top-k", "--top-p"]
    assert complete(lancet, "generate", "--dtype", "") == ["auto", "f32", "bf16", "f16", "f64"]
    assert complete(lancet, "generate", "--dtype", "=", "f") == ["f32", "f16", "f64"]
    assert complete(lancet, "generate", "--dtype", "=") == ["auto", "f32", "bf16", "f16", "f64"]
    assert complete(lancet, "eval", "--launcher", "s") == ["slurm"]
    assert complete(lancet, "completion", "") == ["bash", "zsh"]
    assert complete(lancet, "generate", "--model", "") == ["model"]
    assert complete(lancet, "edit", "a") == ["a job.yaml"]
    assert complete(lancet, "generate", "--prompt", "") == []
    assert complete(lancet, "generate", "--prompt", "edit", "--bes") == ["--beside"]
    assert complete(lancet, "launch", "-n", "4", "--", "") == ["apply", "compare", "edit", "eval", "merge", "stats", "trace", "undo"]
    assert complete(lancet, "launch", "-n", "4", "--", "ed") == ["edit"]
    assert complete(lancet, "launch", "-n", "4", "--", "edit", "--reh") == ["--rehearse"]
    assert complete(lancet, "import", "hparams", "--met") == ["--method"]
    assert complete(lancet, "edit", "--set", "run.d") == ["run.devices=", "run.dtype="]
    assert complete(lancet, "launch", "-n", "2", "--", "edit", "--set", "editor.values.st") == ["editor.values.steps=", "editor.values.stop_loss=", "editor.values.stop="]


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_bash_knows_every_option_of_every_command(lancet):
    for command in complete(lancet, ""):
        offered = complete(lancet, command, "--")
        lines = [line.strip() for line in lancet.run(command, "--help").stdout.splitlines() if line.startswith("  -")]
        shown = {name for line in lines for name in re.findall(r"--[a-z][a-z-]*", line.split("  ")[0])}
        assert "--help" in shown and shown == set(offered), command


@pytest.mark.skipif(ZSH is None, reason="no zsh")
def test_zsh_reads_the_script(lancet):
    done = subprocess.run([ZSH, "-n", str(script(lancet, "zsh"))], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_zsh_has_every_command(lancet):
    text = script(lancet, "zsh").read_text()
    assert text.startswith("#compdef lancet\n")
    for part in ["_lancet_generate()", "_lancet_import_hparams()", ":folder:_files -/", ":choice:(auto f32 bf16 f16 f64)", ":key:compadd -S \"\" -- model= "]:
        assert part in text


def test_another_shell_is_refused(lancet):
    result = lancet.run("completion", "fish")
    assert result.returncode == 2 and "bash" in result.stderr
