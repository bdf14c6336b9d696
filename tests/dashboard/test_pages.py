"""Every page in a real Chromium: no error, no foreign request, readable at any width, in light and dark, and live."""

from __future__ import annotations

from urllib.parse import urlparse

import pytest
from dashboard_seed import append
from playwright.sync_api import Browser, Page

PAGES = {
    "/": "Overview",
    "/forecasts?range=all": "Forecasts",
    "/learning?range=all": "Learning",
    "/teams": "Teams",
    "/teams/h100/team-001?range=all": "team-001",
    "/decisions?range=all": "Decisions",
    "/nodes": "Nodes",
    "/violations?range=all": "Violations",
}

pytestmark = pytest.mark.xdist_group("chromium")


def visit(browser: Browser, url: str, *, width: int = 1280, scheme: str = "light") -> tuple[Page, list[str]]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page, faults = context.new_page(), []
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
    page.on(
        "response", lambda answer: faults.append(f"{answer.status}: {answer.url}") if answer.status >= 400 else None
    )

    def foreign(request: object) -> None:
        address = urlparse(request.url)  # type: ignore[attr-defined]
        if address.scheme in ("http", "https") and address.hostname != "127.0.0.1":
            faults.append(f"asks elsewhere: {address.hostname}")

    page.on("request", foreign)
    page.goto(url)
    for chart in page.query_selector_all("[data-figure]"):
        page.wait_for_function(
            "box => box.dataset.drawn || box.querySelector('.loading')?.textContent !== 'loading …'", arg=chart
        )
    return page, faults


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_without_a_fault(served, chromium: Browser, path: str, scheme: str) -> None:
    page, faults = visit(chromium, served.url + path, scheme=scheme)
    assert faults == []
    assert page.locator("h1").first.text_content() == PAGES[path]
    assert page.locator("[data-figure] .badtext").count() == 0
    page.context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_narrow_window_scrolls_tables_and_never_the_page(served, chromium: Browser, path: str) -> None:
    page, faults = visit(chromium, served.url + path, width=390)
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert (too_wide, faults) == (0, [])
    cut = page.evaluate(
        """() => [...document.querySelectorAll("table")].filter(
          t => t.offsetWidth > t.parentElement.clientWidth && getComputedStyle(t.parentElement).overflowX !== "auto"
        ).map(t => t.outerHTML.slice(0, 80))"""
    )
    assert cut == []
    page.context.close()


def test_the_charts_draw_their_lines_with_units(served, chromium: Browser) -> None:
    page, _ = visit(chromium, served.url + "/")
    chart = page.locator("[data-figure]").first
    assert chart.locator(".scatterlayer .trace").count() >= 4
    assert chart.locator(".ytitle").text_content() == "GPUs"
    assert "demand (running + waiting)" in (chart.locator(".legend").text_content() or "")
    page.context.close()


def test_the_overview_says_who_is_starved_and_links_to_why(served, chromium: Browser) -> None:
    page, _ = visit(chromium, served.url + "/")
    answer = page.locator("#answer").text_content() or ""
    assert "1 team is starved" in answer
    assert "team-001 waits for 8 GPUs" in answer
    page.locator("#did a").first.click()
    page.wait_for_url("**/decisions/*")
    assert "the same, bit for bit" in (page.locator("main").text_content() or "")
    assert page.locator(".story li").count() > 3
    page.context.close()


def test_a_new_tick_appears_by_itself(served, chromium: Browser) -> None:
    page, faults = visit(chromium, served.url + "/")
    before = page.locator("#tick-time").text_content()
    path = served.store.path
    assert path is not None
    latest = served.store.latest_tick("seeded")
    assert latest is not None
    append(path, tick=60, teams=3)
    page.wait_for_function(
        "before => document.querySelector('#tick-time').textContent !== before", arg=before, timeout=15_000
    )
    assert faults == []
    page.context.close()


def test_a_zoom_survives_a_new_tick(served, chromium: Browser) -> None:
    page, faults = visit(chromium, served.url + "/")
    chart = "document.getElementById('fleet-1')"
    page.evaluate(f"Plotly.relayout({chart}, {{'yaxis.range': [7, 19]}})")
    before = page.evaluate(f"{chart}.data[0].x.length")
    append(served.store.path, tick=61, teams=3)
    page.wait_for_function(f"before => {chart}.data[0].x.length !== before", arg=before, timeout=15_000)
    assert page.evaluate(f"{chart}.layout.yaxis.range") == [7, 19]
    assert faults == []
    page.context.close()


