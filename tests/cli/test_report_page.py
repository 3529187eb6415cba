"""Pages of reports in a browser: what stands on them, as text; hostile and strange documents; the table; the plots."""
import copy
import json
import random

import pytest
from test_report import BROWSER, needs_browser, run_ok

pytestmark = needs_browser
SMALL = {
    "format": "lancet-report-1", "lancet": "0.1.0", "status": "accepted", "accept": {"efficacy_prob": 0.5}, "unmet": [],
    "metrics": {"efficacy_prob": {"before": 0.25, "right_after": None, "after": 0.75, "prompts": 4, "protocol": "by p"}},
    "model": {"folder": "/models/small", "content_hash": "abc", "run_dtype": "f32"}, "method": "memit",
    "weights": [{"name": "model.layers.3.mlp.down_proj.weight", "weight_norm": 2, "delta_norm": 1, "rounding_loss": 0}],
    "batches": [{"requests": ["a", "b"], "seconds": 3}], "seconds": {"load": 1, "values": 2.5},
    "peak_bytes": {"cpu": 1500000}, "stage_peak_bytes": {"load": {"cpu": 1500000}}, "run": {"seed": 2**64 - 1},
    "requests": [
        {"id": "a", "prompt": "P one", "subject": "P", "target": "Rome", "target_true": "Paris", "skipped": None,
         "value": {"steps": 2, "initial_loss": 8, "final_loss": 0.5, "losses": [8, 0.5]},
         "metrics": {"efficacy_prob": {"before": 0, "after": 1}}, "continuation": {"before": " Paris is", "after": " Rome, of"}},
        {"id": "b", "prompt": "P two", "subject": "P", "target": "Oslo", "target_true": None, "skipped": None,
         "value": {"steps": 1, "initial_loss": 4, "final_loss": 4, "losses": [4]},
         "metrics": {"efficacy_prob": {"before": 0.5, "after": 0.5}}, "continuation": {"before": "x", "after": "y"}}],
}  # fmt: skip
OPEN_ALL = "document.querySelectorAll('.request').forEach((row) => row.click()), document.querySelectorAll('details').forEach((one) => (one.open = true))"


def small(**changes):
    return copy.deepcopy(SMALL) | changes


def judged():
    """Of its two edits the first took."""
    report = small(verdicts={"success": 1, "measured": 2, "text": "1 of 2 edits took (by m)"})
    report["requests"][0]["verdict"] = {"success": True, "cause": None, "why": None}
    report["requests"][1]["verdict"] = {"success": False, "cause": "did_not_follow", "why": "the weights <stood>"}
    report["requests"][1]["value"]["realised"] = {"total": 0.0825, "layers": {"0": 0.1, "3": 0.05}}
    return report


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from devtools import Browser

    browser = Browser(BROWSER, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.end()


class Pages:
    """Writes reports, has lancet make pages of them, and opens these."""

    def __init__(self, lancet, browser):
        self.lancet, self.browser, self.n = lancet, browser, 0

    def write(self, report, job, name):
        folder = self.lancet.folder / name
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps(report))
        if job:
            (folder / "job.yaml").write_text(job)
        return folder

    def open(self, path, fragment="", **look):
        page = self.browser.open(f"{path.as_uri()}{fragment}", **look)
        assert page.complaints == [] and all(address.startswith(("file:", "data:")) for address in page.asked), (page.complaints, page.asked)
        assert page.value("document.documentElement.scrollWidth") <= page.width, "no scrolling to the side"
        return page

    def show(self, report, job="editor: {method: memit}\n", **look):
        self.n += 1
        folder = self.write(report, job, f"report-{self.n}")
        run_ok(self.lancet.run("report", folder))
        return self.open(folder / "report.html", **look)

    def compare(self, reports, jobs=None, **look):
        self.n += 1
        folders = [self.write(report, (jobs or {}).get(name), f"runs-{self.n}/{name}") for name, report in reports.items()]
        out = self.lancet.folder / f"comparison-{self.n}.html"
        run_ok(self.lancet.run("report", *folders, "--out", out))
        return self.open(out, **look)


@pytest.fixture
def pages(lancet, browser):
    return Pages(lancet, browser)


