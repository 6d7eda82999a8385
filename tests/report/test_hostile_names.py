"""Names from data do not become markup, in any form of a report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.experiment import Store, run
from holdfast.experiment.results import Results
from holdfast.report.page import as_markdown, write_page
from holdfast.table import Table, markdown_text
from holdfast.templates import template_file
from studies import toy_study

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
