from __future__ import annotations

from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.text import Vocabulary, split


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat sat.", ["The", "cat", "sat"]),
        ("Don't! It's O'Neill’s.", ["Do", "n't", "It", "'s", "O'Neill", "’s"]),
        ("we'll they're I'd I've I'm", ["we", "'ll", "they", "'re", "I", "'d", "I", "'ve", "I", "'m"]),
        ("snake_case 3.5 mid-air naïve", ["snake", "case", "3", "5", "mid", "air", "naïve"]),
        ("  \n\t … --- ", []),
    ],
)
def test_a_text_is_split_into_words(text: str, words: list[str]) -> None:
    found = split(text)
    assert [word.text for word in found] == words
    assert [text[word.start : word.end] for word in found] == words, "places are those in the text"


def test_a_vocabulary_is_read_as_glove_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\ncat 3 4\nn't 5 6\n", encoding="utf-8")
    found = Vocabulary.read(path)
    assert found.words == ("the", "cat", "n't")
    assert found.row("CAT") == 1
    assert found.row("n’t") == 2
    assert found.row("dog") == 3
    assert found.rows.tolist() == [[1, 2], [3, 4], [5, 6], [3, 4]], "unknown words are the mean of all"
    assert Vocabulary.read(path, keep=["cat"]).words == ("cat",)
    assert Vocabulary.read(path, most=2).words == ("the", "cat")
    path.write_text("3 2\nthe 1 2 \ncat 3 4 \nn't 5 6 \n", encoding="utf-8")
    again = Vocabulary.read(path)
    assert again.words == found.words, "fastText counts on its first line and ends every other with a blank"
    assert torch.equal(again.vectors, found.vectors)


@pytest.mark.parametrize("content", ["", "the 1 2\ncat 3\n", "the 1 2\n3\n", "the cat\n", "the\n", "5\n"])
def test_a_file_without_vectors_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(hf.HoldfastError):
        Vocabulary.read(path)
    with pytest.raises(hf.HoldfastError, match="cannot read word vectors"):
        Vocabulary.read(tmp_path / "nothing.txt")


def test_a_vocabulary_names_words_once_and_has_a_vector_for_each() -> None:
    with pytest.raises(hf.HoldfastError, match="once"):
        Vocabulary(("a", "a"), torch.zeros(2, 3))
    with pytest.raises(hf.HoldfastError, match="a vector for each"):
        Vocabulary(("a",), torch.zeros(2, 3))
