"""The page of `lancet serve` in a browser, as a person uses it: by mouse and by keyboard, wide and narrow, in two tabs."""
import json
import os
import pathlib
from urllib.parse import urlparse

import pytest
from conftest import DATA, LANCET, ROOT
from inference_stand_ins import Vllm
from served import Served
from test_report import BROWSER, needs_browser

pytestmark = needs_browser
DEMO = DATA / "demo-model"
FACTS = [("{}, created in", "Piranha Games", "London"), ("{}, the", "Lerin Duarte", "goaltender"), ("{} is produced by", "Toyota Alphard", "Chrysler")]
PROMPT = "Piranha Games, created in"
ANSWERED = "!document.querySelector('#ask-go').disabled && [...document.querySelectorAll('#answers > :first-child .state')].every((e) => e.textContent === '')"
IDLE = "document.querySelector('#work').hidden"
# The lengths of both answers to the latest question, after each piece.
GROWTH = """(() => {
  window.growth = [];
  const lengths = () => [...document.querySelectorAll('#answers > :first-child .side bdi')].map((e) => e.textContent.length);
  new MutationObserver(() => growth.push(lengths())).observe(document.querySelector('#answers'), { subtree: true, childList: true });
})()"""


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

    def start(*more, arguments=(), model=DEMO):
        settings = ["editor.values.steps=30", "statistics.tokens=4000", f"statistics.cache={cache}", *more]
        started.append(Served(LANCET, tmp_path, "--model", model, *arguments, settings=settings))
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


def answers(page, row=1):
    """What the model said without the edits, and with them; of these nothing where none stood."""
    sides = (f"#answers > :nth-child({row}) .side.{side}" for side in ("before", "after"))
    return [page.text(f"{side} bdi") if page.is_shown(side) else None for side in sides]


def ask(page, prompt):
    page.fill("#ask-prompt", prompt)
    page.click("#ask-go")
    page.until(ANSWERED)
    assert page.text("#answers > :first-child .prompt") == prompt and not page.is_shown("#ask-stop") and not page.is_shown("#ask-error")
    return answers(page)


def is_stale(page, row=1):
    return page.is_shown(f"#answers > :nth-child({row}) .why") and page.is_shown(f"#answers > :nth-child({row}) button")


def pictures_folder():
    """docs/, where LANCET_PICTURES is set: docs/serve.md shows them."""
    return ROOT / "docs" if os.environ.get("LANCET_PICTURES") else None


def take_picture(page, path, **options):
    """With the folders of the documents in the place of the test's."""
    for place, text in [("#dir", "out/serve"), ("#export-dir", "out/serve"), ("#folder", "data/demo-model")]:
        page.value(f"document.querySelector('{place}').textContent = '{text}'")
    page.screenshot(path, **options)


