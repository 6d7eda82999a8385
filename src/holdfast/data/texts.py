"""Texts with classes, and readers of 20 Newsgroups, Yahoo! Answers and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from holdfast.data.archive import read_files
from holdfast.data.tables import MOST_TABLE, TABLES, columns_of, each_csv_row, each_row
from holdfast.errors import HoldfastError, first_line
from holdfast.files import reading
from holdfast.text.words import each_word

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
"""Ten of the twenty newsgroups, with the names of their classes."""
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
_RULE = re.compile(r"\s*[-_=*#~]{2,}\s*")  # the line above a signature
_BATCH = 1_000  # rows of a table that are converted together
_QUESTION = ("topic", "question_title", "question_content")


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts with their classes.

    Attributes:
        texts: N texts.
        y: Their classes by number, ``[N]``.
        classes: Names of the classes.
        names: A name of each text, such as that of its file.
    """

    texts: tuple[str, ...]
    y: Tensor
    classes: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, which: Sequence[int]) -> Texts:
        """Return the texts with these numbers, in this order."""
        texts, names = (tuple(values[number] for number in which) for values in (self.texts, self.names))
        return Texts(texts, self.y[list(which)], self.classes, names)

    def first(self, count: int) -> Texts:
        """Return the first ``count`` texts, or all if there are fewer."""
        return self.select(range(min(count, len(self))))

    def in_turn(self) -> Texts:
        """Return the first text of every class, then the second of every class, and so on."""
        counts: Counter[int] = Counter()
        places = []
        for number, label in enumerate(self.y.tolist()):
            places.append((counts[label], label, number))
            counts[label] += 1
        return self.select([number for _, _, number in sorted(places)])

    def cut(self, least: int, most: int) -> Texts:
        """Shorten long texts and leave out short ones.

        Args:
            least: Leave out texts with fewer words.
            most: Cut texts after this many words.

        Returns:
            The other texts, in order.
        """
        long_enough, texts = [], []
        for number, text in enumerate(self.texts):
            words = list(islice(each_word(text), max(least, most + 1)))  # no more than is asked about
            if len(words) >= least:
                long_enough.append(number)
                texts.append(text if len(words) <= most else text[: words[most - 1].end])
        return replace(self.select(long_enough), texts=tuple(texts))


def read_texts(source: str, most: int | None = None) -> Texts:
    """Read test texts by the name of a data set or from files.

    Args:
        source: ``"newsgroups"``, ``"yahoo-answers"``, a folder or archive of 20 Newsgroups, a table of Yahoo! Answers,
            or a .csv file with the columns ``text`` and ``label``. A path goes before a name.
        most: Read at most this many rows of Yahoo! Answers. None: all of them.

    Returns:
        The texts.

    Raises:
        HoldfastError: There is no such source, or it cannot be read.
    """
    path = Path(source)
    with reading(source, "texts from"):
        exists = path.exists()
    if source in ("newsgroups", "yahoo-answers") and not exists:
        return newsgroups() if source == "newsgroups" else yahoo_answers(most=most)
    if not exists:
        raise HoldfastError(f"there is no {source}: name newsgroups, yahoo-answers, or a folder or file of texts.")
    suffix = path.suffix.lower()
    if suffix in TABLES:
        has_labels = suffix == ".csv" and {"text", "label"} <= set(columns_of(path))
        return labelled(path) if has_labels else yahoo_answers(path, most=most)
    return newsgroups(path)


def labelled(path: str | Path, classes: Sequence[str] = ()) -> Texts:
    """Read a .csv file with the columns ``text`` and ``label``. Rows without a text are left out.

    Args:
        path: The file, in UTF-8.
        classes: Names of the classes; labels are then names or numbers. Default: the labels in alphabetical order.

    Returns:
        The texts, named by their rows.

    Raises:
        HoldfastError: The file cannot be read, lacks a column or a label, or has a label that is not in ``classes``.
    """
    rows = each_csv_row(path, ("text", "label")) if {"text", "label"} <= set(columns_of(path)) else iter(())
    once: dict[str, str] = {}  # each label is kept once, however many rows have it
    entries, count = [], 0
    for count, (text, label) in enumerate(rows, 1):
        if text.strip():
            entries.append((count - 1, text, once.setdefault(label, label)))
    if not count:
        raise HoldfastError(f"{path} should have the columns text and label, and at least one row.")
    if not entries:
        raise HoldfastError(f"{path} holds no text.")
    bare = next((number for number, _, label in entries if not label), None)
    if bare is not None:
        raise HoldfastError(f"row {bare} of {path} has no label.")
    names = tuple(classes) or tuple(sorted({label for _, _, label in entries}))
    number_of = {name: number for number, name in enumerate(names)}
    if classes:
        number_of = {str(number): number for number in range(len(names))} | number_of
    unknown = next((label for _, _, label in entries if label not in number_of), None)
    if unknown is not None:
        raise HoldfastError(f"{path} has the label {unknown!r}, which is none of {', '.join(names)}.")
    y = torch.tensor([number_of[label] for _, _, label in entries])
    return Texts(tuple(text for _, text, _ in entries), y, names, tuple(f"row {number}" for number, _, _ in entries))


