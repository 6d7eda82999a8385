"""Sentences for readers: counts with their nouns, lists of names, and characters that cannot be shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")  # categories of control, format and unassigned characters and surrogates
_KEPT = "\n\t\u200c\u200d\ufe0f"  # line ends, and what joins letters of some scripts and parts of emoji


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "example"), counted(1200, "example"), counted(2, "category", "categories")
    ('1 example', '1,200 examples', '2 categories')

    Args:
        count: How many there are.
        noun: The noun for one.
        nouns: The noun for several; empty: ``noun`` with an s.
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words joined by commas, and by ``last`` before the last one; those with a comma of their own are quoted.

    >>> listed(["a"]), listed(["a", "b"], "or"), listed(["a", "b", "c, d"])
    ('a', 'a or b', 'a, b and “c, d”')
    """
    if len(words) > 1:
        words = [f"“{word}”" if "," in word else word for word in words]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def brief(text: str, most: int = 60) -> str:
    """Return a text in one line of at most so many letters, with escapes in place of what is not shown.

    >>> brief("IntegratedGradients(steps=10)", most=24)
    'IntegratedGradients(ste…'

    Args:
        text: Any text, such as the settings of a method.
        most: The most letters.
    """
    line = visible(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def capital(words: str) -> str:
    """Return words with a capital first letter."""
    return words[:1].upper() + words[1:]


def visible(text: str) -> str:
    """Return text with escapes in place of characters that are not shown, or that change the order of others.

    >>> print(visible("a\\x1b[31m b\\u202ec"))
    a\\x1b[31m b\\u202ec

    Args:
        text: Any text, such as a name from data. Line ends stay.
    """
    if text.isprintable():
        return text
    hidden = (letter not in _KEPT and unicodedata.category(letter) in _HIDDEN for letter in text)
    return "".join(
        letter.encode("unicode_escape").decode() if hide else letter for letter, hide in zip(text, hidden, strict=True)
    )
