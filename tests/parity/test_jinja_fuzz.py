"""Random templates (tests/support/template_grammar.py) with conversations, rendered by lancet and by jinja2 as transformers sets it up: the same
text, or both refuse. What differs is shown as the shortest template that still does."""
import os
import re

from engine import BUILD
from jinja_oracle import ADDRESS, difference, is_refused, oracle, render_all
from template_grammar import Grammar
from template_variants import CONVERSATIONS, TOKENS, TOOL, TOOL_TALK, turns

PROGRAM = BUILD / "tests" / "render_jinja"
N_TEMPLATES = 20_000 if os.environ.get("LANCET_TEST_FULL") else 300
GIVEN = TOKENS | {"n": 5, "x": 2.5, "words": ["b", "A", "c d", ""], "counts": [3, 1, 2, 2], "d": {"b": 1, "a": [1, 2.0, None, True], "items": 7, "é": "x"}}
TALKS = [*CONVERSATIONS.values(), TOOL_TALK, turns(" Hi 'there' \n", "<think>\nhm\n</think>\n\nHo", "Zürich?", system="Be brief. ")]
SETTINGS = [{"tools": None, "documents": None, "add_generation_prompt": True}, {"tools": [TOOL], "documents": [{"title": "a", "text": "b"}], "add_generation_prompt": False},
            {"tools": None, "add_generation_prompt": True, "enable_thinking": False, "date_string": "1 May 2025"}]  # fmt: skip
TAG = re.compile(r"(\{[{%#].*?[%}#]\})", re.S)
WORD = re.compile(r"(\w+|\s+|.)", re.S)


def cases(seed):
    template = Grammar(seed).template()
    for more in (0, 7):
        yield {"template": template, "variables": {"messages": TALKS[(seed + more) % len(TALKS)], **GIVEN, **SETTINGS[(seed + more) % len(SETTINGS)]}}


def kind(theirs, ours):
    """What sort of difference it is, so that a shorter template is one of the same."""
    return theirs.get("error", "").partition(":")[0], ours.get("error", "")[:12]


def shortest(case):
    """The template with parts taken out as long as the texts differ in the same way: tags first, then single words."""
    wanted = kind(oracle(case), *render_all(PROGRAM, [case]))

    def differing(templates):
        tried = [case | {"template": template} for template in templates]
        for each, ours in zip(tried, render_all(PROGRAM, tried), strict=True):
            theirs = oracle(each)
            if difference(theirs, ours) and kind(theirs, ours) == wanted:
                return each["template"]
        return None

    template = case["template"]
    for pattern in (TAG, WORD):
        size = 8
        while size:
            parts = [part for part in pattern.split(template) if part]
            fewer = ["".join(parts[:at] + parts[at + size :]) for at in range(len(parts))]
            fewer += ["".join(parts[:a] + parts[a + 1 : b] + parts[b + 1 :]) for a in range(len(parts)) for b in range(a + 1, len(parts))] if size == 1 and len(parts) < 60 else []
            found = differing([text for text in fewer if text != template])
            template, size = (found, size) if found is not None else (template, size // 2)
    return template


def is_folded(theirs, ours):
    """jinja2 computes parts without a name as it reads a template, and takes a slice of what has none, as of a number, for undefined there; in
    every other place it raises, as lancet does everywhere."""
    return "text" in theirs and ours.get("error", "").startswith("a slice of ")


def test_random_templates_give_jinja2s_text_or_fail_as_there():
    counts = dict.fromkeys(["equal texts", "refused by both", "refused by name", "without a text of their own", "slices that jinja2 folds", "different"], 0)
    different, refusals = [], []
    for first in range(0, N_TEMPLATES, 1000):
        asked = [case for seed in range(first, min(first + 1000, N_TEMPLATES)) for case in cases(seed)]
        for case, ours in zip(asked, render_all(PROGRAM, asked), strict=True):
            theirs = oracle(case)
            if is_refused(theirs, ours):
                has_address = ADDRESS.search(theirs["text"]) is not None  # of an object in Python's memory
                counts["without a text of their own" if has_address else "refused by name"] += 1
                refusals += [] if has_address else [f"{ours['error']}: {case['template']!r}"]
            elif is_folded(theirs, ours):
                counts["slices that jinja2 folds"] += 1
            elif difference(theirs, ours):
                counts["different"] += 1
                different.append(case)
            else:
                counts["equal texts" if "text" in ours else "refused by both"] += 1
    print(f"\n{N_TEMPLATES} templates with two conversations each: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    shown = []
    for case in different[:10]:
        small = case | {"template": shortest(case)}
        shown.append(f"{small['template']!r}: {difference(oracle(small), render_all(PROGRAM, [small])[0])}"[:800])
    assert not different, "\n".join(shown)
    assert counts["equal texts"] > N_TEMPLATES and counts["refused by both"] > N_TEMPLATES / 10, counts
    assert counts["refused by name"] <= N_TEMPLATES / 40 and counts["slices that jinja2 folds"] <= N_TEMPLATES / 1000 + 1, refusals[:10]