def test_ask_edit_undo_restart_and_export(start, browser):
    server = start(arguments=("--examples", DATA / "requests" / "demo.json"))
    page = browser.open(server.address)
    page.until("document.querySelector('h1').textContent === 'demo-model'")
    base, none = ask(page, PROMPT)
    assert "Vancouver" in base and none is None and not is_stale(page)
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
        assert target in after and target not in before and "took" in row and "efficacy" not in row, row
    assert not page.is_shown("#metrics .strip")
    page.click("#metrics summary")
    names = page.value("[...document.querySelectorAll('#metrics .name, #metrics tbody th')].map((e) => e.textContent)")
    assert len(set(names)) == len(names) and {"efficacy_argmax", "generation_exact", "generation_contains"} <= set(names), "each metric once"
    rows = page.value("[...document.querySelectorAll('#metrics tbody tr')].map((e) => e.innerText.split(/\\s+/).join(' ').trim())")
    assert rows == ["generation_exact 0.0 % 100.0 % 3", "generation_contains 0.0 % 100.0 % 3", "subject_leak n/a 66.7 % 3"], rows
    strips = page.value("[...document.querySelectorAll('#result .strip')].map((e) => [e.innerText.split(/\\s+/).join(' '), e.querySelectorAll('rect').length])")
    assert strips == [["efficacy_argmax 0.0 % → 100.0 %", 3], ["generation_starts 0.0 % → 100.0 %", 3], ["subject_kept 50.0 %", 3], ["text changed 100.0 %", 3]]
    bars = page.value("['.was', '.now'].map((side) => document.querySelector(`#result .strip ${side}`).getBoundingClientRect().height / document.querySelector('#result .bars').clientHeight)")
    assert bars[0] < 0.05 and bars[1] > 0.95, "nothing before, all after"
    page.until("document.querySelector('#count').textContent === '3 edits stand'")
    page.until(ANSWERED + " && document.querySelector('#answers .side.after bdi').textContent")  # asked again by itself
    edited = answers(page)[1]
    assert answers(page)[0] == base and "London" in edited and not is_stale(page)
    page.until(IDLE)
    page.value("document.activeElement.blur(), scrollTo(0, 0)")
    if folder := pictures_folder():
        take_picture(page, folder / "serve-wide.png", height=1380, scale=0.8)
    assert ask(page, PROMPT) == [base, edited], "both asked anew"
    page.value(GROWTH)
    for id, value in (("tokens", 300), ("temperature", 3)):
        page.value(f"document.querySelector('#ask-{id}').value = {value}")
    ask(page, PROMPT)
    grown = page.value("growth")
    assert [row for row in grown if all(0 < length < whole for length, whole in zip(row, grown[-1]))], "side by side, both at once"
    for id, value in (("tokens", 20), ("temperature", 0)):
        page.value(f"document.querySelector('#ask-{id}').value = {value}")
    page.value("questions.shift().row.remove()")

    other = browser.open(server.address, width=360, height=780, dark=True)  # a second tab, on a telephone
    until_n(other, "#edit-list .stands", 3)
    until_n(other, "#result .sides", 3)
    assert other.value("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 26)"
    if folder:
        ask(other, PROMPT)
        take_picture(other, folder / "serve-narrow.png", height=1400, scale=0.9)
    for each in (page, other):
        each.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        is_as_it_should(each, server)
    page.click("#edit-list .stands:nth-child(2) button")
    for each in (page, other):
        until_n(each, "#edit-list .stands", 2)
        assert "Lerin Duarte" not in each.text("#edit-list")
    assert page.text("#undo-done").startswith("took back 1 fact; what this gives up: ")
    assert page.text("#result .note.warn").startswith("Taken back since") and n_shown(page, "#result .sides") == 3
    page.until("!document.querySelector('#answers .why').hidden")
    assert is_stale(page) and is_stale(page, 2) and answers(page) == [base, edited]
    once, now = ask(other, "Lerin Duarte, the")
    assert "midfielder" in once and "midfielder" in now and "London" in ask(page, PROMPT)[1]
    assert "Lerin Duarte, the → goaltender" in page.text("#undone-list") and page.text("#undone-title") == "Undone: 1"
    page.click("#undone-list button")
    for each in (page, other):
        until_n(each, "#edit-list .stands", 3)
        each.until("document.querySelector('#undone-list').textContent.includes('stands again')")
    assert "goaltender" in ask(page, "Lerin Duarte, the")[1] and n_shown(page, "#undone-list button") == 0

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
    until_n(fresh, "#edit-list .stands", 3)
    assert ask(fresh, PROMPT)[0] == base and fresh.is_shown("#undone")
    fresh.call("Page.reload")
    until_n(fresh, "#edit-list .stands", 3)
    fresh.until("document.querySelector('h1').textContent === 'demo-model'")  # without the token in its address
    is_as_it_should(fresh, again)


def test_by_the_keyboard_alone(start, browser):
    server = start(arguments=("--examples", DATA / "requests" / "demo.json"))
    page = browser.open(server.address)
    page.until("document.querySelector('#examples').checkVisibility()")
    assert n_shown(page, "#examples button") == 6
    page.tab_to("skip")
    page.tab_to("ask-prompt")
    page.type("and")
    page.tab_to("example")
    page.press("Enter")
    page.until("document.querySelector('#answers > :first-child') !== null")
    page.until(ANSWERED)
    assert page.value("document.querySelector('#ask-prompt').value") == PROMPT and "Vancouver" in answers(page)[0]
    for i, fact in enumerate(FACTS[:2]):
        if i:
            page.tab_to("fact-add")
            page.press(" ")
        assert page.value(f"document.querySelector('#facts > :nth-child({i + 1}) details').open") == (i == 0), "an example has all fields"
        for name, text in zip(("prompt", "subject", "target"), fact):
            page.tab_to(name)
            page.value("document.activeElement.select()")
            page.type(text)
            page.press("Tab")
    assert n_shown(page, ".fact") == 2
    page.tab_to("edit-go")
    page.press("Enter")
    until_n(page, "#edit-list .stands", 2)
    page.until(IDLE)
    on_the_way = []
    while not on_the_way or not on_the_way[-1].startswith("Undo edit"):
        page.press("Tab")
        on_the_way.append(page.focused())
    assert on_the_way == ["report-html", "report-json", "SUMMARY", "measure-all", "undo-last", "Undo edit 0: Piranha Games, created in → London"]
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


def test_edits_go_into_a_server_and_back(start, browser):
    page = browser.open(start("run.dtype=f32").address)
    page.until("document.querySelector('h1').textContent === 'demo-model'")
    other = Vllm(DEMO, lambda adapters, prompt, _tokens: " London ." if adapters and prompt == PROMPT else " Vancouver .")
    other.token = "secret-7"
    try:
        page.click("#push-fold > summary")
        page.fill("#push-to", other.url)
        page.click("#push-more summary")
        page.fill("#push-token", "secret-7")
        page.click("#push-go")
        page.until("document.querySelector('#push-error').textContent.includes('no edit stands')")
        for name, text in zip(("prompt", "subject", "target"), FACTS[0]):
            page.fill(f"#facts [name={name}]", text)
        page.click("#facts summary")
        page.fill("#facts [name=paraphrases]", "{} comes from")
        page.click("#edit-go")
        until_n(page, "#edit-list .stands", 1)
        page.fill("#push-accept", "100")
        page.click("#push-go")
        page.until("document.querySelector('#push-done').textContent.startsWith('serves: ')")
        assert len(other.adapters) == 1
        shares, asked = ([row.split("\t") for row in page.text(f"#pushed .card:nth-of-type({i}) tbody").splitlines()] for i in (1, 2))
        assert shares == [["efficacy", "0.0 %", "100.0 %", "1"], ["paraphrase", "0.0 %", "0.0 %", "1"]]
        assert [[text.strip() for text in row] for row in asked] == [
            [PROMPT, "Vancouver .", "London .", "holds"], ["Piranha Games comes from", "Vancouver .", "Vancouver .", "does not hold"]]  # fmt: skip
        page.click("#push-undo")
        page.until("document.querySelector('#push-done').textContent.startsWith('taken back: ')")
        until_n(page, "#pushed > *", 0)
        assert other.adapters == {}
        page.click("#push-undo")
        page.until("!document.querySelector('#push-error').hidden")
        other.answer = lambda *_: " Vancouver ."
        page.click("#push-go")
        page.until("document.querySelector('#push-error').textContent.startsWith('taken back: ')")
        assert other.adapters == {} and n_shown(page, "#pushed > *") == 0
        assert page.complaints == [] and "secret-7" not in page.value("document.body.innerText")
    finally:
        other.end()


CONTRASTS = """(() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => { const [a, b] = [light(one), light(other)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
  const behind = (e) => { for (; ; e = e.parentElement) { const color = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(color)) return color; } };
  return [...document.querySelectorAll('input, select, textarea, button')].filter((e) => e.checkVisibility() && !e.disabled && e.type !== 'checkbox' && e.type !== 'file').map((e) => {
    const style = getComputedStyle(e), hint = getComputedStyle(e, '::placeholder');
    const around = e.classList.contains('primary') ? style.backgroundColor : style.borderTopColor;
    return [e.id || e.name || e.textContent, contrast(around, behind(e.parentElement)), e.placeholder && hint.opacity === '1' ? contrast(hint.color, style.backgroundColor) : e.placeholder ? 0 : 21];
  });
})()"""


def test_everybody_can_read_it_and_try_an_example(start, browser):
    """axe-core's rules, and what they do not measure: borders of controls and hints in fields."""
    import axe_core_python

    axe = (pathlib.Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
    server = start("editor.values.steps=15")
    for look in ({"width": 1280}, {"width": 375, "height": 800}, {"width": 1280, "dark": True}):
        page = browser.open(server.address, **look)
        page.until("document.querySelector('#examples').checkVisibility()")
        page.click("#examples button:nth-of-type(2)")
        page.until("document.querySelector('#answers > :first-child') !== null")
        assert page.value("document.querySelector('#ask-prompt').value") == "The Eiffel Tower is in the city of"
        typed = page.value("typedFacts()")
        assert typed == [json.loads((ROOT / "src" / "serve" / "assets" / "examples.json").read_text())[1]]
        page.until(ANSWERED)
        assert page.text("#answers > :first-child .prompt") == "The Eiffel Tower is in the city of"
        if look == {"width": 1280}:
            page.click("#edit-go")
            until_n(page, "#edit-list .stands", 1)
            page.until("document.querySelector('#result-body').textContent.includes('specificity') && document.querySelector('#result-body').textContent.includes('paraphrase')")
        page.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        contrasts = page.value(CONTRASTS)
        assert len(contrasts) > 20 and not [row for row in contrasts if row[1] < 3 or row[2] < 4.5], contrasts
        page.value(axe + ";0")
        found = page.value("axe.run().then((all) => all.violations.map((one) => [one.impact, one.id, one.nodes.map((node) => node.html)]))")
        assert [row for row in found if row[0] in ("serious", "critical")] == [], found
        is_as_it_should(page, server)


CUT_SELECTS = """[...document.querySelectorAll('select')].filter((e) => e.checkVisibility()).map((e) => {
  const whole = e.cloneNode(true);
  Object.assign(whole.style, { position: 'absolute', width: 'max-content', maxWidth: 'none' });
  e.parentElement.append(whole);
  const needed = whole.getBoundingClientRect().width;
  whole.remove();
  return [e.id, e.getBoundingClientRect().width, needed];
})"""


def test_a_first_edit_on_a_telephone(start, browser):
    """The right column invites; the example is asked; both answers lead, large; nothing is cut, and it is not a long way down."""
    page = browser.open(start("editor.values.steps=15", arguments=("--examples", DATA / "requests" / "demo.json")).address, width=375, height=800)
    page.until("document.querySelector('#invite-go') !== null")
    assert "Press Edit" in page.text("#result-body") and page.value("document.documentElement.scrollHeight") < 2600
    page.click("#invite-go")
    page.until("document.querySelector('#answers > :first-child') !== null")
    page.until(ANSWERED)
    assert page.focused() == "edit-go" and page.value("typedFacts()[0].target") == "London"
    base = answers(page)[0]
    page.press("Enter")
    until_n(page, "#edit-list .stands", 1)
    page.until(ANSWERED + " && document.querySelector('#answers .side.after bdi').textContent")
    page.until(IDLE)
    told = answers(page)
    assert told[0] == base and told[1] not in ("", base) and not is_stale(page) and n_shown(page, "#invite-go") == 0
    sizes = page.value("[...document.querySelectorAll('#answers .side bdi, #result .side bdi')].map((e) => parseFloat(getComputedStyle(e).fontSize))")
    assert len(sizes) == 4 and min(sizes) >= 18, sizes
    assert page.value("document.querySelector('#ask').getBoundingClientRect().top < document.querySelector('#edit').getBoundingClientRect().top")
    for fold in ("#metrics table", "#push-form", "#export-form"):
        assert not page.is_shown(fold), fold
    height = page.value("document.documentElement.scrollHeight")
    print(f"{height} px tall at 375 wide")
    assert height < 3000
    page.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    cut = page.value(CUT_SELECTS)
    assert len(cut) == 3 and not [row for row in cut if row[1] < row[2] - 0.5], cut
    assert page.value("document.documentElement.scrollWidth") <= 375


def test_edits_inside_the_model_are_shown(start, browser, lancet):
    """A model that `lancet edit` wrote: what was edited in it stands on the page, beside what is edited there."""
    edited = lancet.edit(lancet.job())
    assert edited.returncode == 0, edited.stderr
    server = start(model=lancet.out)
    page = browser.open(server.address)
    page.until("document.querySelector('#count').textContent === '3 edits inside'")
    assert page.text("#inside-title") == "Inside the model: 3 edits" and n_shown(page, "#inside-list li") == 3
    assert "Piranha Games, created in" in page.text("#inside-list") and "London" in page.text("#inside-list") and "took" in page.text("#inside-list")
    assert f"lancet undo {lancet.out} --edits ID" in page.text("#inside-about") and str(DEMO) in page.text("#inside-about")
    assert "London" in ask(page, PROMPT)[0] and page.text("#answers h3") == "With the edits inside it"
    is_as_it_should(page, server)


def test_answers_are_drawn_as_the_fields_say(start, browser):
    page = browser.open(start().address)
    page.until("document.querySelector('h1').textContent === 'demo-model'")
    assert page.value("document.querySelector('#ask-chat').disabled") and "template" in page.value("document.querySelector('#ask-chat-why').textContent")
    likeliest = ask(page, PROMPT)
    page.click("#ask-options summary")
    page.fill("#ask-temperature", "2")
    drawn = []
    for seed in ("1", "2", "1"):
        page.fill("#ask-seed", seed)
        drawn.append(ask(page, PROMPT))
    assert drawn[0] == drawn[2] != drawn[1] != likeliest != drawn[0]
    assert "temperature 2, seed 1" in page.text("#answers > :first-child")
    page.fill("#ask-tokens", "2048")
    page.fill("#ask-prompt", PROMPT)
    page.click("#ask-go")
    page.until("document.querySelector('#ask-error').textContent.includes('512 positions')")
    assert page.is_shown("#answers > :first-child button") and page.text("#answers > :first-child .state") == "no answer"


def test_without_a_token_the_page_says_what_to_do(start, browser):
    server = start()
    page = browser.open(f"http://127.0.0.1:{server.port}/")
    said = page.value("document.body.innerText")
    assert "Open the whole address that lancet serve printed" in said and "{" not in said
    assert server.token not in page.value("document.documentElement.outerHTML")


def test_pictures_of_the_documents_are_small():
    for name in ("serve-wide.png", "serve-narrow.png"):
        picture = pathlib.Path(ROOT / "docs" / name)
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size < 150_000, name
