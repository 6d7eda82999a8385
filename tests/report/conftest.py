from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.experiment.results import Results
from holdfast.report.page import write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def page(small_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the small experiment."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(Results(small_results), path)
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
    if CHROMIUM is None:
        pytest.skip("the page's tests need a browser: install Debian's chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield found
        found.close()
