"""A report as a part of a notebook's page: no script, nothing loaded, colours of the page it stands in."""

from __future__ import annotations

import uuid
from html import escape
from typing import Any

SHOWN_REQUESTS = 50
STYLE = """
#{id} {{ font: 13px/1.5 system-ui, sans-serif; color: inherit; }}
#{id} table {{ border-collapse: collapse; margin: 6px 0 12px; background: none; color: inherit; }}
#{id} td, #{id} th {{ padding: 2px 10px; text-align: left; border-bottom: 1px solid rgba(128, 128, 128, .35);
  background: none; color: inherit; vertical-align: top; }}
#{id} .n {{ text-align: right; font-variant-numeric: tabular-nums; }}
#{id} .m {{ opacity: .65; }}
"""


def number(value: Any) -> str:
    if value is None:
        return '<span class="m">n/a</span>'
    return f"{value:.3f}"


def row(cells: list[str], kind: str = "td", first_numbers: int = 1) -> str:
    parts = [f'<{kind}{" class=n" if i >= first_numbers else ""}>{cell}</{kind}>' for i, cell in enumerate(cells)]
    return f"<tr>{''.join(parts)}</tr>"


def metrics_table(report: dict[str, Any]) -> str:
    rows = [row(["metric", "before", "after", "prompts"], "th")]
    for name, metric in report["metrics"].items():
        label = f'<span title="{escape(str(metric.get("protocol", "")), quote=True)}">{escape(name)}</span>'
        rows.append(row([label, number(metric["before"]), number(metric["after"]), str(metric["prompts"])]))
    return f"<table>{''.join(rows)}</table>" if len(rows) > 1 else ""


def verdict_lines(report: dict[str, Any]) -> list[str]:
    """How many edits took, and what became of their subjects' other facts where that was asked."""
    subjects = report["verdicts"].get("subjects")
    return [report["verdicts"]["text"], *([subjects["text"]] if subjects else [])]


def verdict(request: dict[str, Any]) -> str:
    success, why = request["verdict"]["success"], request["verdict"]["why"]
    if success is None:
        return '<span class="m">not measured</span>'
    return "took" if success else f"did not take: {escape(str(why))}"


def requests_table(report: dict[str, Any]) -> str:
    """Answers before and after stand where they were asked for, as `generation` does."""
    shown = report["requests"][:SHOWN_REQUESTS]
    has_answers = any(request.get("continuation") for request in shown)
    heads = ["prompt", "target", *(["answer before", "answer after"] if has_answers else []), "", "probability before", "after"]
    first_numbers = len(heads) - 2
    rows = [row(heads, "th", first_numbers)]
    for request in shown:
        chance = request.get("target_probability", {"before": None, "after": None})
        answer = request.get("continuation") or {"before": "", "after": ""}
        answers = [escape(str(answer[when] or "")) for when in ("before", "after")] if has_answers else []
        cells = [escape(request["prompt"]), escape(request["target"]), *answers, verdict(request), number(chance["before"]), number(chance["after"])]
        rows.append(row(cells, first_numbers=first_numbers))
    left = len(report["requests"]) - SHOWN_REQUESTS
    more = f'<p class="m">and {left} more: <code>.table()</code> has all</p>' if left > 0 else ""
    return f"<table>{''.join(rows)}</table>{more}"


def page(report: dict[str, Any]) -> str:
    name = f"lancet-{uuid.uuid4().hex[:12]}"
    head = f"<b>{escape(report['method'])}</b>: {'<br>'.join(escape(line) for line in verdict_lines(report))}"
    told = "".join(f"<li>{escape(text)}</li>" for text in report["warnings"])
    warned = f"<ul>{told}</ul>" if told else ""
    return f'<div id="{name}"><style>{STYLE.format(id=name)}</style><p>{head}</p>{metrics_table(report)}{requests_table(report)}{warned}</div>'
