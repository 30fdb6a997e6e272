"""The page of a replay: what it says, that nothing in a report becomes markup, and how it behaves in a real browser."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import POLICIES, one_request, sample_report

from holdfast.replay.page import page_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = {"input", "link", "meta"}
HOSTILE = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "</script><script>window.ran = 1</script>",
    "<!-- <script>",
    "' onmouseover='window.ran = 1",
    "\u202egnp.exe\u2066 שלום עולם",
    "\ud800 lone \x00 \x1b[31m \u2028",
    "x" * 10_000,
    "界" * 10_000,
    "",
)
REPORT = sample_report(window=40_000)
PAGE = page_of(REPORT)


class Reader(HTMLParser):
    """Reads a page, and fails where a tag is not closed as it was opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data.append((self.open[-1] if self.open else "", data))

    @property
    def text(self) -> str:
        return " ".join(" ".join(data for tag, data in self.data if tag not in {"script", "style"}).split())

    @property
    def island(self) -> Any:
        data = [data for tag, data in self.data if tag == "script"]
        return json.loads(data[0])

    def tags(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for each, attributes in self.elements if each == tag]


def everywhere(text: str) -> dict[str, Any]:
    """Return a report with *text* wherever text may come from outside."""
    report = sample_report(recordings=2, calls=60, policies=["none", "auto"])
    report["title"] = text
    report["policies"][1] |= {"name": text or "auto", "config": {"strategy": text}}
    for recording in report["recordings"]:
        recording["name"] = text
        for event in recording["under"][1]["events"]:
            event["what"] = text
        recording["under"][1]["events"].append({"request": 3, "kind": text, "what": text, "tokens": 1})
    for item in report["largest"]:
        item |= {"what": text, "kind": text, "left": {"none": 1, text or "auto": 1}}
    report["unreadable"] = [{"file": text, "line": None, "reason": text}]
    return report


def test_the_page_is_well_formed_and_says_what_was_replayed():
    page = Reader(PAGE)
    for fact in (
        "Replay of 6 recordings",
        "window of 40,000 tokens",
        "unmanaged, 321 requests above it",
        "tokens estimated",
        "priced as example-model",
    ):
        assert fact in page.text
    headings = [data for tag, data in page.data if tag == "h2"]
    assert headings == [
        "Verdicts",
        "Side by side",
        "Context over time",
        "The bill",
        "Where values were",
        "Largest items",
        "What could not be read",
        "How to read this",
    ]


def test_a_verdict_says_what_a_policy_saves_and_what_it_hurts():
    report = sample_report(recordings=1)
    none, auto, _ = (policy["totals"] for policy in report["policies"])
    none |= {"requests": 214, "overflows": 12, "bill": {"cached": 10.0}, "values": {"kept": 1000}}
    auto |= {
        "requests": 214,
        "overflows": 0,
        "bill": {"cached": 2.5, "lookups": 0.3, "summaries": 0.1},
        "values": {"kept": 900, "lookup": 86, "lost": 14},
        "further": 4,
    }
    text = Reader(page_of(report)).text
    assert "71 % less to pay" in text
    assert "$2.90 instead of $10.00" in text
    assert "0 of 214 requests above the window ( none : 12)" in text
    assert "98.6 % of 1,000 values at hand, 14 lost; more look-ups bring 4 back" in text


def test_a_policy_that_costs_more_says_so():
    report = sample_report(recordings=1, policies=["none", "auto"])
    report["policies"][1]["totals"]["bill"] = {"cached": 2 * report["policies"][0]["totals"]["bill"]["cached"]}
    assert "100 % more to pay" in Reader(page_of(report)).text


def test_a_policy_shows_its_options():
    report = sample_report(recordings=1)
    report["policies"][1]["config"] = {"strategy": "auto", "note": "<b>"}
    assert '{"strategy": "auto", "note": "<b>"}' in Reader(page_of(report)).text


def test_without_none_the_first_policy_is_measured_against():
    assert re.search("auto</bdi>.*measured against.*summarize", page_of(sample_report(policies=["auto", "summarize"])))