def whole_text(page):
    """All of it, with what opens opened."""
    page.value(OPEN_ALL)
    return page.value("document.body.innerText").replace("\xa0", " ")


def texts(page, selector):
    return page.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent.replaceAll('\\u00A0', ' '))")


def says(text, *parts):
    for part in parts:
        assert part in text, (part, text)


def table_row(page, metric):
    """The cells of a metric's row."""
    rows = page.value("[...document.querySelectorAll('.metrics tbody tr')].map((row) => [...row.children].map((cell) => cell.innerText.trim()))")
    return next(row for row in rows if row[0].startswith(metric))


def attributes(page, selector, name):
    return page.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.getAttribute('{name}'))")


def numbers(page, selector, name):
    return [float(value) for value in attributes(page, selector, name)]


# ---- What stands on it ----

def test_it_shows_what_the_report_holds(pages):
    page = pages.show(small())
    text = whole_text(page)
    says(text, "2 facts edited in small", "✓ Accepted", "1 threshold met", "75.0 %", "25.0 %", "by p", "Loss by step", "Time by stage", "1.5 MB",
         "editor: {method: memit}", "abc", "loss 8 → 0.5 in 2 steps", "instead of", str(2**64 - 1), "50.00 %")  # fmt: skip
    assert "Rome" in texts(page, "mark")
    for absent in ("The stream", "95 % interval", "What it cost elsewhere", "Scripts are off"):
        assert absent not in text
    assert texts(page, ".request .prompt") == ["P two", "P one"], "the worst first"
    assert texts(page, "title")[0] == "small: memit, accepted"
    assert page.value("[...document.querySelectorAll('table')].every((table) => table.querySelector('thead th[scope=col]') && table.getAttribute('aria-label'))")


def test_accepted_is_said_only_where_something_was_asked_for(pages):
    text = whole_text(pages.show(small(accept={}, status="done")))
    assert "✓" not in text
    says(text, "Not measured", "no thresholds set")


def test_it_says_how_many_edits_took_and_why_others_did_not(pages):
    report = judged()
    page = pages.show(report)
    text = whole_text(page)
    says(text, "✓ Accepted", "1 of 2 took", "1 of 2 edits took (by m)", "P two → Oslo: the weights <stood>", "did not take\nthe weights <stood>",
         "weights followed 8.2 % of the way (layer 0: 10.0 %, layer 3: 5.0 %)")  # fmt: skip
    assert text.count("1 of 2 edits took (by m)") == 1 and "No edit took" not in text
    assert texts(page, ".request td:last-child") == ["did not take", "took"]
    report["verdicts"]["success"] = 0
    text = whole_text(pages.show(report))
    says(text, "✕ No edit took", "2 facts tried in small")


def test_it_names_what_was_rejected(pages):
    text = whole_text(pages.show(small(status="rejected", unmet=["efficacy_prob: expected <at least> 0.9"])))
    says(text, "✕ Rejected", "2 facts tried in small", "Nothing was exported", "expected <at least> 0.9", "1 of 1 threshold missed")


def about_subjects():
    """Of two edits of one subject, with what else is said of it."""
    report = judged()
    asked = [("text", "P is", "a harbour", "a new Rome <b>"), ("chat_text", "Tell me about P.", "P is a port.", "P is a port."),
             ("next_token", "P has", " a", " been"), ("next_token", "P was", " built", " built"), ("chat_next_token", "Tell me about P. P has", " two", " no")]  # fmt: skip
    for request in report["requests"]:
        request["subject_answers"] = [dict(asked=kind, prompt=prompt, before=was, after=now, kept=was == now) for kind, prompt, was, now in asked]
    report["verdicts"]["subjects"] = {"kept": 2, "prompts": 6, "leaks": 1, "texts": 2, "is_low": True, "least": 0.7, "text": "but <P> is not what it was"}
    return report