def newsgroups(
    root: str | Path | None = None, *, split: Split = "test", groups: Sequence[str] = tuple(TOPICS)
) -> Texts:
    """Read posts of 20 Newsgroups (Lang 1995), without headers, quotes and signatures.

    Args:
        root: A folder or archive (.zip, .tar.gz) with ``20news-bydate-train`` and ``20news-bydate-test``. None:
            scikit-learn downloads them once.
        split: The split to read. Training posts are older than test posts.
        groups: Names of the newsgroups to read, each a class.

    Returns:
        The posts, sorted by newsgroup and file.

    Raises:
        HoldfastError: An argument is not allowed, or the posts cannot be read.
    """
    if split not in ("train", "test"):
        raise HoldfastError(f'split must be "train" or "test", got {split!r}.')
    if not groups or len(set(groups)) != len(groups):
        raise HoldfastError(f"groups must name newsgroups, each once, got {list(groups)}.")
    folder = f"20news-bydate-{split}"
    posts = _fetched_posts(split, groups) if root is None else _posts(Path(root), folder, groups)
    bodies = [(groups.index(group), f"{group}/{name}", post_body(post)) for group, name, post in posts]
    entries = sorted((entry for entry in bodies if entry[2]), key=lambda entry: entry[1])
    missing = set(range(len(groups))) - {label for label, _, _ in entries}
    if missing:
        source = "scikit-learn" if root is None else root
        raise HoldfastError(f"{source} has no posts of {groups[min(missing)]} in {folder}.")
    labels, names, texts = zip(*entries, strict=True)
    return Texts(texts, torch.tensor(labels), tuple(TOPICS.get(group, group) for group in groups), names)


def post_body(post: str) -> str:
    """Return a post without its header, the lines that it quotes and its signature."""
    _, _, body = post.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in body.split("\n") if not _QUOTED.search(line)]
    rule = next((at for at in range(len(lines) - 1, -1, -1) if _RULE.fullmatch(lines[at])), None)
    if rule is not None and rule > 0:
        lines = lines[:rule]
    return "\n".join(lines).strip()


def yahoo_answers(path: str | Path | None = None, *, split: Split = "test", most: int | None = None) -> Texts:
    """Read questions of Yahoo! Answers (Zhang et al. 2015).

    A text is the title of a question and its content. Rows without a text are left out.

    Args:
        path: A .parquet, .csv or .jsonl file with the columns ``topic``, ``question_title`` and ``question_content``.
            None: Hugging Face ``datasets`` downloads the set once.
        split: The split to read.
        most: Read at most this many rows. None: all of them.

    Returns:
        The questions, in ten classes.

    Raises:
        HoldfastError: ``datasets`` is not installed, or the file cannot be read or has other columns or topics, or
            holds more than fits into memory.
    """
    entries: list[tuple[int, str]] = []
    names: list[str] = []
    rows = _downloaded_questions(split, most) if path is None else _questions(path, most)
    for row, (topic, *parts) in enumerate(rows):
        label = _topic(row, topic)
        text = " ".join(str(part) for part in parts if part not in (None, ""))
        if text.strip():
            entries.append((label, text))
            names.append(f"{split} {row}")
    labels = torch.tensor([label for label, _ in entries], dtype=torch.long)
    return Texts(tuple(text for _, text in entries), labels, YAHOO, tuple(names))


def _questions(path: str | Path, most: int | None) -> Iterator[tuple[Any, ...]]:
    """Yield topic, title and content of the questions in a file."""
    with reading(path, "Yahoo! Answers in", MOST_TABLE):
        if Path(path).suffix.lower() not in TABLES:
            raise HoldfastError(f"{path} should be a .parquet, .csv or .jsonl file with Yahoo! Answers.")
    yield from islice(each_row(path, _QUESTION, "Yahoo! Answers in"), most)


def _downloaded_questions(split: Split, most: int | None) -> Iterator[tuple[Any, ...]]:
    """Yield topic, title and content of the questions that ``datasets`` downloads."""
    try:
        import datasets  # an optional extra
    except ImportError as error:
        raise HoldfastError('Yahoo! Answers requires datasets: pip install "holdfast[text]".') from error
    with reading("Yahoo! Answers"):
        part = split if most is None else f"{split}[:{most}]"
        table = datasets.load_dataset("community-datasets/yahoo_answers_topics", split=part)
        for start in range(0, len(table), _BATCH):  # row by row takes minutes
            columns = table[start : start + _BATCH]
            yield from zip(*(columns[name] for name in _QUESTION), strict=True)


def _topic(row: int, topic: Any) -> int:
    """Return the number of a topic."""
    try:
        number = int(topic)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < len(YAHOO):
        raise HoldfastError(
            f"row {row} of Yahoo! Answers has topic {topic!r}: topics should be from 0 to {len(YAHOO) - 1}."
        )
    return number


def _posts(root: Path, folder: str, groups: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield group, file name and content of every post under ``folder/GROUP/``."""
    wanted = set(groups)

    def is_post(name: str) -> bool:
        parts = name.split("/")
        return len(parts) >= 3 and parts[-3] == folder and parts[-2] in wanted

    for path, content in read_files(root, is_post):
        _, group, name = path.rsplit("/", 2)
        yield group, name, content.decode("latin-1")


def _fetched_posts(split: Split, groups: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield group, file name and content of every post that scikit-learn fetches."""
    try:
        from sklearn.datasets import fetch_20newsgroups  # not a dependency: a folder or archive will do
    except ImportError as error:
        raise HoldfastError(
            "20 Newsgroups requires a folder or archive of it, or scikit-learn, which downloads it: "
            "pip install scikit-learn."
        ) from error
    try:
        fetched = fetch_20newsgroups(subset=split, categories=list(groups))
    except (OSError, ValueError) as error:
        raise HoldfastError(f"scikit-learn cannot fetch 20 Newsgroups: {first_line(error)}") from error
    for path, label, post in zip(fetched.filenames, fetched.target, fetched.data, strict=True):
        yield fetched.target_names[label], Path(path).name, post