def test_the_best_figure_of_a_row_is_marked_by_more_than_colour():
    row = re.search(r"<tr><th[^>]*><details><summary>tokens sent.*?</tr>", PAGE)
    tokens = [policy["totals"]["tokens"] for policy in REPORT["policies"]]
    cells = re.findall(r"<td.*?</td>", row[0])
    assert ["◆" in cell and "(best)" in cell for cell in cells] == [each == min(tokens) for each in tokens]


@pytest.mark.parametrize("unable", [{"failed": 1}, {"overflows": 1}])
def test_a_policy_that_does_not_fit_or_ended_early_is_best_in_nothing(unable):
    report = sample_report(recordings=1, policies=["none", "auto", "early"])
    for policy, tokens in zip(report["policies"], (300, 200, 1), strict=True):
        policy["totals"] |= {"tokens": tokens, "overflows": 0}
    report["policies"][2]["totals"] |= unable
    row = re.search(r"<summary>tokens sent.*?</tr>", page_of(report))
    assert ["(best)" in cell for cell in re.findall(r"<td.*?</td>", row[0])] == [False, True, False]


def test_a_policy_without_a_rival_is_best_in_nothing():
    report = sample_report(recordings=1, policies=["none", "auto"])
    report["policies"][0]["totals"] |= {"overflows": 1}
    report["policies"][1]["totals"] |= {"overflows": 0}
    assert "(best)" not in page_of(report)


def test_a_policy_that_ended_early_is_headlined_as_that():
    report = sample_report(recordings=1, policies=["none", "auto"])
    report["policies"][1]["totals"] |= {"failed": 1, "bill": {"cached": 0.0}}
    text = Reader(page_of(report)).text
    assert "↑ 1 recording ended early nothing more is sent or paid from there on" in text
    assert "less to pay" not in text


def test_a_bill_that_nobody_could_run_up_says_so():
    report = sample_report(recordings=1, policies=["none", "auto"])
    report["policies"][0]["totals"] |= {"overflows": 3, "bill": {"cached": 10.0}, "values": {"kept": 5}}
    report["policies"][1]["totals"] |= {"overflows": 0, "bill": {"cached": 5.0}, "values": {"kept": 5}}
    text = Reader(page_of(report)).text
    assert "with prompt caching, if no request were refused" in text
    assert "$5.00 instead of $10.00 , if no request were refused" in text
    assert text.count("100 % of 5 values at hand, if no request were refused") == 1


def test_names_of_one_family_can_be_told_apart():
    names = [f"policy-for-the-agents-of-the-night-shift-with-{'a-very-' * 9}long-name-{end}" for end in "ab"]
    page = Reader(page_of(sample_report(recordings=1, calls=5, policies=names)))
    headings = [data for tag, data in page.data if tag == "bdi" and data.startswith("policy-for")]
    assert len({*headings}) > 1
    assert all(heading.endswith(("-a", "-b")) and "…" in heading for heading in headings)


def test_what_happened_after_the_last_call_is_told_as_that():
    report = one_request()
    event = {"kind": "reduction", "what": "messages 2-9 removed", "tokens": 5}
    report["recordings"][0]["under"][0]["events"] = [{"request": 0, **event}, {"request": 1, **event}]
    [recording] = Reader(page_of(report)).island["recordings"]
    assert [what for _, _, what in recording["series"][0]["marks"]] == [
        "reduction: messages 2-9 removed, 5 tokens less",
        "after the last call: reduction: messages 2-9 removed, 5 tokens less",
    ]


@pytest.mark.parametrize(
    ("window", "to", "first"),
    [
        (200, "the window", True),
        (500, "the window", False),
        (900, None, None),
        (1_700, "the requests", False),
        (9_000, "the requests", True),
    ],
)
def test_a_picture_begins_with_what_is_small_if_the_rest_would_hide_it(window, to, first):
    page = page_of({**one_request(1_000), "window": window})
    [recording] = Reader(page).island["recordings"]
    near = recording["near"] or {}
    assert (near.get("to"), near.get("first")) == (to, first)
    assert (' id="near" autocomplete="off" checked' in page) is bool(first)
    beyond = re.search(r'class="beyond">([^<]*)<', page)[1]
    assert beyond == ("↑ 1,000" if first and window < 1_000 else "")
    assert ("↑ window 9,000" in page) is (window == 9_000)


