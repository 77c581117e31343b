"""The page in headless Chromium: every view and control, both themes, the keyboard, and an accessibility checker."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import uvicorn

from magnetite.explorer.judge import SHIPPED
from magnetite.explorer.server import Explorer, free_socket

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

RESULTS = Path(__file__).parents[2] / "results"
NEWER = "() => document.documentElement.dataset.encoded > {}"


@contextmanager
def served(workers: int) -> Iterator[str]:
    listening = free_socket("127.0.0.1", 0)
    config = uvicorn.Config(Explorer(workers=workers, results=RESULTS).application(), log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(params=["light"])
def page(request, browser, address) -> Iterator[Any]:
    """A page; every error in its console, and every request to another host, fails the test."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme=request.param, reduced_motion="reduce"
    )
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    opened.on(
        "request", lambda sent: None if sent.url.startswith((address, "data:", "blob:")) else problems.append(sent.url)
    )
    opened.address, opened.problems = address, problems
    yield opened
    context.close()
    assert not problems


def go(page, state: str, view: str) -> None:
    page.goto(f"{page.address}#view={view}&{state}")
    page.reload()
    page.wait_for_selector(f"html[data-ready={view}]", timeout=30_000)


def picture(page, name: str) -> None:
    """Write a screenshot for the documentation, if asked."""
    folder = os.environ.get("MAGNETITE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.wait_for_timeout(400)
        page.screenshot(path=Path(folder) / f"explore-{name}.png")


def encoded(page) -> int:
    return int(page.evaluate("document.documentElement.dataset.encoded ?? 0"))


def changed(page, act) -> None:
    """Do something and wait until the graph has been encoded anew."""
    before = encoded(page)
    act()
    page.wait_for_function(NEWER.format(before), timeout=30_000)


def slide(page, selector: str, value: float) -> None:
    page.eval_on_selector(
        selector, "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }", str(value)
    )


def serious(page) -> list[str]:
    """What axe finds that is serious or critical."""
    import axe_playwright_python

    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['html'][:150]} {node.get('failureSummary', '')[:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_graph_view(page, tmp_path):
    go(page, "", "graph")
    picture(page, "graph")
    assert "24 nodes, 59 edges" in page.inner_text("#graph-status")
    changed(page, lambda: page.select_option("#example", "balanced binary tree"))
    changed(page, lambda: slide(page, "#example-nodes", 31))
    changed(page, lambda: slide(page, "#q", 0.8))
    slide(page, "#j", 2)
    assert page.inner_text("#vector-name") == "2"
    changed(page, lambda: page.check("#normalised"))
    changed(page, lambda: page.click("[data-potential=adaptive]"))
    changed(page, lambda: page.click("[data-potential=absolute]"))
    changed(page, lambda: page.click("#spectrum svg", position={"x": 150, "y": 60}))
    assert page.input_value("#q") != "0"
    for kind in ("circle", "line", "drawn"):
        page.click(f"[data-layout={kind}]")
    page.click("[data-layout=circle]")
    page.select_option("#start", "0")
    page.wait_for_selector("#walks .bar")
    page.check("#show-walks")
    page.uncheck("#show-walks")
    assert "magnetic" in page.inner_text("#advice")
    for selector, name in (("#download", "encoding.npz"), ("#picture", "graph.png"), ("#download-graph", "graph.json")):
        with page.expect_download() as download:
            page.click(selector)
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "graph.json").read_text())["nodes"]) == 31

    link = page.evaluate("location.href")
    page.click("summary:has-text('All nodes')")
    page.wait_for_selector("#node-table td")
    table = page.inner_text("#node-table")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready=graph]")
    assert page.inner_text("#vector-name") == "2"
    page.click("summary:has-text('All nodes')")
    page.wait_for_selector("#node-table td")
    assert page.inner_text("#node-table") == table


def same_numbers(page) -> None:
    """Run the five lines of Python, and compare with the table of the page."""
    lines = page.text_content("#python").splitlines()
    assert len(lines) == 5
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)  # our own lines
    if not page.locator("#node-table").is_visible():
        page.click("summary:has-text('All nodes')")
    page.wait_for_selector("#node-table td")
    rows = [line.split("\t") for line in page.inner_text("#node-table").splitlines()[1:]]
    shown = torch.polar(*(torch.tensor([float(row[i]) for row in rows], dtype=torch.float64) for i in (1, 2)))
    assert np.allclose(shown, scope["vector"], atol=2e-5)
    assert np.allclose(shown.abs(), scope["modulus"], atol=2e-5)


