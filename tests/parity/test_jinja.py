"""Chat templates as programs: lancet's texts beside those of jinja2, set up as transformers sets it up. Over the corpus of
tests/fixtures/chat_templates and its variants, and over expressions one by one."""
import pytest
from engine import BUILD
from jinja_oracle import difference, is_refused, oracle, render_all
from template_variants import TOKENS, cases, templates, turns

PROGRAM = BUILD / "tests" / "render_jinja"
EVERYTHING = {"messages": turns(" Hi 'there' \n", "<think>\nhm\n</think>\n\nHo", "Zürich?", system="Be brief. "), **TOKENS, "n": 5, "x": 2.5}
EVERYTHING |= {"d": {"b": 1, "a": [1, 2.0, None, True], "items": 7}, "tools": None, "add_generation_prompt": True}


def compare(asked):
    """What differs, and how many texts both gave, and how many cases lancet refuses by name."""
    different, texts, refused = [], 0, 0
    for case, ours in zip(asked, render_all(PROGRAM, asked), strict=True):
        theirs = oracle(case)
        if told := difference(theirs, ours):
            different.append(f"{case['template'][:200]!r} with {str(case['variables'])[:200]}: {told[:400]}")
        refused += is_refused(theirs, ours)
        texts += "text" in theirs and "text" in ours
    return different, texts, refused


def test_public_constructs_give_jinja2s_text():
    """All of the corpus in one call: an answer of jinja2 is lancet's too, and what jinja2 refuses lancet refuses."""
    found = templates()
    assert len(found) >= 200
    asked = [case for number, text in enumerate(found.values()) for i, case in enumerate(cases(text)) if (i + number) % 8 == 0]
    different, texts, refused = compare(asked)
    print(f"{len(found)} templates, {len(asked)} renderings, {texts} texts, {len(different)} different, {refused} refused by name")
    assert not different, "\n".join(different[:20])
    assert refused == 0 and texts > len(asked) / 2


EXPRESSIONS = [line for line in (open(__file__.replace("test_jinja.py", "jinja_expressions.txt"), encoding="utf-8").read()).split("\n") if line]


def test_expressions_give_pythons_values():
    different, texts, refused = compare([{"template": "{{ " + line + " }}", "variables": EVERYTHING} for line in EXPRESSIONS])
    assert not different, "\n".join(different)
    assert texts > 150 and refused < 10


@pytest.mark.parametrize("template", [
    "{% for x in [1,2,3] if x != 2 %}{{loop.index}}/{{loop.length}}:{{x}} {{loop.last}} {{loop.nextitem}} {{loop.previtem}};{% endfor %}",
    "{% for x in [1,2] %}{% continue %}{% else %}E{% endfor %}",
    "{% for x in [1,2,3] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{x}}{% endfor %}",
    "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{x}}{% endfor %}{{x}}",
    "{% macro f(a, b='q') %}[{{a}}|{{b}}|{{varargs}}|{{kwargs}}]{% endmacro %}{{ f(1) }}{{ f(1,2,3,z=4) }}{{ f(b=1,a=2) }}",
    "{% macro w(t) %}<{{t}}>{{ caller() }}</{{t}}>{% endmacro %}{% call w('b') %}x{{n}}{% endcall %}",
    "{% filter upper|trim %} abc {{ n }} {% endfilter %}{% set t | upper %} abc {{ n }} {% endset %}[{{ t }}]",
    "{% with a=1, b=n %}{{a}}{{b}}{% endwith %}{{a}}",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n\n",
    "a\n  {%+ if true %}\n  b\n  {% endif +%}\nc\n\n",
    "{%- raw -%} a {{ b }} {%- endraw -%} c",
    "line\r\nline2\r\n",
    "{% for x in [[1,[2]],[3]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{x}}@{{loop.depth}}{% endif %}{% endfor %}",
    "{% for m in messages %}{% generation %}{{ m.role }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% macro g() %}{{ tools }}{{ n }}{% endmacro %}{% set n = 9 %}{{ g() }}{% set tools = 5 %}{{ g() }}",
    "{% for m in messages %}{% if tools %}{% set tools = 1 %}{% endif %}{{ tools }}{% endfor %}{{ tools }}",
    "{% if false %}{{ x|nofilter }}{% endif %}ok", "{{ x|nofilter }}", "{% include 'x' %}", "{% set x.y = 1 %}", "{% for x in none %}{% endfor %}",
    "{% set x = messages|map(attribute='role') %}{{ x|join(',') }}{{ x|join(',') }}",
    "{% set x = () %}{{ x }}{% if () %}1{% elif x is sequence %}2{% endif %}", "{% for x in () %}{{ x }}{% else %}none{% endfor %}",
    "{% for () in [[], ()] %}x{% endfor %}", "{% for () in [[1]] %}x{% endfor %}", "{% set () = [] %}x", "{% set = 1 %}", "{% for in x %}{% endfor %}",
    "{% if %}{% endif %}", "{{ }}", "{% set x = %}",
])
def test_statements_do_what_jinja2s_do(template):
    different, _, refused = compare([{"template": template, "variables": EVERYTHING}])
    assert not different and not refused