@pytest.mark.parametrize("look", [{"width": 375, "height": 800}, {"width": 1280, "height": 900}])
def test_it_begins_with_the_answers_and_what_else_is_said_of_the_subject(pages, look):
    page = pages.show(about_subjects(), **look)
    ids = page.value("[...document.querySelectorAll('main > section')].map((one) => one.id)")
    assert ids[:3] == ["text", "problems", "summary"] and ids.index("facts") < ids.index("metrics"), "answers first, figures after"
    assert page.value("document.querySelector('#text .texts').getBoundingClientRect().bottom") < look["height"], "within the first screen"
    assert texts(page, ".verdict") == ["✓ Accepted", "1 of 2 took", "✕ Subjects changed: 33.3 % kept"]
    cards = texts(page, "#text article")
    assert len(cards) == 2 and len(texts(page, ".subject")) == 1, "one subject is told of once"
    says(cards[0], "Else about P", "1 of 3 next tokens as before", "P is", "a harbour", "a new Rome <b>", "user: Tell me about P.", "as before")
    assert "Rome" in texts(page, "#text mark"), "the target at the beginning of an answer is marked"
    assert not page.is_shown(".subject details ul")
    says(whole_text(page), "2 next tokens changed", "P has a → been", "chat: Tell me about P. P has two → no", "but <P> is not what it was")
    left, right = (page.value(f"(({{left, top}}) => [left, top])(document.querySelector('#text article > {one}').getBoundingClientRect())") for one in ("div:not(.subject)", ".subject"))
    assert (left[0] < right[0] and left[1] == right[1]) if look["width"] > 1000 else (left[0] == right[0] and left[1] < right[1])


def test_subjects_that_are_kept_have_no_badge(pages):
    report = about_subjects()
    report["verdicts"]["subjects"] |= {"kept": 6, "is_low": False, "text": "go on as before in 6 of 6"}
    page = pages.show(report)
    assert texts(page, ".verdict") == ["✓ Accepted", "1 of 2 took"]
    says(page.text("header"), "go on as before in 6 of 6")
    for request in report["requests"]:
        del request["subject_answers"], request["continuation"]
    page = pages.show(report)
    assert page.value("document.querySelector('#text') === null"), "an earlier report, without texts"


def test_each_fact_has_its_bars_and_how_much_its_text_changed(pages):
    """Heights are the shares, read from the picture; the worst first, as in the table."""
    report = small()
    report["requests"][0]["continuation"] = {"before": " it lies in Paris , France", "after": " it lies in Rome"}
    report["requests"][1]["continuation"] = {"before": "x", "after": "x"}
    for look in ({}, {"width": 375, "height": 800, "dark": True}):
        page = pages.show(report, **look)
        strips = page.value("""[...document.querySelectorAll('#facts .strip')].map((strip) => [strip.querySelector('.name').textContent, strip.querySelector('.num').textContent,
          Object.fromEntries([...strip.querySelectorAll('path')].map((path) => [path.getAttribute('class'), path.getAttribute('d')])),
          [...strip.querySelectorAll('rect')].map((one) => one.textContent), strip.querySelector('svg').getAttribute('aria-label')])""")
        assert strips == [
            ["efficacy_prob", "25.0\xa0% → 75.0\xa0%", {"was": "M0.1 1V0.5h0.4V1ZM1.1 1V0.97h0.4V1Z", "now": "M0.5 1V0.5h0.4V1ZM1.5 1V0h0.4V1Z"},
             ["P two → Oslo: 50.0\xa0% → 50.0\xa0%", "P one → Rome: 0.0\xa0% → 100.0\xa0%"], "efficacy_prob: 25.0\xa0% → 75.0\xa0%, by fact for 2 facts"],
            ["text changed", "25.0\xa0%", {"now": "M0.1 1V0.97h0.8V1ZM1.1 1V0.5h0.8V1Z"}, ["P two → Oslo: 0.0\xa0%", "P one → Rome: 50.0\xa0%"],
             "text changed: 25.0\xa0%, by fact for 2 facts"]]  # fmt: skip
        assert page.value("document.querySelector('#facts').getBoundingClientRect().top") < page.value("document.querySelector('#metrics').getBoundingClientRect().top")
    report["requests"] = [copy.deepcopy(report["requests"][i % 2]) | {"id": str(i)} for i in range(1000)]
    page = pages.show(report)
    assert page.value("document.querySelectorAll('#facts .strip:first-child rect').length") == 400 and "the first 400 of 1,000" in page.text("#facts")
    for without in (small(metrics={}, requests=[{"id": "a", "prompt": "P", "target": "T"}]), small(requests=[])):
        assert pages.show(without).value("document.querySelector('#facts') === null")