def test_every_row_of_the_comparison_is_explained():
    rows = re.findall(
        r"<tr[^>]*><th scope=\"row\" title=\"([^\"]+)\"><details><summary>[^<]+</summary><p>([^<]+)", PAGE
    )
    assert len(rows) >= 20
    assert all(title == told and told.endswith(".") for title, told in rows)


def test_the_recording_with_the_highest_unmanaged_peak_is_drawn_first():
    peaks = [recording["under"][0]["totals"]["peak"] for recording in REPORT["recordings"]]
    highest = REPORT["recordings"][peaks.index(max(peaks))]
    assert f'<span id="still"><bdi>{highest["name"]}</bdi>' in PAGE


def decoded(columns: list[list[int]]) -> list[tuple[int, ...]]:
    sums = [[sum(column[: place + 1]) for place in range(len(column))] for column in columns]
    return list(zip(*sums, strict=True))


def test_what_the_script_draws_is_what_was_sent():
    report = sample_report(recordings=1, calls=40)
    [recording] = Reader(page_of(report)).island["recordings"]
    for series, under in zip(recording["series"], report["recordings"][0]["under"], strict=True):
        assert decoded(series["parts"]) == [tuple(row[:6]) for row in under["requests"]]
        assert [mark[0] for mark in series["marks"]] == sorted({event["request"] for event in under["events"]})


@settings(max_examples=30)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=3_000), st.integers(0, 2_999))
def test_long_series_are_thinned_without_losing_a_peak_or_a_mark(sizes, marked):
    report = one_request()
    under = report["recordings"][0]["under"][0]
    under["requests"] = [[0, 0, 0, 0, size, 0, 0, 0] for size in sizes]
    under["events"] = [{"request": marked % len(sizes), "kind": "reduction", "what": "it", "tokens": 5}]
    [recording] = Reader(page_of(report)).island["recordings"]
    [series] = recording["series"]
    drawn = [row[4] for row in decoded(series["parts"])]
    assert len(drawn) == min(len(sizes), 600) == recording["steps"]
    assert max(drawn) == max(sizes) == drawn[series["peak"]]
    assert [sizes[call - 1] for (call,) in decoded([series["calls"]])] == drawn
    [[step, kind, what]] = series["marks"]
    assert (step, kind, what) == (
        marked % len(sizes) * len(drawn) // len(sizes),
        "reduction",
        "reduction: it, 5 tokens less",
    )


def test_events_of_one_moment_are_told_together():
    report = one_request()
    kinds = ["offload"] * 4 + ["failure"]
    report["recordings"][0]["under"][0]["events"] = [
        {"request": 0, "kind": kind, "what": f"result {place}", "tokens": 100 * place * (kind == "offload")}
        for place, kind in enumerate(kinds)
    ]
    [recording] = Reader(page_of(report)).island["recordings"]
    told = "failure: result 4; offload: result 3, 300 tokens less; and 3 offloads more, 300 tokens less"
    assert recording["series"][0]["marks"] == [[0, "failure", told]]


def test_of_many_recordings_the_largest_can_be_chosen_and_the_page_says_so():
    page = page_of(sample_report(recordings=30, calls=12))
    assert "the 24 largest of 30 recordings; all of them are in --json" in page
    assert len(Reader(page).tags("option")) == 24


@pytest.mark.extended
@pytest.mark.parametrize(("recordings", "policies"), [(74, 3), (24, 12)])
def test_a_large_report_makes_a_page_of_less_than_one_and_a_half_megabytes(recordings, policies):
    names = ["none", "auto", *(f"policy-{number}" for number in range(policies - 2))]
    report = sample_report(recordings=recordings, calls=450, policies=names)
    for recording in report["recordings"]:
        for under in recording["under"]:
            for event in under["events"]:
                event["what"] = 40 * "a long name "
    assert len(page_of(report).encode()) < 1_500_000


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_text_from_outside_is_text_on_the_page(text):
    reader, harmless = Reader(page_of(everywhere(text))), Reader(page_of(everywhere("harmless")))
    assert [tag for tag, _ in reader.elements] == [tag for tag, _ in harmless.elements]
    assert not [key for _, attributes in reader.elements for key in attributes if key.startswith("on")]
    page_of(everywhere(text)).encode()


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_no_text_becomes_an_element_or_an_attribute(text):
    reader = Reader(page_of(everywhere(text)))
    assert {tag for tag, _ in reader.elements} <= {tag for tag, _ in Reader(PAGE).elements}
    assert len(reader.tags("script")) == 2
    assert {key for _, attributes in reader.elements for key in attributes} <= KNOWN_ATTRIBUTES


