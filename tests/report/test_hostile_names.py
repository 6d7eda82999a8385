"""Names from data do not become markup, in any form of a report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from browsing import opened
from holdfast.columns import Cell
from holdfast.experiment import Store, Study, run
from holdfast.experiment.results import Results
from holdfast.modalities.shown import Shown, Stretch
from holdfast.report.page import as_markdown, write_page
from holdfast.table import Table, markdown_text
from holdfast.templates import template_file, templates
from studies import small_study, toy_study

SCRIPT = "</style></script><script>window.hacked=1;alert(1)</script><img src=x onerror=window.hacked=1>"
CONTROL = "\x1b[31mred\x07 gpj\u202e.exe &amp; {{7*7}}"
LONG = "x" * 300
HOSTILE = "\"'><img src=x onerror=alert(1)>|`x`\n\n# [a](javascript:b) $y$ {{7*7}}"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    study = replace(toy_study({HOSTILE: hf.Grad(), "LOO": hf.LeaveOneOut()}), title=HOSTILE, about={HOSTILE: HOSTILE})
    with Store.open(tmp_path / "results.db") as store:
        run(study, store)
    results = Results(tmp_path / "results.db")
    tables = write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "49}}" not in page
    assert "&lt;img src=x" in page
    markdown = as_markdown(results, tables)
    assert not re.search(r"(?<!\\)(<img|`x|\[a)", markdown)
    assert "\n# [" not in markdown


@pytest.mark.slow
def test_hostile_words_everywhere_are_text_in_a_browser(browser: Any, tmp_path: Path) -> None:
    """In names of the experiment, methods, criteria, examples and classes, beside control characters."""
    study = _hostile_study()
    with Store.open(tmp_path / "results.db") as store:
        assert run(study, store).missing == 0
    write_page(Results(tmp_path / "results.db"), tmp_path / "report.html")
    for width in (1200, 390):
        tab, said = opened(browser, tmp_path / "report.html", viewport={"width": width, "height": 900})
        assert said == [], "no script ran, no dialog opened, nothing was asked for"
        assert tab.evaluate("window.hacked") is None
        assert tab.evaluate("document.querySelectorAll('img[src=x], script').length") == 1, "its own script alone"
        assert tab.evaluate("[...document.images].filter((one) => one.naturalWidth === 0).length") == 0
        words = tab.evaluate("document.body.innerText")
        assert f"{SCRIPT} (2)" in words, "a method"
        assert words.count(SCRIPT) > 20
        assert r"\x1b[31mred\x07" in words, "control characters are named"
        assert r"gpj\u202e.exe" in words, "what turns text round is named"
        assert not {"\x1b", "\x07", "\u202e"} & set((tmp_path / "report.html").read_text(encoding="utf-8"))
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, "long names break"
        tab.close()


def _hostile_study() -> Study:
    base = small_study(limit=2)
    methods = tuple(
        replace(method, name=f"{SCRIPT} ({place})", of=f"{SCRIPT} (0)" if method.of else "", why=HOSTILE, judged=None)
        for place, method in enumerate(base.methods)
    )
    measures = tuple(replace(measure, name=f"{CONTROL} {measure.name}") for measure in base.measures)
    model = hf.TorchModel(hf.data.mnist_cnn().module, (0, 1), classes=[f"{SCRIPT} {n}" for n in range(10)])
    cases = model.ask(base.cases.x, features=base.cases.features)
    return replace(
        base,
        cases=cases,
        title=f"{SCRIPT} {CONTROL} {LONG}",
        methods=methods,
        measures=measures,
        main=methods[2].name,
        examples=(f"{SCRIPT} {LONG}", f"{CONTROL} 2"),
        analyses=(),
        about={CONTROL: SCRIPT},
    )


def test_words_that_are_explained_are_text(tmp_path: Path) -> None:
    """In the words of a text, the names and values of columns, and the sentences about them."""
    environment = templates()
    stretches = (Stretch(f"{SCRIPT} "), Stretch(CONTROL, 0, SCRIPT))
    cells = (Cell(SCRIPT, 1, CONTROL, CONTROL, SCRIPT, SCRIPT, 1.0, CONTROL), Cell(CONTROL, 2, SCRIPT, SCRIPT))
    one = Shown(SCRIPT, ((CONTROL, SCRIPT),), stretches=stretches, cells=cells, top=1)
    shown = {"name": SCRIPT, "label": CONTROL, "explanations": [one]}
    for name in ("text.html", "row.html"):
        page = environment.from_string(
            f"{{% from '{name}' import example, picture with context %}}{{{{ example(shown) }}}}"
        )
        markup = page.render(shown=shown, modality={"name": "x"})
        assert "<script" not in markup
        assert "&lt;script&gt;" in markup
        assert r"\x1b[31mred\x07" in markup
        assert not {"\x1b", "\x07", "\u202e"} & set(markup)


@pytest.mark.parametrize("name", ["page.html", "explanation.html"])
def test_every_page_has_a_content_security_policy(name: str) -> None:
    assert "Content-Security-Policy\" content=\"default-src 'none'" in template_file(name)


def test_markdown_and_latex_escape_every_special_sign() -> None:
    signs = "\\`*_[]<>|~"
    assert markdown_text(signs) == "".join("\\" + sign for sign in signs)
    assert markdown_text("a\nb & c &lt;") == r"a b & c \&lt;"
    assert [markdown_text(text) for text in ("# a", "- a", "1. a", "-3", "a # 1.")] == [
        *(r"\# a", r"\- a", r"1\. a", "-3", "a # 1.")
    ]
    assert markdown_text("$x$ \x1b[31m\u202e") == r"\$x\$ \[31m"
    latex = Table("key", "t", ("a\n\nb_", "[x"), (("[1em]", "{}&%$#_~^\\<>|*"),)).latex()
    assert "\n\n" not in latex
    assert r"a b\_ & {[}x" in latex
    assert r"{[}1em] & \{\}\&\%\$\#\_" in latex