def test_it_shows_intervals_units_groups_and_costs(pages):
    report = small(later={"unknown": {"before": 1}})
    report["metrics"]["efficacy_prob"]["interval"] = {"before": [0.2, 0.3], "after": [0.625, 0.875]}
    report["metrics"]["perplexity"] = {"before": 12.5, "after": 13, "unit": "nats", "better": "lower", "group": "fluency", "protocol": "held-out text"}
    cost = {"before": None, "after": 0.0375, "unit": "nats", "better": "lower", "group": "text", "protocol": "a divergence", "count": 9098}
    page = pages.show(report | {"side_effects": {"text_kl": cost}})
    says(whole_text(page), "62.5\u2009–\u200987.5", "95 % interval", "12.5 nats", "Fluency", "What it cost elsewhere", "a divergence", "0.0375 nats", "9,098")
    assert "unknown" not in page.text("main") and texts(page, "span.bad") == ["+0.5"] and texts(page, "span.good") == [" ✓ asked for: 50.0 %", "+50.0"]


def test_shares_are_rounded_as_the_terminal_rounds_them(pages):
    numbers = random.Random(0)
    shares = [i / 16 for i in range(17)] + [i / 160 for i in range(160)] + [numbers.random() for _ in range(100)] + [0.0005, 0.99949, 0.9995]
    report = small(accept={}, metrics={f"share_{i}": {"before": 0, "after": share} for i, share in enumerate(shares)})
    shown = texts(pages.show(report), "td[data-label=after] .after")
    assert shown == [f"{100 * share:.1f} %" for share in shares]


# ---- Whatever stands in the documents ----

EVIL = "</script><script>document.title = 'broken'</script><!--<script>\"<img src=x onerror=alert(1)>&lt;\u2028\u2029\u202e\x01"
EVIL_JOB = "</pre></script><!--<script>"
EVIL_SHOWN = EVIL.replace("\x01", "\ufffd")


def evil_report():
    report = judged()
    for key in ("id", "prompt", "subject", "target", "target_true"):
        report["requests"][0][key] = EVIL
    report["requests"][0]["continuation"] = {"before": EVIL, "after": EVIL}
    report["requests"][1]["verdict"]["why"] = report["verdicts"]["text"] = EVIL
    report |= {key: EVIL for key in ("method", "measured_on", "lancet")}
    report["model"] = {"folder": EVIL.replace("/", "|"), "content_hash": EVIL, "run_dtype": EVIL}
    report |= {"warnings": [EVIL], "contexts": [EVIL], "unmet": [EVIL], "run": {"devices": EVIL, "seed": EVIL}, "statistics": {"corpus": EVIL}}
    report["metrics"] |= {EVIL: {"before": 0.5, "after": 0.5, "protocol": EVIL, "group": EVIL}, "__proto__": {"before": 1}, "constructor": {"after": 1}}
    report["seconds"][EVIL] = 1
    report["weights"][0]["name"] = EVIL
    report["requests"] += [report["requests"][0] | {"skipped": EVIL}] * 250
    report["journal"] = {"batches": [{"when": EVIL, "method": EVIL, "edits": 1}] * 2, "undone": [{"when": EVIL, "mode": EVIL, "edits": [EVIL], "gives_up": EVIL}]}
    return report


def test_hostile_texts_are_texts(pages):
    page = pages.show(evil_report(), job=f"a: '{EVIL_JOB}'\n")
    text = page.value(f"{OPEN_ALL}, document.body.textContent")
    assert text.count(EVIL_SHOWN) > 100 and EVIL_JOB in texts(page, "pre")[-1]
    report = evil_report()
    both = pages.compare({"one": report, "two": report}, {"one": f"a: '{EVIL_JOB}'\n", "two": "a: b\n"})
    assert both.value("document.body.textContent").count(EVIL_SHOWN) >= 5
    for each in (page, both):
        assert each.value("document.title") != "broken" and each.value("document.scripts.length") == 2
        assert each.value("document.querySelectorAll('img, iframe, link:not([rel=icon]), [onerror]').length") == 0
        # other directions of writing end where the text ends
        assert each.value("[...document.querySelectorAll('bdi')].every((one) => one.dir === 'auto' && getComputedStyle(one).unicodeBidi === 'isolate')")
    isolated = page.value("[...document.querySelectorAll('.prompt, .to-text, .note li > bdi, .true, h1 bdi')].map((one) => one.tagName)")
    assert len(isolated) > 50 and set(isolated) == {"BDI"}