def test_a_hidden_page_asks_for_nothing(served, chromium: Browser) -> None:
    context = chromium.new_context()
    page, asked = context.new_page(), []
    page.add_init_script("Object.defineProperty(document, 'hidden', {get: () => window.isHidden !== false})")
    page.on("request", lambda request: asked.append(request.url) if "ticks/latest" in request.url else None)
    page.goto(served.url + "/teams")
    page.wait_for_timeout(5000)
    assert asked == []
    page.evaluate("window.isHidden = false")
    page.wait_for_timeout(5000)
    assert asked != []
    context.close()


def test_a_page_that_is_not_there_is_quiet(served, chromium: Browser) -> None:
    page, faults = visit(chromium, served.url + "/nothing-here")
    page.wait_for_timeout(3000)
    assert page.locator("h1").text_content() == "Not found"
    assert [fault for fault in faults if fault.startswith("404")] == [f"404: {served.url}/nothing-here"]
    page.context.close()


def test_a_chart_can_be_read_as_a_table(served, chromium: Browser) -> None:
    page, _ = visit(chromium, served.url + "/teams/h100/team-000?range=all")
    page.locator("[data-numbers=share] summary").click()
    table = page.locator("[data-numbers=share] table")
    table.wait_for()
    assert table.locator("thead th").all_text_contents() == [
        "time",
        "ceiling",
        "floor",
        "share (may hold)",
        "demand",
        "held",
    ]
    assert table.locator("tbody tr").first.locator("td").last.text_content() == "32"
    page.context.close()


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) {
    const e = node.parentElement;
    if (!node.textContent.trim() || e.closest("svg, .sr, script, option") || !e.offsetParent) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(style.color)), light(ground(e))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least) faint.push(`${node.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""
"""Texts whose contrast to their ground is below WCAG 2.2, 1.4.3 (AA): 4.5, or 3 where large."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_text_stands_out_from_its_ground(served, chromium: Browser, path: str, scheme: str) -> None:
    page, _ = visit(chromium, served.url + path, scheme=scheme)
    assert page.evaluate(CONTRAST) == []
    page.context.close()


def test_the_theme_button_switches_and_is_kept(served, chromium: Browser) -> None:
    page, _ = visit(chromium, served.url + "/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = page.evaluate(ground)
    page.reload()
    assert light != dark == page.evaluate(ground)
    page.context.close()


def test_the_keyboard_reaches_content_and_navigation(served, chromium: Browser) -> None:
    page, _ = visit(chromium, served.url + "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    labels = page.evaluate("[...document.querySelectorAll('main, nav, header, footer')].map(e => e.tagName)")
    assert {"MAIN", "NAV", "HEADER", "FOOTER"} <= set(labels)
    page.context.close()


@pytest.mark.parametrize("path", PAGES)
def test_what_can_be_seen_can_also_be_heard(served, chromium: Browser, path: str) -> None:
    """Each picture has a name, each input a label, each table a caption and headers with a scope."""
    page, _ = visit(chromium, served.url + path)
    nameless = page.evaluate(
        """() => [
          ...[...document.querySelectorAll('[role=img]')].filter(
            e => !e.getAttribute('aria-label')
              && !document.getElementById(e.getAttribute('aria-labelledby'))?.textContent),
          ...[...document.querySelectorAll('select, input:not([type=hidden])')].filter(e => !e.closest('label')),
          ...[...document.querySelectorAll('table')].filter(e => !e.caption),
          ...[...document.querySelectorAll('table th')].filter(e => !e.scope),
          ...[...document.querySelectorAll('img')].filter(e => !e.hasAttribute('alt')),
        ].map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    page.context.close()


def test_two_hundred_teams_can_be_filtered_and_sorted(crowded, chromium: Browser) -> None:
    page, faults = visit(chromium, crowded.url + "/teams")
    rows = page.locator("#all-teams tbody tr:visible")
    assert rows.count() == 200
    page.get_by_role("button", name="held").click()
    assert (rows.first.locator("th").text_content() or "").strip() == "team-000"
    page.get_by_label("filter").fill("team-19")
    assert rows.count() == 10
    assert faults == []
    page.context.close()


def test_an_empty_store_says_what_to_do(empty, chromium: Browser) -> None:
    for path in ("/", "/forecasts", "/learning", "/teams", "/decisions", "/nodes"):
        page, faults = visit(chromium, empty.url + path)
        assert "Nothing recorded yet" in (page.locator("main").text_content() or "")
        assert faults == []
        page.context.close()
