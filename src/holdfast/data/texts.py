"""Labelled texts, and where the known sets of them are read from."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from holdfast.data.archive import files_of
from holdfast.errors import HoldfastError, first_line
from holdfast.text import split as words_of

Split = Literal["train", "test"]

TOPICS = {
    "comp.graphics": "graphics",
    "misc.forsale": "for sale",
    "rec.autos": "cars",
    "rec.sport.hockey": "hockey",
    "sci.crypt": "cryptography",
    "sci.electronics": "electronics",
    "sci.med": "medicine",
    "sci.space": "space",
    "soc.religion.christian": "Christianity",
    "talk.politics.mideast": "Middle East",
}
"""Ten of the twenty newsgroups, and what they are about."""
YAHOO = (
    "Society & Culture",
    "Science & Mathematics",
    "Health",
    "Education & Reference",
    "Computers & Internet",
    "Sports",
    "Business & Finance",
    "Entertainment & Music",
    "Family & Relationships",
    "Politics & Government",
)
"""The topics of Yahoo! Answers (Zhang et al. 2015), in the order of their numbers."""
_QUOTED = re.compile(r"^\s*(?:[>|:]|\w{1,4}>)|writes in|writes:|wrote:|says:|said:|^In article|^Quoted from")


_TABLES = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".json": "json"}


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts with their classes ``y [N]`` by number, what the classes are called, and what the texts are."""

    texts: tuple[str, ...]
    y: Tensor
    classes: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def some(self, which: Sequence[int]) -> Texts:
        """Some of them, in this order."""
        texts, names = (tuple(of[number] for number in which) for of in (self.texts, self.names))
        return Texts(texts, self.y[list(which)], self.classes, names)

    def first(self, count: int) -> Texts:
        """The first so many, or all."""
        return self.some(range(min(count, len(self))))

    def in_turn(self) -> Texts:
        """The first of every class, then the second of every class, …"""
        seen: Counter[int] = Counter()
        place = []
        for number, label in enumerate(self.y.tolist()):
            place.append((seen[label], label, number))
            seen[label] += 1
        return self.some([number for _, _, number in sorted(place)])

    def cut(self, least: int, most: int) -> Texts:
        """Each up to its word number ``most``; those of fewer than ``least`` words are left out."""
        words = [words_of(text) for text in self.texts]
        kept = [number for number, of in enumerate(words) if len(of) >= least]
        ends = [len(self.texts[n]) if len(words[n]) <= most else words[n][most - 1].end for n in kept]
        return replace(self.some(kept), texts=tuple(self.texts[n][:end] for n, end in zip(kept, ends, strict=True)))


def read_texts(source: str, most: int | None = None) -> Texts:
    """Test texts: "newsgroups" or "yahoo-answers", a folder or archive of the one, or a table of the other.

    A .csv table of ``text`` and ``label`` will do as well. ``most`` is how many to read of a table.
    """
    path = Path(source)
    if source in ("newsgroups", "yahoo-answers") and not path.exists():
        return newsgroups() if source == "newsgroups" else yahoo_answers(most=most)
    if not path.exists():
        raise HoldfastError(f"there is no {source}: name newsgroups, yahoo-answers, or a folder or file of texts.")
    kind = path.suffix.lower()
    if kind in _TABLES:
        plain = kind == ".csv" and {"text", "label"} <= set(_csv(path, 0)[0])
        return labelled(path) if plain else yahoo_answers(path, most=most)
    return newsgroups(path)


def labelled(path: str | Path, classes: Sequence[str] = ()) -> Texts:
    """Texts from a .csv file with the columns ``text`` and ``label``: a class by number, or by name."""
    columns, rows = _csv(path)
    if not rows or not {"text", "label"} <= set(columns):
        raise HoldfastError(f"{path} should have the columns text and label, and at least one row.")
    kept = [(number, row["text"], row["label"]) for number, row in enumerate(rows) if (row["text"] or "").strip()]
    bare = next((number for number, _, label in kept if not label), None)
    if bare is not None or not kept:
        raise HoldfastError(f"{path} holds no text." if bare is None else f"row {bare} of {path} has no label.")
    names = tuple(classes) or tuple(sorted({label for _, _, label in kept}))
    known = {name: number for number, name in enumerate(names)}
    known = {str(number): number for number in range(len(names))} | known if classes else known
    unknown = next((label for _, _, label in kept if label not in known), None)
    if unknown is not None:
        raise HoldfastError(f"{path} has the label {unknown!r}, which is none of {', '.join(names)}.")
    y = torch.tensor([known[label] for _, _, label in kept])
    return Texts(tuple(text for _, text, _ in kept), y, names, tuple(f"row {number}" for number, _, _ in kept))


