"""Pages in a browser: whatever a page says or asks for is noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def opened(browser: Any, page: Path, **settings: Any) -> tuple[Any, list[str]]:
    """Open a page, and return its tab and a list of messages, errors, dialogs and requests, which should stay empty."""
    tab = browser.new_page(**settings)
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", _dismiss(said))
    tab.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else said.append(asked.url))
    tab.goto(page.as_uri())
    return tab, said


def _dismiss(said: list[str]) -> Any:
    def close(dialog: Any) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    return close
