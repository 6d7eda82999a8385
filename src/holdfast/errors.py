"""The one error class, the one warning class, and the sentences they are made of."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_LONGEST = 300  # letters of another library's message, which may quote a whole file


class HoldfastError(ValueError):
    """Bad input or an impossible request. The message is one sentence: what was expected, what came, what to do.

    Line ends and control characters, which names in files may contain, are shown as escapes.
    """

    def __init__(self, message: str):
        printable = message if message.isprintable() else "".join(map(_printable, message))
        super().__init__(printable)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


class UnreadableError(HoldfastError):
    """A classifier is of a kind that is not read. It can be asked as a function."""


class HoldfastWarning(UserWarning):
    """The computation continues, but its result needs careful interpretation."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, ready to end a sentence.

    A line that ends in a colon is only a heading, so the line after it is added.

    Args:
        error: The error of another library.

    Returns:
        One line without trailing punctuation, followed by a full stop. The error's type if it has no message. A long
        line is cut.
    """
    text = str(getattr(error, "strerror", None) or error)  # an OSError repeats the path and a number
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    line = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
    line = "".join(letter if letter.isprintable() else "?" for letter in line[:_LONGEST])
    return line.rstrip(".:") + "."


def unknown_name(kind: str, name: str, known: Sequence[str], *, most: int = 40) -> HoldfastError:
    """Describe a name that is not known, with the nearest known one.

    Args:
        kind: What was named, such as ``"explainer"``.
        name: The name that was given.
        known: All names that would have been accepted.
        most: List all known names if there are at most this many.

    Returns:
        The error to raise.
    """
    by_lower = {one.lower(): one for one in known}
    near = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]
    near += [one for one in known if name and name.lower() in one.lower() and one not in near][: 5 - len(near)]
    listed = ", ".join(known) if 0 < len(known) <= most else ""
    text = f"there is no {kind} {name!r}"
    if near and listed:
        return HoldfastError(f"{text}: did you mean {' or '.join(near)}? (Known: {listed}.)")
    if near:
        return HoldfastError(f"{text}: did you mean {' or '.join(near)}?")
    return HoldfastError(f"{text}: use one of {listed}." if listed else f"{text}.")