def newsgroups(
    root: str | Path | None = None, *, split: Split = "test", groups: Sequence[str] = tuple(TOPICS)
) -> Texts:
    """Posts of 20 Newsgroups, by date, without headers, quotes and signatures.

    ``root`` is a folder or archive (.zip, .tar.gz) that holds ``20news-bydate-train`` and ``20news-bydate-test``;
    without it scikit-learn's fetcher is asked, which downloads them once.
    """
    if split not in ("train", "test"):
        raise HoldfastError(f'split must be "train" or "test", got {split!r}.')
    if not groups or len(set(groups)) != len(groups):
        raise HoldfastError(f"groups must name newsgroups, each once, got {list(groups)}.")
    posts = _fetched(split, groups) if root is None else _posts(Path(root), f"20news-bydate-{split}", groups)
    found = [(groups.index(group), f"{group}/{name}", stripped(post)) for group, name, post in posts]
    found = sorted((one for one in found if one[2]), key=lambda one: one[1])
    if {label for label, _, _ in found} != set(range(len(groups))):
        missing = next(group for number, group in enumerate(groups) if all(one[0] != number for one in found))
        raise HoldfastError(f"{root} has no posts of {missing} in 20news-bydate-{split}.")
    labels, names, texts = zip(*found, strict=True)
    return Texts(texts, torch.tensor(labels), tuple(TOPICS.get(group, group) for group in groups), names)


def stripped(post: str) -> str:
    """A post without its header, the lines it quotes and its signature."""
    _, _, body = post.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in body.split("\n") if not _QUOTED.search(line)]
    rule = next((at for at in range(len(lines) - 1, -1, -1) if re.fullmatch(r"\s*[-_=*#~]{2,}\s*", lines[at])), None)
    if rule is not None and rule > 0:
        lines = lines[:rule]
    return "\n".join(lines).strip()


def yahoo_answers(path: str | Path | None = None, *, split: Split = "test", most: int | None = None) -> Texts:
    """Questions of Yahoo! Answers, ten topics, by Hugging Face's ``datasets``.

    ``path`` is a local file of the same columns (.parquet, .csv or .jsonl: topic, question_title, question_content,
    best_answer); without it the set is downloaded once. A text is the question, its title and what is said about it.
    """
    try:
        import datasets  # an optional extra
    except ImportError as error:
        raise HoldfastError('Yahoo! Answers is read by datasets: pip install "holdfast[text]".') from error
    part = split if most is None else f"{split}[:{most}]"
    try:
        if path is None:
            table: Any = datasets.load_dataset("community-datasets/yahoo_answers_topics", split=part)
        else:
            kind = _TABLES.get(Path(path).suffix.lower())
            if kind is None or not Path(path).is_file():
                raise HoldfastError(f"{path} should be a .parquet, .csv or .jsonl file with Yahoo! Answers.")
            table = datasets.load_dataset(kind, data_files={split: str(path)}, split=part)
    except (OSError, ValueError, datasets.exceptions.DatasetGenerationError) as error:
        raise HoldfastError(f"cannot read Yahoo! Answers: {first_line(error)}") from error
    lacking = {"topic", "question_title", "question_content"} - set(table.column_names)
    if lacking:
        raise HoldfastError(f"{path} has no column {sorted(lacking)[0]!r}: it should have those of Yahoo! Answers.")
    topics = [_topic(row, topic) for row, topic in enumerate(table["topic"])]
    questions = zip(table["question_title"], table["question_content"], strict=True)
    said = [" ".join(str(part) for part in parts if part not in (None, "")) for parts in questions]
    kept = [row for row, text in enumerate(said) if text.strip()]
    return Texts(
        tuple(said[row] for row in kept),
        torch.tensor([topics[row] for row in kept]),
        YAHOO,
        tuple(f"{split} {row}" for row in kept),
    )


def _csv(path: str | Path, most: int | None = None) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of a table, and its rows, or the first so many."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            read = csv.DictReader(file)
            return list(read.fieldnames or ()), list(itertools.islice(read, most))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HoldfastError(f"cannot read texts from {path}: {error}.") from error


def _topic(row: int, topic: Any) -> int:
    try:
        number = int(topic)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < len(YAHOO):
        raise HoldfastError(f"row {row} of Yahoo! Answers is of topic {topic!r}: they go from 0 to {len(YAHOO) - 1}.")
    return number


def _posts(root: Path, folder: str, groups: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Group, name and content of every post under ``folder/GROUP/``."""
    wanted = set(groups)

    def is_post(name: str) -> bool:
        parts = name.split("/")
        return len(parts) >= 3 and parts[-3] == folder and parts[-2] in wanted

    for path, content in files_of(root, is_post):
        _, group, name = path.rsplit("/", 2)
        yield group, name, content.decode("latin-1")


def _fetched(split: Split, groups: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    try:
        from sklearn.datasets import fetch_20newsgroups  # not a dependency: one of three ways
    except ImportError as error:
        raise HoldfastError(
            "name a folder or archive of 20 Newsgroups, or install scikit-learn to fetch it."
        ) from error
    try:
        found = fetch_20newsgroups(subset=split, categories=list(groups))
    except (OSError, ValueError) as error:
        raise HoldfastError(f"scikit-learn cannot fetch 20 Newsgroups: {error}.") from error
    for path, label, post in zip(found.filenames, found.target, found.data, strict=True):
        yield found.target_names[label], Path(path).name, post