def test_nothing_but_its_own_script_runs_and_nothing_is_asked_for(pages):
    page = pages.show(small())
    page.value("(() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1'; document.body.append(one); })()")
    page.value("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\"><p id=styled style=\"color: red\">')")
    assert page.value("fetch('https://127.0.0.1/').then(() => 'answered', () => 'refused')") == "refused"
    assert page.value("window.ran ?? null") is None and page.value("document.querySelector('#styled').style.color") == ""
    assert any("Content Security Policy" in complaint for complaint in page.complaints)


def test_strange_documents_make_a_page_too(pages):
    """Each key missing, or something else: the script runs again in the same page."""
    report = evil_report() | {"batches": judged()["batches"] * 2, "requests": judged()["requests"]}
    page = pages.show(report)
    again = "(documents) => { document.getElementById('documents').textContent = JSON.stringify(documents); (0, eval)(document.scripts[1].textContent); return document.querySelectorAll('main').length; }"
    page.value(f"window.again = {again}; null")
    places = [(report, key) for key in report if key != "format"]
    places += [(report["requests"][0], key) for key in report["requests"][0]] + [(report["metrics"], "efficacy_prob"), (report["batches"][0], "seconds")]
    for parent, key in places:
        kept = parent.pop(key)
        for strange in ("missing", None, "text", 3, [1, None], {"a": 1}, [{"a": []}], -1e300):
            parent |= {} if strange == "missing" else {key: strange}
            run = {"label": "one", "has_job": False, "failure": "", "group": 0, "requests": 2, "report": report}
            for documents in ({"page": "edit", "report": report, "job": ""}, {"page": "comparison", "title": "t", "runs": [run, run], "differences": []}):
                assert page.value(f"again({json.dumps(documents)})") == 1, (key, strange)
        parent[key] = kept
    assert page.complaints == []
    says(whole_text(pages.show(small(requests=[]))), "0 facts")
    says(whole_text(pages.show({"format": "lancet-report-1"}, job="")), "0 facts edited in")


# ---- The table of requests ----

def many_requests(n):
    """Of which a few have texts that pages stumble over."""
    stumbling = {1: "</script><script>document.title = 'broken'</script>", 2: "مدينة القاهرة", 3: "long " * 500 + "x" * 2000}
    rows = [
        {"id": f"case-{i}", "prompt": stumbling.get(i, f"Number {i} lies in"), "subject": f"Number {i}", "target": "Paris" if i % 10 == 0 else "Rome",
         "target_true": None, "skipped": None, "value": {"steps": 1 + i % 7, "initial_loss": 9.0, "final_loss": i / n, "losses": [9.0, i / n]},
         "metrics": {"efficacy_prob": {"before": 0, "after": 0 if i < 5 else 1}}, "continuation": {"before": " x", "after": " Rome, and"}}
        for i in range(n)
    ]  # fmt: skip
    metrics = {"efficacy_prob": {"before": 0, "right_after": None, "after": 1 - 5 / n, "prompts": n, "protocol": "by p"}}
    return {"format": "lancet-report-1", "status": "done", "metrics": metrics, "requests": rows}


def shown_rows(page):
    return page.value("document.querySelectorAll('.request').length")


