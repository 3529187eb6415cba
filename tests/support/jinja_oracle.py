"""Templates as transformers renders them, by its own environment, and by lancet (render_jinja): the same text, or both fail."""
import copy
import functools
import json
import re
import subprocess
import warnings
from datetime import datetime, timezone

NOW = 1_750_000_000  # 15 June 2025


@functools.cache
def environment():
    """transformers' own environment, whose strftime_now tells NOW."""
    from transformers.utils import chat_template_utils

    made = chat_template_utils._compile_jinja_template("").environment
    made.globals["strftime_now"] = lambda form: datetime.fromtimestamp(NOW, timezone.utc).replace(tzinfo=None).strftime(form)
    return made


@functools.lru_cache(maxsize=8)
def compiled(template):
    return environment().from_string(template)


def oracle(case):
    """{"text"} or {"error", "raised"}: whether the template itself raised it."""
    import jinja2

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variables = copy.deepcopy(case["variables"])  # some filters of Jinja's add to the list that they are given
            text = compiled(case["template"]).render(**variables)
        text.encode("utf-8")
        return {"text": text}
    except Exception as error:  # whatever Python raises
        raised = type(error) is jinja2.exceptions.TemplateError
        return {"error": f"{type(error).__name__}: {error}", "raised": raised}


def render_all(program, cases, timeout=600):
    lines = "".join(json.dumps(case | {"now": NOW}) + "\n" for case in cases)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers


ADDRESS = re.compile(r" at 0x[0-9a-f]+>")  # of an object that Python has no text for: lancet refuses it


def difference(theirs, ours):
    """None where both agree, else what differs. What lancet does not have it refuses by name."""
    if "error" in ours:
        if "error" in theirs:
            if ours["cause"] == "raised" and theirs["raised"] and not theirs["error"].endswith(ours["error"]):
                return f"raised {ours['error']!r}, expected {theirs['error']!r}"
            return None
        return None if is_refused(theirs, ours) else f"failed: line {ours['line']}: {ours['error']}; expected {theirs['text']!r}"
    if "error" in theirs:
        return f"got {ours['text']!r}, expected an error: {theirs['error']}"
    return None if ours["text"] == theirs["text"] else f"got {ours['text']!r}, expected {theirs['text']!r}"


def is_refused(theirs, ours):
    """Whether lancet names what it does not have, where jinja2 gives a text."""
    if "error" not in ours or "error" in theirs:
        return False
    named = "lancet" in ours["error"] or "address" in ours["error"] or "is chance" in ours["error"]
    return named or ours["cause"] == "limit"