@pytest.mark.parametrize(
    "state",
    ["example=trumpet&n=12&q=0.7&j=3", "example=fully connected DAG&n=40&potential=absolute&q=0.02&normalised=1",
     "example=balanced binary tree&n=20&potential=adaptive&j=2", "from=typed&edges=b a 2.5%0Aa c 0.5%0Ac b 1&j=1",
     "from=drawn&places=0,0;1,0;0,1;1,1&links=0-1,1-2,2-0,0-0&q=0.3"],
)  # fmt: skip
def test_the_lines_of_python_give_the_same_numbers(page, state, tmp_path, monkeypatch):
    go(page, state, "graph")
    monkeypatch.chdir(tmp_path)
    if "graph.json" in page.text_content("#python"):
        with page.expect_download() as download:
            page.click("#download-graph")
        download.value.save_as(tmp_path / "graph.json")
    same_numbers(page)


def test_a_clicked_node_starts_walks_and_the_link_keeps_them(page):
    go(page, "example=sequence&n=5&layout=line", "graph")
    page.wait_for_selector("#walks .bar")
    box = page.locator("#graph-canvas").bounding_box()
    for dy in (-8, -16, 0, 16, 24):  # the middle node of a line is a little above or below the centre
        if page.input_value("#start") == "2":
            break
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + dy)
        page.wait_for_timeout(150)
    assert page.input_value("#start") == "2"
    page.select_option("#feature", label="1 step")
    page.check("#show-walks")
    page.wait_for_function("() => document.querySelector('#walks .bar b').textContent === '3'")
    assert page.inner_text("#size-name") == "probability to land, from 2"
    page.wait_for_function("() => location.hash.includes('sized=1')")
    go(page, page.evaluate("location.hash.slice(1)"), "graph")
    page.wait_for_function("() => document.querySelector('#walks .bar b')?.textContent === '3'")
    assert page.is_checked("#show-walks")
    assert page.input_value("#feature") == "4"


def test_files_typed_and_drawn_graphs(page, tmp_path, monkeypatch):
    go(page, "", "graph")
    page.click("[data-source=file]")
    good, bad = tmp_path / "calls.csv", tmp_path / "bad.graphml"
    good.write_text("source,target\nmain,parse\nmain,run\nrun,parse\n")
    bad.write_text('<!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>')
    changed(page, lambda: page.set_input_files("#file", good))
    assert "calls.csv" in page.inner_text("#graph-status")
    assert 'mt.read("calls.csv")' in page.text_content("#python")
    with monkeypatch.context() as context:
        context.chdir(tmp_path)
        same_numbers(page)
    page.wait_for_function("() => location.hash.includes('main+parse')")  # a link shows the edges elsewhere
    page.set_input_files("#file", bad)
    page.wait_for_selector("#graph-status.bad")
    assert "document type" in page.inner_text("#graph-status")
    page.problems[:] = [problem for problem in page.problems if "422" not in problem]  # Chromium logs the status

    changed(page, lambda: page.click("[data-source=typed]"))
    page.fill("#edges", "a b\nb c\nc a\n")
    changed(page, lambda: page.click("#read-edges"))
    assert "3 nodes, 3 edges" in page.inner_text("#graph-status")

    changed(page, lambda: page.click("[data-source=drawn]"))
    changed(page, lambda: page.click("#graph-canvas", position={"x": 80, "y": 200}))
    assert "5 nodes" in page.inner_text("#graph-status")
    page.select_option("#from", "4")
    page.select_option("#to", "0")
    changed(page, lambda: page.click("#add-edge"))
    assert "5 nodes, 4 edges" in page.inner_text("#graph-status")
    page.select_option("#from", "1")
    changed(page, lambda: page.click("#remove"))
    changed(page, lambda: page.click("#add-node"))
    changed(page, lambda: page.click("#clear"))
    assert "1 node, 0 edges" in page.inner_text("#graph-status")