def test_rows_are_searched_ordered_and_opened(pages):
    page = pages.show(many_requests(1000))
    path = pages.lancet.folder / "report-1" / "report.html"
    assert page.text("#request-count") == "1,000 requests, 25 shown" and shown_rows(page) == 25
    assert path.read_text().count("Number 987 lies in") == 1, "texts stand once"
    found = pages.open(path, "#q=Paris")
    assert found.text("#request-count") == "100 of 1,000 requests, 25 shown"
    assert set(texts(found, ".request .to-text")) == {"Paris"}
    single = pages.open(path, "#q=number+987+rome&order=loss")
    assert single.text("#request-count") == "1 of 1,000 requests" and shown_rows(single) == 1
    single.click(".request .fact")
    says(single.text("#request-988"), "case-987", "Rome, and", "loss 9 → 0.987 in 1 step", "efficacy_prob", "100")
    assert texts(single, ".opener") == ["#988"] and texts(single, "#request-988 mark") == ["Rome"] and attributes(single, ".opener", "aria-expanded") == ["true"]
    single.click(".request .fact")
    assert not single.is_shown("#request-988")
    assert shown_rows(pages.open(path, "#show=missed")) == 5
    assert pages.open(path, "#q=nowhere").text("#request-count") == "0 of 1,000 requests"
    assert texts(pages.open(path, "#order=loss"), ".request .prompt")[:3] == [f"Number {i} lies in" for i in (999, 998, 997)]
    assert texts(pages.open(path, "#order=metric:efficacy_prob&show=nonsense"), ".opener")[:5] == ["#5", "#4", "#3", "#2", "#1"]
    page.fill("#search", "number 12")
    page.until("document.querySelector('#request-count').textContent.startsWith('20 of')")
    assert page.value("location.hash") == "#q=number+12"


def test_the_table_by_the_keyboard_alone(pages):
    page = pages.show(many_requests(300))
    page.tab_to("search")
    page.tab_to("opener")
    page.press("Enter")
    assert page.value("document.activeElement.getAttribute('aria-expanded')") == "true" and page.is_shown(".detail")
    page.press(" ")
    assert not page.is_shown(".detail")
    page.tab_to("more")
    page.press("Enter")
    assert shown_rows(page) == 225 and page.text("#more") == "Show 75 more" and page.value("document.activeElement.textContent") == "#280"
    page.value("document.querySelector('#more').focus()")
    page.press("Enter")
    assert shown_rows(page) == 300 and not page.is_shown("#more")


def test_ten_thousand_requests_stay_usable(pages):
    page = pages.show(many_requests(10000))
    assert shown_rows(page) == 25 and page.text("#request-count") == "10,000 requests, 25 shown"
    assert page.value("performance.getEntriesByType('navigation')[0].domComplete") < 10_000
    search = "(() => { const begin = performance.now(), field = document.querySelector('#search'); field.value = 'number 9876'; field.dispatchEvent(new Event('input')); return performance.now() - begin; })()"
    assert page.value(search) < 2_000 and page.text("#request-count") == "1 of 10,000 requests"


def test_dark_narrow_and_printed(pages):
    report = judged() | {"requests": judged()["requests"] * 20}
    background = "getComputedStyle(document.body).backgroundColor"
    assert pages.show(report).value(background) == "rgb(244, 246, 249)"
    page = pages.show(report, width=360, height=780, dark=True)
    assert page.value(background) == "rgb(14, 19, 26)"
    page.value(OPEN_ALL)
    assert page.value("document.documentElement.scrollWidth") <= 360
    page.call("Emulation.setEmulatedMedia", media="print")
    page.value("document.querySelectorAll('details').forEach((one) => (one.open = false)), dispatchEvent(new Event('beforeprint'))")
    assert page.value(background) == "rgb(255, 255, 255)" and not page.is_shown("nav") and not page.is_shown("#tools")
    assert page.value("[...document.querySelectorAll('details')].every((one) => one.open)") and shown_rows(page) == 40


# ---- Plots ----

def stream(first_batch, growth=()):
    batches = [{"requests": [], "seconds": 1, "metrics": {"efficacy_prob": {"first_batch": y}}, "growth": {"w": growth[i]} if growth else {}} for i, y in enumerate(first_batch)]
    return small(batches=batches, seconds={"load": 10, "values": 5})


def test_values_lie_between_the_ticks_of_their_axis(pages):
    page = pages.show(stream([0.5, None, 0.75, 1], growth=[0, 0.05, 0.1, 0.1]))
    y, grid = numbers(page, "#stream figure:first-child circle", "cy"), numbers(page, "#stream figure:first-child .p-grid", "y1")
    ticks = [text for text in texts(page, "#stream figure:first-child text[text-anchor=end].p-tick")]
    place = dict(zip(map(float, ticks), grid, strict=True))
    assert y == pytest.approx([place[50], (place[70] + place[80]) / 2, place[100]], abs=0.11), "a gap has no dot"
    assert attributes(page, "#stream figure:first-child path", "d")[0].count("M") == 2
    first, second = numbers(page, "#cost figure:first-child rect", "width")
    assert first == pytest.approx(2 * second, abs=0.2)
    assert "NaN" not in page.value("document.querySelector('main').innerHTML")
    for plot in range(page.value("document.querySelectorAll('svg.plot').length")):
        told = page.value(f"(() => {{ const one = document.querySelectorAll('svg.plot')[{plot}]; return ['aria-labelledby', 'aria-describedby'].map((name) => document.getElementById(one.getAttribute(name)).textContent); }})()")
        assert page.value(f"document.querySelectorAll('svg.plot')[{plot}].getAttribute('role')") == "img" and all(told)
    assert texts(page, "#stream desc")[0] == "efficacy_prob: 3 values, from 50 to 100"