KNOWN_ATTRIBUTES = {key for _, attributes in Reader(PAGE).elements for key in attributes}


def test_long_names_are_cut():
    page = page_of(everywhere("x" * 10_000))
    assert max(map(len, re.findall("x+", page))) <= 1_000


def odd(**changes: Any) -> dict[str, Any]:
    return {**sample_report(recordings=2, calls=20), **changes}


def without(key: str) -> dict[str, Any]:
    report = sample_report(recordings=2, calls=20)
    for recording in report["recordings"]:
        for under in recording["under"]:
            del under[key]
    return report


ODD = {
    "nothing": {},
    "no recordings": sample_report(recordings=0),
    "no requests": sample_report(recordings=1, calls=0),
    "one policy": sample_report(policies=["auto"]),
    "twelve policies": sample_report(policies=[f"policy-{number}" for number in range(12)]),
    "no window": odd(window=0),
    "a negative window": odd(window=-1),
    "a window of one": odd(window=1),
    "a huge window": odd(window=10**12),
    "a huge request": one_request(10**9),
    "an empty request": one_request(0),
    "no events": without("events"),
    "no series": without("requests"),
    "no totals": without("totals"),
    "no prices": odd(prices=None),
    "many unreadable files": odd(unreadable=[{"file": f"{n}.jsonl", "line": n, "reason": "?"} for n in range(500)]),
    "figures that are none": odd(
        policies=[{"name": "none", "totals": {"tokens": float("nan"), "bill": {"cached": "?"}}}]
    ),
    "figures beyond all bounds": one_request(10**400),
    "no policies": odd(policies=[]),
}


@pytest.mark.parametrize("report", ODD.values(), ids=ODD.keys())
def test_odd_reports_make_pages_too(report):
    page = Reader(page_of(report))
    assert "How to read this" in page.text
    assert "nan" not in page.text.lower()
    assert page.island["recordings"] is not None


def test_the_report_is_left_as_it_was():
    before = copy.deepcopy(REPORT)
    page_of(REPORT)
    assert before == REPORT


def test_of_many_unreadable_files_the_first_are_listed():
    text = Reader(page_of(ODD["many unreadable files"])).text
    assert "99.jsonl" in text
    assert "100.jsonl" not in text
    assert "And 400 more; all of them are in --json." in text