def test_code_view(page):
    go(page, "", "code")
    page.wait_for_function("() => document.getElementById('dataflow-hash').textContent.includes('hash')")
    before = page.inner_text("#source")
    page.click("#reorder")
    page.wait_for_selector("#dataflow-badge.same", state="attached")
    assert page.inner_text("#sequential-badge") == "changed"
    assert page.input_value("#source") != before
    page.wait_for_function("() => document.querySelector('#names').textContent.length > 10")
    assert "→" in page.inner_text("#sequential-hash")
    assert page.inner_text("#dataflow-hash").endswith("as before")
    picture(page, "code")
    page.click("#undo")
    page.wait_for_function("() => document.getElementById('undo').disabled")
    assert page.input_value("#source").startswith("def f1_score")
    page.click("#rename")
    page.wait_for_selector("#dataflow-badge.changed", state="attached")
    page.fill("#source", "def f(:")
    page.click("#build")
    page.wait_for_selector("#code-status.bad")
    assert "line 1" in page.inner_text("#code-status")
    page.problems[:] = [problem for problem in page.problems if "422" not in problem]


def test_a_file_of_several_functions_has_a_choice(page):
    go(page, "", "code")
    page.fill("#source", "def one(a):\n    return a\n\ndef two(b):\n    c = b + 1\n    return c\n")
    page.click("#build")
    page.wait_for_function("() => document.getElementById('code-status').textContent.startsWith('one')")
    page.select_option("#function", "two")
    page.wait_for_function("() => document.getElementById('code-status').textContent.startsWith('two')")
    page.wait_for_function("() => location.hash.includes('function=two')")
    page.fill("#source", "def three(d):\n    return d\n")
    page.click("#build")
    page.wait_for_function("() => document.getElementById('code-status').textContent.startsWith('three')")
    page.problems[:] = [problem for problem in page.problems if "422" not in problem]


def test_names_stand_beside_those_before_the_rewrite(page, shipped_namer, monkeypatch):
    with served(workers=0) as own:
        monkeypatch.setattr(page, "address", own)
        go(page, "", "code")
        page.wait_for_function("() => document.querySelectorAll('#names .bar').length === 5")
        first = page.locator("#names .bar b").all_inner_texts()
        page.click("#reorder")
        page.wait_for_selector("#names table.compared")
        cells = page.locator("#names .name").all_inner_texts()
        assert cells[0::2] == cells[1::2] == first  # the data-flow graph is the same
        assert "same names" in page.inner_text("#names")
        page.goto("about:blank")
    page.problems.clear()  # requests of another port than the one of the fixture


def test_sorting_view(page):
    go(page, "", "sorting")
    page.wait_for_selector("#correct.good")
    page.wait_for_function("() => document.getElementById('about-model').textContent.length > 20")
    page.click("#drop-last")
    page.wait_for_selector("#correct.bad")
    assert page.locator("#failing .bits").count() == 2
    if SHIPPED.is_dir():
        page.wait_for_selector("#verdict.good, #verdict.bad")
        page.wait_for_function("() => document.getElementById('agreement').textContent.length > 3")
        right = page.inner_text("#verdict") == page.inner_text("#correct")
        assert page.inner_text("#agreement") == ("right" if right else "wrong")
        assert page.locator(".accuracy tbody tr").count() >= 5
    picture(page, "sorting")
    page.select_option("#low", "3")
    page.select_option("#high", "4")
    page.click("#add-comparator")
    page.wait_for_selector("#correct.good")
    for name in ("batcher", "bitonic", "optimal"):
        page.click(f"[data-known={name}]")
        page.wait_for_selector("#correct.good")
    page.click("#generate-wrong")
    page.wait_for_selector("#correct.bad")
    page.click("#generate")
    page.wait_for_selector("#correct.good")
    slide(page, "#wires", 4)
    page.click("#empty")
    page.wait_for_selector("#correct.bad")
    for pair in ((0, 2), (1, 3), (0, 1), (2, 3), (1, 2)):
        for wire in pair:
            page.locator(f"#network [data-wire='{wire}']").dispatch_event("click")
        page.wait_for_function(f"() => document.getElementById('comparators').value.endsWith('{pair[0]}-{pair[1]}')")
        page.wait_for_timeout(60)
    page.wait_for_selector("#correct.good")
    page.fill("#comparators", "0-1 nonsense")
    page.press("#comparators", "Tab")
    page.wait_for_selector("#sorting-status.bad")