def test_losses_of_many_sizes_are_drawn_logarithmically(pages):
    report = small()
    report["requests"] = [report["requests"][0] | {"value": {"losses": [10, 1, 0.1, 0.01]}}]
    y = numbers(pages.show(report), "#losses figure:first-child circle", "cy")
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.11) and y[1] - y[2] == pytest.approx(y[2] - y[3], abs=0.11)


# ---- Comparisons ----

def with_after(after, interval=None, facts=10, **changes):
    report = small()
    report["requests"] += [copy.deepcopy(report["requests"][i % 2]) | {"id": str(i)} for i in range(2, facts)]
    report["metrics"]["efficacy_prob"] |= {"after": after} | ({"interval": {"before": None, "after": interval}} if interval else {}) | changes
    return report


def test_a_comparison_says_what_differs_and_what_is_best(pages):
    jobs = {"one": "editor: {method: memit, layers: [0, 1]}\nrun: {seed: 0}\noutput: {dir: a}\n",
            "two": "editor: {method: rome, layers: [0, 1], new: 3}\nrun: {seed: 0}\noutput: {dir: b}\n"}  # fmt: skip
    page = pages.compare({"one": with_after(0.75), "two": with_after(0.5)}, jobs)
    assert texts(page, "#differences tbody th") == ["editor.method", "editor.new"]
    assert texts(page, "td.best .after") == ["75.0 %"] and "not comparable" not in page.text("body")
    says(whole_text(page), "by p; over 4 prompts", "from 25.0", "best")
    says(pages.compare({"one": small(), "two": small()}).text("body"), "Nothing that is known", "there is no job.yaml")


def test_of_few_facts_none_is_called_the_best(pages):
    """Below ten requests there are no intervals, so what is best may be chance."""
    assert texts(pages.compare({"one": with_after(0.75, facts=9), "two": with_after(0.5, facts=9)}), "td.best .after") == []


@pytest.mark.parametrize(
    ("intervals", "best"),
    [([[0.7, 0.8], [0.4, 0.6]], ["75.0 %"]), ([[0.55, 0.9], [0.4, 0.6]], []), ([[0.7, 0.8], None], ["75.0 %"]), ([None, None], ["75.0 %"])],
)
def test_best_is_said_only_where_intervals_part(pages, intervals, best):
    page = pages.compare({"one": with_after(0.75, intervals[0]), "two": with_after(0.5, intervals[1])})
    assert texts(page, "td.best .after") == best


