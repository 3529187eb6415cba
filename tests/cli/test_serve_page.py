"""The page of `lancet serve` in a browser, as a person uses it: by mouse and by keyboard, wide and narrow, in two tabs."""
import json
import os
import pathlib
from urllib.parse import urlparse

import pytest
from conftest import DATA, LANCET, ROOT
from served import Served
from test_report import BROWSER, needs_browser

pytestmark = needs_browser
DEMO = DATA / "demo-model"
FACTS = [("{}, created in", "Piranha Games", "London"), ("{}, the", "Lerin Duarte", "goaltender"), ("{} is produced by", "Toyota Alphard", "Chrysler")]
PROMPT = "Piranha Games, created in"
ANSWERED = "document.querySelector('#answer-state').textContent === 'the answer:'"
IDLE = "document.querySelector('#work').hidden"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from devtools import Browser

    browser = Browser(BROWSER, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.end()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("statistics")


@pytest.fixture
def start(cache, tmp_path):
    started = []

    def start(*more):
        settings = ["editor.values.steps=30", "statistics.tokens=4000", f"statistics.cache={cache}", *more]
        started.append(Served(LANCET, tmp_path, "--model", DEMO, settings=settings))
        return started[-1]

    yield start
    for server in started:
        server.end()


def n_shown(page, selector):
    return page.value(f"document.querySelectorAll({json.dumps(selector)}).length")


def until_n(page, selector, n):
    page.until(f"document.querySelectorAll({json.dumps(selector)}).length === {n}")


def is_as_it_should(page, server):
    """Nothing in the console, nothing asked of another host, and no token in an address after the first."""
    assert page.complaints == []
    own = [urlparse(address) for address in page.asked if not address.startswith("blob:")]
    assert {(address.hostname, address.port) for address in own} == {(server.host, server.port)}
    assert not [address for address in own[1:] if server.token in address.query]
    assert page.value("location.search") == "" and page.value("document.cookie") == ""
    assert page.value("document.documentElement.scrollWidth") <= page.width, "no scrolling to the side"


def ask(page, prompt):
    page.fill("#ask-prompt", prompt)
    page.click("#ask-go")
    page.until(ANSWERED)
    return page.text("#answer-text")


def pictures_folder():
    """docs/, where LANCET_PICTURES is set: docs/serve.md shows them."""
    return ROOT / "docs" if os.environ.get("LANCET_PICTURES") else None


def take_picture(page, path, **options):
    """With the folders of the documents in the place of the test's."""
    for place, text in [("#dir", "out/serve"), ("#export-dir", "out/serve"), ("#folder", "data/demo-model")]:
        page.value(f"document.querySelector('{place}').textContent = '{text}'")
    page.screenshot(path, **options)


def test_ask_edit_undo_restart_and_export(start, browser):
    server = start()
    page = browser.open(server.address)
    page.until("document.querySelector('h1').textContent === 'demo-model'")
    assert "Vancouver" in ask(page, PROMPT)
    for i, fact in enumerate(FACTS, 1):
        if i > 1:
            page.click("#fact-add")
        for name, text in zip(("prompt", "subject", "target"), fact):
            page.fill(f"#facts > :nth-child({i}) [name={name}]", text)
    page.click("#edit-go")
    page.until("!document.querySelector('#work').hidden && document.querySelector('#work-what').textContent === 'edit 3 facts'")
    until_n(page, "#result .sides", 3)
    until_n(page, "#edit-list .stands", 3)
    for i, (_, _, target) in enumerate(FACTS, 1):
        row = page.text(f"#result .pairs > :nth-child({i})")
        before, after = (page.text(f"#result .pairs > :nth-child({i}) .{side} bdi") for side in ("before", "after"))
        assert target in after and target not in before and "took" in row and "efficacy_argmax 0.0 % → 100.0 %" in row, row
    assert page.text("#result tbody tr:first-child").split() == ["efficacy_argmax", "0.0", "%", "100.0", "%", "3"]
    assert "London" in ask(page, PROMPT) and page.text("#count") == "3 edits stand"
    page.until(IDLE)
    page.value("document.activeElement.blur(), scrollTo(0, 0)")
    if folder := pictures_folder():
        take_picture(page, folder / "serve-wide.png", height=1130, scale=0.8)

    other = browser.open(server.address, width=360, height=780, dark=True)  # a second tab, on a telephone
    until_n(other, "#edit-list .stands", 3)
    until_n(other, "#result .sides", 3)
    assert other.value("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 26)"
    for each in (page, other):
        each.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        is_as_it_should(each, server)
    if folder:
        take_picture(other, folder / "serve-narrow.png", height=1560, scale=0.9)
    page.click("#edit-list .stands:nth-child(2) button")
    for each in (page, other):
        until_n(each, "#edit-list .stands", 2)
        assert "Lerin Duarte" not in each.text("#edit-list")
    assert page.text("#undo-done").startswith("took back 1 fact; what this gives up: ")
    assert "midfielder" in ask(other, "Lerin Duarte, the") and "London" in ask(page, PROMPT)

    page.fill("#export-name", "from-page")
    page.click("#export-go")
    page.until("document.querySelector('#export-done').textContent.startsWith('written: ')")
    assert (server.dir / "from-page" / "model.safetensors").exists()
    page.click("#export-go")
    page.until("document.querySelector('#export-error').textContent.includes('is there already')")
    page.fill("#export-name", "../up")
    page.click("#export-go")
    assert page.value("document.querySelector('#export-name').validity.patternMismatch")
    assert not (server.dir.parent / "up").exists()
    server.end()
    page.until("document.querySelector('#lost').textContent.includes('does not answer')")

    again = start()
    fresh = browser.open(again.address)
    until_n(fresh, "#edit-list .stands", 2)
    assert "London" in ask(fresh, PROMPT) and fresh.is_shown("#reports") is False
    fresh.call("Page.reload")
    until_n(fresh, "#edit-list .stands", 2)
    fresh.until("document.querySelector('h1').textContent === 'demo-model'")  # without the token in its address
    is_as_it_should(fresh, again)


def test_by_the_keyboard_alone(start, browser):
    server = start()
    page = browser.open(server.address)
    page.until("document.querySelector('h1').textContent === 'demo-model'")
    page.tab_to("skip")
    page.tab_to("ask-prompt")
    page.type(PROMPT)
    page.press("Enter")
    page.until(ANSWERED)
    for i, fact in enumerate(FACTS[:2]):
        if i:
            page.tab_to("fact-add")
            page.press(" ")
        for name, text in zip(("prompt", "subject", "target"), fact):
            page.tab_to(name)
            page.type(text)
            page.press("Tab")
    assert n_shown(page, ".fact") == 2
    page.tab_to("edit-go")
    page.press("Enter")
    until_n(page, "#edit-list .stands", 2)
    page.tab_to("Undo edit 1: Lerin Duarte, the → goaltender")
    page.press("Enter")
    until_n(page, "#edit-list .stands", 1)
    page.tab_to("undo-last")
    page.press(" ")
    until_n(page, "#edit-list .stands", 0)
    assert page.value("[...document.querySelectorAll('input, select, textarea, button')].every((e) => e.labels?.length || e.getAttribute('aria-label') || e.textContent)")
    is_as_it_should(page, server)


def test_files_errors_and_cancelling(start, browser, tmp_path):
    server = start("editor.values.steps=100000", "editor.values.stop_loss=0")  # an edit that is over only when it is cancelled
    page = browser.open(server.address)
    page.until("document.querySelector('h1').textContent === 'demo-model'")
    facts = tmp_path / "facts.json"

    def choose(text):
        facts.write_text(text)
        document = page.call("DOM.getDocument")["root"]["nodeId"]
        node = page.call("DOM.querySelector", nodeId=document, selector="#file-input")["nodeId"]
        page.call("DOM.setFileInputFiles", nodeId=node, files=[str(facts)])

    choose("{")
    page.until("document.querySelector('#edit-error').textContent.includes('facts.json')")
    choose(json.dumps([dict(zip(("prompt", "subject", "target"), fact)) for fact in FACTS]))
    page.until("document.querySelector('#file-count').textContent.startsWith('3 facts')")
    page.click("#edit-go")
    page.until("document.querySelector('#work-line').textContent.startsWith('values')")
    page.click("#work-cancel")
    page.until("document.querySelector('#edit-error').textContent === 'Cancelled: edit 3 facts. Nothing was changed.'")
    assert n_shown(page, "#edit-list .stands") == 0 and page.text("#file-name") == "facts.json"
    page.value("document.querySelector('#edit-method').value = 'ft-m'")
    page.click("#edit-go")
    until_n(page, "#edit-list .stands", 3)
    assert page.text("#method-in-use") == "ft-m" and not page.is_shown("#file")
    page.fill("#facts [name=prompt]", "no place for it")
    page.fill("#facts [name=subject]", "Rome")
    page.fill("#facts [name=target]", "Paris")
    page.click("#edit-go")
    page.until("document.querySelector('#edit-error').textContent.includes('Rome')")
    assert page.value("document.querySelector('#facts [name=target]').value") == "Paris", "what was typed stays"
    for complaint in page.complaints:  # the browser's own word for a reply of 400
        assert "400 (Bad Request)" in complaint, complaint


def test_without_a_token_nothing_opens(start, browser):
    server = start()
    page = browser.open(f"http://127.0.0.1:{server.port}/")
    assert "no token" in page.value("document.body.innerText") and server.token not in page.value("document.documentElement.outerHTML")


def test_pictures_of_the_documents_are_small():
    for name in ("serve-wide.png", "serve-narrow.png"):
        picture = pathlib.Path(ROOT / "docs" / name)
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size < 150_000, name
