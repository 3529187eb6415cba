"""What a first edit says of its statistics before it makes them: the page of `lancet serve`, and the terminal."""
from conftest import DATA, LANCET
from served import Served

FACT = {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}


def test_the_page_says_that_statistics_are_made_once(tmp_path):
    settings = ["statistics.corpus=self", "statistics.tokens=1600", "editor.values.steps=30"]
    server = Served(LANCET, tmp_path, "--model", DATA / "demo-model", settings=settings)
    try:
        item, line, state = server.order("/api/edit", {"facts": [FACT]}), "", server.state()
        while not line and item not in [row["item"] for row in state["finished"]]:
            progress = (state["running"] or {"progress": {"stage": ""}})["progress"]
            line = progress["line"] if progress["stage"] == "sampling" else ""
            state = server.state(state["state"])
        assert "/1600 tokens" in line and line.endswith("once, then cached"), line
        server.send("POST", "/api/cancel", {"item": item})
        server.end_of(item)
    finally:
        said = server.end()
    told = "statistics  not in the cache yet: the model writes 1600 tokens of text, "
    assert told in said and "passes, and one pass over them for " in said and "this happens once" in said, said
