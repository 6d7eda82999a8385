"""The page in a browser, on a screen and on a phone: what comes first, and that nothing covers anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browsing import opened

pytestmark = pytest.mark.slow
SIZES = [{"width": 1200, "height": 900}, {"width": 390, "height": 844}]
TOUCH = 1.0  # pixels by which boxes may overlap, as they are rounded

# Captions against everything else that is visible and neither around nor inside them.
COVERED = """(touch) => {
  const box = (one) => one.getBoundingClientRect();
  const kinds = "figcaption, img, svg.key, h1, h2, h3, h4, p, table, dt, dd, nav a, summary";
  const all = [...document.querySelectorAll(kinds)]
    .filter((one) => box(one).width > 0 && box(one).height > 0);
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > touch
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > touch;
  const wrong = [];
  for (const one of document.querySelectorAll("figcaption"))
    for (const other of all)
      if (!one.contains(other) && !other.contains(one) && over(box(one), box(other)))
        wrong.push(`${one.textContent.trim()} covers ${other.tagName} ${other.textContent.trim() || other.alt}`);
  return wrong;
}"""

# Words that stand outside the box that they belong to.
OUTSIDE = """(touch) => {
  const wrong = [];
  for (const one of document.querySelectorAll("figcaption, thead th, tbody th, td, dt, dd, .row li")) {
    const box = one.getBoundingClientRect();
    if (!box.width) continue;
    const range = document.createRange();
    range.selectNodeContents(one);
    for (const part of range.getClientRects())
      if (part.left < box.left - touch || part.right > box.right + touch || part.bottom > box.bottom + touch) {
        wrong.push(`${one.tagName} ${one.textContent.trim()}`);
        break;
      }
  }
  return wrong;
}"""

# Words inside one drawing that cover each other.
CROSSED = """(touch) => {
  const words = [...document.querySelectorAll("svg text")].filter((one) => one.textContent.trim());
  const wrong = [];
  words.forEach((one, place) => words.slice(place + 1).forEach((other) => {
    const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > touch && high > touch + 3) wrong.push(`${one.textContent} and ${other.textContent}`);
  }));
  return wrong;
}"""


@pytest.fixture(params=SIZES, ids=lambda size: str(size["width"]))
def tab(request: pytest.FixtureRequest, browser: Any, page: Path) -> Any:
    opened_tab, said = opened(browser, page, viewport=request.param)
    yield opened_tab
    assert said == []
    opened_tab.close()


def test_the_first_picture_is_on_the_first_screen(tab: Any) -> None:
    first = tab.locator("img").first.bounding_box()
    assert first["y"] + first["height"] <= tab.viewport_size["height"]
    assert tab.locator(".verdict").bounding_box()["y"] < first["y"], "below the verdict"


def test_cards_show_an_input_and_two_explanations_with_their_radii(tab: Any) -> None:
    cards = tab.locator("#examples .one")
    assert cards.count() == 2, "the gallery of the small experiment has no more"
    assert tab.locator("#examples h2").inner_text() == "The first 2 examples, explained"
    for card in cards.all():
        captions = [text.strip() for text in card.locator("figcaption").all_inner_texts()]
        assert captions == ["input", *captions[1:]]
        assert captions[2] == "Random", "the baseline"
        assert [row.strip() for row in card.locator("tbody th").all_inner_texts()] == [
            "only these move",
            "these are held",
        ]
        assert "times that of Random" in card.inner_text() or "as large as that of Random" in card.inner_text()
    assert "Radii are lengths in L2: 1 is the change of one pixel" in tab.locator("#examples").inner_text()


def test_captions_cover_nothing_and_words_stay_in_their_boxes(tab: Any) -> None:
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.locator("figcaption").count() > 10
    assert tab.evaluate(COVERED, TOUCH) == []
    assert tab.evaluate(OUTSIDE, TOUCH) == []


def test_the_checks_find_what_is_wrong(tab: Any) -> None:
    tab.add_style_tag(content=".figures figcaption { margin-top: -2rem; } td { max-width: 1rem; }")
    assert tab.evaluate(COVERED, TOUCH) != []
    assert tab.evaluate(OUTSIDE, TOUCH) != []


def test_tables_scroll_inside_their_own_boxes(tab: Any) -> None:
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    width = tab.viewport_size["width"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = tab.evaluate("""[...document.querySelectorAll("table")].map((one) => {
      const box = one.parentElement;
      return [getComputedStyle(box).overflowX, box.getBoundingClientRect().right, box.scrollWidth > box.clientWidth];
    })""")
    assert {overflow for overflow, *_ in boxes} == {"auto"}
    assert max(right for _, right, _ in boxes) <= width
    assert any(wider for *_, wider in boxes), "some tables are wider than the screen"


def test_words_of_figures_do_not_cover_each_other(browser: Any, page: Path) -> None:
    tab, _ = opened(browser, page, viewport=SIZES[0])
    drawings = tab.eval_on_selector_all(".figures img", "(all) => all.map((one) => [one.alt, one.src])")
    assert len(drawings) > 6
    for title, source in drawings:
        blank = browser.new_page()
        blank.goto(source)
        assert blank.locator("text").count() > 5
        assert blank.evaluate(CROSSED, TOUCH) == [], title
        blank.evaluate("document.querySelectorAll('text').forEach((one) => { one.style.fontSize = '60px'; })")
        assert blank.evaluate(CROSSED, TOUCH) != [], "the check finds words that are too large"
        blank.close()
