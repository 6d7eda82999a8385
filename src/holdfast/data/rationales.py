"""Movie reviews in which people marked what decides: ERASER (DeYoung et al. 2020; Zaidan & Eisner 2008)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from holdfast.data.texts import Texts
from holdfast.errors import HoldfastError
from holdfast.text import split as words_of

SENTIMENTS = ("negative", "positive")
_MOST_MARKED = 0.5  # of a passage's words: where people mark more, any word is right


@dataclass(frozen=True)
class _Review:
    """Lines of tokens, and which tokens of the whole review people marked."""

    name: str
    label: int
    lines: tuple[tuple[str, ...], ...]
    marked: frozenset[int]


def movie_reviews(root: str | Path, split: Literal["train", "val"] = "val") -> Texts:
    """Whole reviews of a folder or .zip archive of ERASER's movies; the training ones without those of ``val``."""
    reviews = list(_reviews(Path(root), split))
    if split == "train":
        held_out = {review.name for review in _reviews(Path(root), "val")}
        reviews = [review for review in reviews if review.name not in held_out]
    texts = tuple("\n".join(" ".join(line) for line in review.lines) for review in reviews)
    return Texts(texts, torch.tensor([one.label for one in reviews]), SENTIMENTS, tuple(one.name for one in reviews))


def movie_passages(root: str | Path, most: int = 40) -> tuple[Texts, list[frozenset[int]]]:
    """A passage of every review of ``val``, and the numbers of its words that people marked.

    The line of the first mark that fits, and lines after and before it in turn while there is room for ``most`` words.
    Passages of which people marked more than half are left out.
    """
    texts, labels, names, marks = [], [], [], []
    for review in _reviews(Path(root), "val"):
        found = _passage(review, most)
        if found is not None:
            texts.append(found[0])
            marks.append(found[1])
            labels.append(review.label)
            names.append(review.name)
    return Texts(tuple(texts), torch.tensor(labels), SENTIMENTS, tuple(names)), marks


def _passage(review: _Review, most: int) -> tuple[str, frozenset[int]] | None:
    starts = [0]
    for line in review.lines:
        starts.append(starts[-1] + len(line))
    sizes = [len(words_of(" ".join(line))) for line in review.lines]
    for middle, size in enumerate(sizes):
        if size > most or not any(starts[middle] <= token < starts[middle + 1] for token in review.marked):
            continue
        first, last, room = middle, middle + 1, most - size
        while True:
            if last < len(sizes) and sizes[last] <= room:
                room, last = room - sizes[last], last + 1
            elif first > 0 and sizes[first - 1] <= room:
                room, first = room - sizes[first - 1], first - 1
            else:
                break
        text, marked = _joined(review, starts, first, last)
        if marked and len(marked) <= _MOST_MARKED * len(words_of(text)):
            return text, marked
    return None


def _joined(review: _Review, starts: list[int], first: int, last: int) -> tuple[str, frozenset[int]]:
    """The lines as one text, and which of its words are marked."""
    text, spans = "", []
    for number in range(first, last):
        for place, token in enumerate(review.lines[number]):
            text += " " if text else ""
            if starts[number] + place in review.marked:
                spans.append((len(text), len(text) + len(token)))
            text += token
    inside = (
        number
        for number, word in enumerate(words_of(text))
        if any(word.start < end and start < word.end for start, end in spans)
    )
    return text, frozenset(inside)


def _reviews(root: Path, split: str) -> Iterator[_Review]:
    try:
        entries = [json.loads(line) for line in _read(root, f"{split}.jsonl").splitlines() if line.strip()]
        for entry in entries:
            name = str(entry["annotation_id"])
            lines = tuple(tuple(line.split()) for line in _read(root, f"docs/{name}").splitlines())
            yield _Review(name, ("NEG", "POS").index(entry["classification"]), lines, frozenset(_marked(entry)))
    except (KeyError, ValueError, TypeError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise HoldfastError(f"{root} does not hold ERASER's movies: {error}.") from error


def _marked(entry: dict[str, Any]) -> Iterator[int]:
    for group in entry["evidences"]:
        for span in group:
            yield from range(int(span["start_token"]), int(span["end_token"]))


def _read(root: Path, name: str) -> str:
    """A file of a folder, or of an archive whatever folder it has around it."""
    try:
        if root.is_dir():
            return (root / name).read_text(encoding="utf-8")
        with zipfile.ZipFile(root) as archive:
            inside = next((one for one in archive.namelist() if one == name or one.endswith(f"/{name}")), None)
            if inside is None:
                raise HoldfastError(f"{root} has no {name}: it should hold ERASER's movies.")
            return archive.read(inside).decode("utf-8")
    except OSError as error:
        raise HoldfastError(f"cannot read ERASER's movies from {root}: {error}.") from error