def test_the_page_asks_for_nothing():
    page = Reader(PAGE)
    [icon] = page.tags("link")
    assert icon == {"rel": "icon", "href": "data:,"}
    policies = [meta["content"] for meta in page.tags("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policies[0]
    assert not [attributes for _, attributes in page.elements if {"src", "style", "srcset"} & set(attributes)]


def test_tables_and_pictures_are_named_for_those_who_do_not_see_them():
    page = Reader(PAGE)
    assert all("scope" in attributes for attributes in page.tags("th"))
    pictures = [attributes for attributes in page.tags("svg") if attributes.get("role") == "img"]
    assert len(pictures) >= len(POLICIES)
    assert all(attributes["aria-label"] for attributes in pictures)
    assert all(
        "role" in attributes or "aria-hidden" in attributes or "x" in attributes or "viewbox" in attributes
        for attributes in page.tags("svg")
    )


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens pages, and fails if one of them asked for anything, complained or broke its own rules."""
    contexts, trouble = [], []

    def open_page(html: str = PAGE, *, width: int = 1280, **options: Any) -> Any:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: request.url in (file.as_uri(), "data:,") or trouble.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


def pictures(page: Any) -> list[str]:
    """Return all that is drawn, and all figures below."""
    return page.locator("figure.chart").evaluate_all(
        "all => all.map(each => each.querySelector('.caption').textContent + each.querySelector('.gutter').innerHTML"
        " + each.querySelector('.lane').innerHTML + each.querySelector('.plot').innerHTML"
        " + each.querySelector('.readout').innerHTML)"
    )


def contrast(page: Any, selector: str) -> float:
    """Return the contrast between a text and what is behind it, as WCAG defines it."""
    return page.locator(selector).first.evaluate(
        """element => {
          const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const painted = (colours) => {
            canvas.clearRect(0, 0, 1, 1);
            for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
            return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
          };
          const linear = (c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
          const light = (rgb) => rgb.map((c) => linear(c / 255))
            .reduce((sum, c, place) => sum + c * [.2126, .7152, .0722][place], 0);
          const backgrounds = [];
          for (let each = element; each; each = each.parentElement)
            backgrounds.unshift(getComputedStyle(each).backgroundColor);
          const style = getComputedStyle(element);
          const text = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
          const [one, other] = [light(painted(backgrounds)), light(painted([...backgrounds, text]))];
          return (Math.max(one, other) + .05) / (Math.min(one, other) + .05);
        }"""
    )


TEXTS = (
    *(
        "h1",
        ".facts span",
        ".against",
        ".big.good b",
        ".tag",
        ".sign.good",
        ".sign.bad",
        ".at",
        ".told",
        "dd",
        "button",
    ),
    *(".compare td", ".compare .group th", ".compare .part summary", ".compare small", ".diamond", "select"),
    *(".caption", ".gutter text", ".window-label", ".readout span", ".legend span", ".calls span"),
    "section > details > summary",
)


@pytest.mark.extended
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_themes(open_page, scheme):
    page = open_page(color_scheme=scheme)
    assert {selector: ratio for selector in TEXTS if (ratio := contrast(page, selector)) < 4.5} == {}


COLOURS = ("system", "tools", "user", "assistant", "results", "summaries", "kept", "lookup", "bad")


@pytest.mark.extended
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_stand_out_in_both_themes(open_page, scheme):
    page = open_page(color_scheme=scheme)
    page.evaluate(
        """names => names.forEach((name) => {
          const element = document.createElement("b");
          element.id = name;
          document.querySelector(".card:not(.base)").append(element);
          element.style.setProperty("color", `var(--${name})`);
        })""",
        list(COLOURS),
    )
    assert {name: ratio for name in COLOURS if (ratio := contrast(page, f"#{name}")) < 3} == {}


@pytest.mark.extended
def test_a_legend_keeps_its_colours_where_a_system_forces_its_own(open_page):
    page = open_page(forced_colors="active")
    swatches = page.locator(".legend .swatch").evaluate_all(
        "all => all.map(each => getComputedStyle(each).backgroundColor)"
    )
    assert len({*swatches}) >= 6


@pytest.mark.extended
def test_pointing_does_not_move_the_page(open_page):
    page = open_page(width=390)
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(height)
    box = page.locator(".plot").nth(1).bounding_box()
    for place in range(0, 100, 7):
        page.mouse.move(box["x"] + box["width"] * place / 100, box["y"] + 100)
        assert page.evaluate(height) == before


@pytest.mark.extended
def test_the_theme_can_be_switched_and_is_not_remembered(open_page):
    page = open_page(color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != light
    assert contrast(page, "h1") > 4.5
    page.reload()
    assert page.evaluate(colour) == light


@pytest.mark.extended
@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
@pytest.mark.parametrize("name", ["usual", "long names", "twelve policies", "a huge request"])
def test_the_page_never_scrolls_sideways(open_page, width, name):
    html = page_of({**ODD, "usual": REPORT, "long names": everywhere("x" * 10_000)}[name])
    page = open_page(html, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.extended
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_nothing_in_a_report_runs(open_page, text):
    page = open_page(page_of(everywhere(text)))
    page.select_option("#recording", index=1)
    page.locator(".frame").nth(1).hover()
    assert page.evaluate("window.ran") is None
    assert page.locator("img").count() == 0


@pytest.mark.extended
def test_markup_that_got_in_all_the_same_would_not_run(browser, tmp_path):
    file = tmp_path / "page.html"
    holes = "<script>window.ran = 1</script><img src='data:,' onerror='window.ran = 1'>"
    file.write_text(PAGE.replace("<main>", f"<main>{holes}"), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    assert page.evaluate("window.ran") is None
    page.close()


@pytest.mark.extended
def test_choosing_another_recording_draws_it_and_choosing_back_draws_what_was_there(open_page):
    page, still = open_page(), open_page(java_script_enabled=False)
    first = pictures(page)
    page.select_option("#recording", index=1)
    second = pictures(page)
    assert all(one != other for one, other in zip(first, second, strict=True))
    page.select_option("#recording", index=0)
    assert pictures(page) == first
    drawn_without_a_script = still.content().partition('class="charts"')[2].partition('<div class="readout"')[0]
    paths = re.findall(r'<path[^>]* d="(M[^"]+)"|<path d="(M[^"]+)"', drawn_without_a_script)
    drawn = (
        page.locator("figure.chart")
        .first.locator("path")
        .evaluate_all("all => all.map(each => each.getAttribute('d'))")
    )
    assert [one or other for one, other in paths] == [path for path in drawn if path]


@pytest.mark.extended
def test_zooming_shows_the_window_at_its_best_and_zooming_out_all_of_it(open_page):
    page = open_page(page_of(sample_report(window=10_000)))
    near = pictures(page)
    assert page.is_checked("#near")
    label = page.locator(".window-label").first
    assert float(label.get_attribute("y").rstrip("%")) < 30
    page.uncheck("#near")
    assert float(label.get_attribute("y").rstrip("%")) > 60
    page.check("#near")
    assert pictures(page) == near
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.extended
def test_pointing_at_a_picture_shows_the_figures_of_that_call_in_every_picture(open_page):
    page = open_page()
    assert all(told.startswith("Peak, call") for told in page.locator(".at").all_text_contents())
    page.locator(".frame").first.scroll_into_view_if_needed()
    box = page.locator(".plot").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 100)
    told = page.locator(".at").all_text_contents()
    assert len({each.partition(":")[0] for each in told}) == 1
    assert told[0].startswith("Call ")
    page.mouse.move(5, 5)
    assert all(told.startswith("Peak, call") for told in page.locator(".at").all_text_contents())


@pytest.mark.extended
def test_a_tap_near_a_mark_tells_what_happened(open_page):
    report = sample_report(recordings=1)
    under = report["recordings"][0]["under"][1]
    under["events"] = [{"request": 20, "kind": "offload", "what": "the result of ls", "tokens": 4_000}]
    page = open_page(page_of(report), width=360, has_touch=True, is_mobile=True)
    mark = page.locator("figure.chart").nth(1).locator(".lane path")
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2 + 9, box["y"] + 60)
    assert page.locator(".event").nth(1).text_content() == "offload: the result of ls, 4,000 tokens less"
    assert mark.locator("title").text_content() == "offload: the result of ls, 4,000 tokens less"


@pytest.mark.extended
def test_the_keyboard_walks_from_call_to_call_and_from_mark_to_mark(open_page):
    page = open_page()
    frame, at, event = (page.locator("figure.chart").nth(1).locator(each) for each in (".frame", ".at", ".event"))
    frame.focus()
    page.keyboard.press("Home")
    assert at.text_content().startswith("Call 1:")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert at.text_content().startswith("Call 12:")
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    assert "tokens less" in event.text_content()
    assert event.text_content() in frame.get_attribute("aria-valuetext")
    page.keyboard.press("End")
    assert frame.get_attribute("aria-valuenow") == frame.get_attribute("aria-valuemax")
    page.keyboard.press("Escape")
    assert at.text_content().startswith("Peak, call")


@pytest.mark.extended
def test_everything_that_does_something_is_reached_with_the_tab_key(open_page):
    page = open_page()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
            )
        )
    assert {"theme", "recording", "frame", "scroll", "SUMMARY"} <= reached


@pytest.mark.extended
def test_without_a_script_the_pictures_and_the_tables_are_there(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("figure.chart .areas path").count() == len(POLICIES) * 6
    assert page.locator("figure.chart .plot").first.bounding_box()["height"] > 150
    assert page.locator("#still").is_visible()
    assert not page.locator("#recording").is_visible()
    assert not page.locator("#theme").is_visible()
    page.locator(".compare summary").first.click()
    assert page.locator(".compare details p").first.is_visible()


@pytest.mark.extended
@pytest.mark.parametrize("report", ODD.values(), ids=ODD.keys())
def test_odd_reports_open_without_complaint(open_page, report):
    page = open_page(page_of(report), width=360)
    assert page.locator("h1").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