def test_results_view(page):
    go(page, "", "results")
    count = page.locator("#results-list button").count()
    assert count > 10
    page.fill("#filter", "sorting")
    assert 0 < page.locator("#results-list button").count() < count
    page.fill("#filter", "no such result")
    assert page.locator("#results-list button").count() == 0
    assert "No result has these words" in page.inner_text("#results-list")
    page.fill("#filter", "sorting")
    page.click("[data-kind=figure]")
    page.click("#results-list button >> nth=0")
    page.wait_for_selector("#result img")
    page.wait_for_function("() => document.querySelector('#result img').naturalWidth > 0")
    assert "python -m paper" in page.inner_text("#result code")
    picture(page, "results")


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_themes_and_accessibility(page):
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for view in ("graph", "code", "sorting", "results"):
        go(page, "example=fully connected DAG&n=12&q=1" if view == "graph" else "", view)
        page.wait_for_timeout(300)
        assert serious(page) == []
        if dark:
            picture(page, f"{view}-dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.click("#theme")
    page.click("#theme")
    page.click("#theme") if not dark else None
    page.evaluate("document.documentElement.dataset.theme")
    shades = set()
    for _ in range(3):
        page.click("#theme")
        shades.add(page.evaluate(ground))
    assert before in shades
    assert len(shades) == 2


CONTROLS = {
    "graph": {"theme", "code", "results", "example", "q", "j", "normalised", "download", "start", "feature"},
    "code": {"source", "build", "reorder", "rename"},
    "sorting": {"wires", "generate", "generate-wrong", "low", "high", "add-comparator", "drop-last", "comparators"},
    "results": {"filter", "results", "share"},
}
"""Controls that the Tab key must reach, by view."""


@pytest.mark.parametrize("view", CONTROLS)
def test_the_tab_key_reaches_every_control(page, view):
    go(page, "", view)
    reached, names = set(), "document.activeElement.id || document.activeElement.dataset.view || ''"
    for _ in range(60 if view == "graph" else 30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(names))
    assert CONTROLS[view] <= reached
    unnamed = "[...document.querySelectorAll(`#view-${v} :is(button, select, input, textarea)`)]"
    named = "e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim()"
    assert page.evaluate(f"(v) => {unnamed}.filter((e) => !({named})).map((e) => e.outerHTML)", view) == []


def test_the_keyboard_alone_is_enough(page):
    go(page, "", "graph")
    page.focus("#q")
    changed(page, lambda: page.keyboard.press("ArrowLeft"))
    assert page.input_value("#q") == "0.99"
    page.focus("[data-view=sorting]")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready=sorting]")
    page.focus("#drop-last")
    page.keyboard.press("Enter")
    page.wait_for_selector("#correct.bad")


def test_nothing_jumps_while_a_network_changes(page):
    go(page, "", "sorting")
    ids = ["correct", "verdict", "facts", "network"]
    boxes = f"{ids}.map((id) => document.getElementById(id).getBoundingClientRect().y)"
    page.wait_for_function("() => document.getElementById('about-model').textContent.length > 20")
    before = page.evaluate(boxes)
    page.click("#drop-last")
    page.wait_for_selector("#correct.bad")
    page.wait_for_timeout(200)
    assert page.evaluate(boxes) == before


def test_nothing_jumps_while_a_slider_moves(page):
    go(page, "", "graph")
    ids = ["q", "plane", "spectrum", "matrix", "advice"]
    boxes = f"{ids}.map(id => JSON.stringify(document.getElementById(id).getBoundingClientRect()))"
    page.wait_for_selector("#spectrum svg")
    page.wait_for_selector("#advice strong")
    before = page.evaluate(boxes)
    for q in (0, 0.3, 0.9):
        changed(page, lambda q=q: slide(page, "#q", q))
    slide(page, "#j", 5)
    assert page.evaluate(boxes) == before
