"""Control characters of request files and models never reach a terminal."""
import os
import pty
import subprocess

from conftest import DATA, LANCET

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e"
SHOWN = r"\u001b]0;owned\u0007\u001b[2J\u202e"


def test_prompts_targets_and_errors_are_shown_with_their_control_characters_spelt_out(lancet):
    request = {"prompt": f"{EVIL} {{}} is", "subject": "Piranha Games", "target": f"{EVIL} London"}
    job = lancet.job(requests=[request], evaluate=["generation"], editor__values__steps=2, statistics__tokens=1000)
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    assert SHOWN in result.stdout and not set("\x1b\x07\u202e") & set(result.stdout + result.stderr)
    result = lancet.run("edit", f"{EVIL}.yaml")
    assert result.returncode != 0 and SHOWN in result.stderr and not set("\x1b\x07\u202e") & set(result.stderr)


def generated(model, stdout):
    command = [LANCET, "generate", "--model", model, "--tokens", "1", "--prompt", f"{EVIL}Piranha"]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, timeout=60)


def test_generate_gives_the_text_itself_but_to_a_terminal(lancet):
    model = DATA / "demo-model"
    piped = generated(model, subprocess.PIPE)
    assert piped.returncode == 0 and piped.stdout.decode().startswith(f"{EVIL}Piranha"), piped
    ours, theirs = pty.openpty()
    done = generated(model, theirs)
    os.close(theirs)
    text = os.read(ours, 4096).decode()
    os.close(ours)
    assert done.returncode == 0 and text.startswith(f"{SHOWN}Piranha") and "\x1b" not in text, text