def test_a_comparison_has_what_each_run_answers_by_fact(pages):
    one, two = judged(), judged()
    two["requests"][1]["verdict"] = {"success": True}
    two["requests"][1]["continuation"] = {"before": "x", "after": " Oslo " + "<b>" * 100}
    page = pages.compare({"one": one, "two": two})
    rows = page.value("[...document.querySelectorAll('#answers tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    assert rows == [["P two → Oslo", "x", "y ✕ did not take", rows[0][3]], ["P one → Rome", "Paris is", "Rome, of", "Rome, of"]], "where they differ comes first"
    assert rows[0][3].startswith("Oslo <b><b>") and len(rows[0][3]) < 200
    assert texts(page, "#answers thead th") == ["fact", "before", "one", "two"] and texts(page, "#answers mark") == ["Oslo", "Rome", "Rome"]
    many = judged()
    many["requests"] = [copy.deepcopy(many["requests"][i % 2]) | {"id": str(i)} for i in range(300)]
    page = pages.compare({"one": many, "two": many})
    assert page.value("document.querySelectorAll('#answers tbody tr').length") == 200
    says(page.text("#answers"), "The first 200 of 300")
    for report in (one, two):
        for request in report["requests"]:
            del request["continuation"]
    assert pages.compare({"one": one, "two": two}).value("document.querySelector('#answers') === null")


def test_a_comparison_keeps_apart_what_is_not_comparable(pages):
    model, requests, protocol = small(), small(), with_after(0.75, facts=2, protocol="by rank")
    model["model"]["content_hash"] = "def"
    requests["requests"][0]["target"] = "Bern"
    for other in (model, requests):
        says(pages.compare({"one": small(), "two": other}).text("body"), "not comparable across the 2 tables", "Metrics, group 2")
    text = pages.compare({"one": small(), "two": protocol}).text("body")
    assert "measured by 2 different protocols" in text and "group 2" not in text
    fewer = pages.compare({"one": small(), "two": with_after(1, facts=2, prompts=1)})
    says(whole_text(fewer), "rests on other prompts in some runs (4, 1 of them)", "; over 4 prompts", "; over 1 prompt")
    apart = pages.compare({"one": with_after(0.75, facts=2, asked="abc"), "two": with_after(1, facts=2, asked="def")})  # as many, but not the same ones
    assert "rests on other prompts in some runs (4, 4 of them)" in apart.text("body")
    assert texts(fewer, "td.best") == texts(apart, "td.best") == []


def test_a_comparison_says_of_each_run_how_many_edits_took(pages):
    none, neutral = judged(), judged() | {"accept": {}}
    none["verdicts"]["success"] = 0
    page = pages.compare({"one": neutral, "two": none})
    assert texts(page, "#metrics .runs tbody tr:nth-child(1) td") == ["no thresholds", "✓ accepted"]
    assert texts(page, "#metrics .runs tbody tr:nth-child(2) td") == ["1 of 2", "✕ 0 of 2"]


def test_a_comparison_draws_the_front_of_success_and_specificity(pages):
    reports = {}
    for i, (success, specificity) in enumerate([(0.9, 0.5), (0.6, 0.8), (0.5, 0.4), (0.9, 0.5), (0.9, 0.505)]):
        reports[f"r{i}"] = with_after(success)
        reports[f"r{i}"]["metrics"]["specificity_prob"] = {"before": 1, "after": specificity, "protocol": "p"}
    page = pages.compare(reports)
    says(page.text("#balance"), "Success against specificity", "r0", "r1", "r2")
    assert attributes(page, ".p-front", "d")[0].count("L") == 2, "two runs and the step between"
    names = page.value("[...document.querySelectorAll('.p-name')].map((one) => one.getBoundingClientRect()).map(({ x, y, right }) => [x, right, y])")
    assert all(a[1] < b[0] or b[1] < a[0] or abs(a[2] - b[2]) > 8 for i, a in enumerate(names) for b in names[:i]), "no name lies on another"
    assert texts(page, "#balance desc") == ["r0: 50 / 90; r1: 80 / 60; r2: 40 / 50; r3: 50 / 90; r4: 50.5 / 90"]


# ---- Of real runs ----

def test_a_stream_and_a_comparison_of_real_runs(pages, lancet):
    values = {"steps": 8, "lr": 0.5, "clamp": 4.0}
    run_ok(lancet.edit(lancet.job(requests__limit=6, schedule={"batch": 2}, editor__values=values, evaluate=["efficacy", "specificity", "generation"])))
    page = pages.open(lancet.out / "report.html")
    assert shown_rows(page) == 6 and page.value("document.querySelectorAll('svg.plot').length") == 7
    report = json.loads((lancet.out / "report.json").read_text())
    for name, metric in report["metrics"].items():
        if metric.get("unit", "share") == "share":
            assert table_row(page, name)[3].split("\n")[0].replace("\xa0", " ") == f"{100 * metric['after']:.1f} %"
    says(whole_text(page), "6 facts edited in", "The stream", "Retention", "Growth of the weights", report["metrics"]["efficacy_prob"]["protocol"])
    assert (lancet.out / "job.yaml").read_text() in texts(page, "pre")
    run_ok(lancet.run("report", lancet.out, lancet.out, "--out", "both.html"))
    assert "Nothing that is known" in pages.open(lancet.folder / "both.html").text("body")
