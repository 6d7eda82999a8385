"""Texts from where users have them: small local copies of the same layout."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.data.rationales import MovieData, marked_words, movie_passages, movie_reviews
from holdfast.data.texts import YAHOO, labelled, newsgroups, post_body, read_texts, yahoo_answers
from holdfast.data.topics import load_bilstm, topic_sentences, topics_bilstm
from holdfast.data.train_text import train_bilstm, vocabulary_for
from holdfast.text import TextModel, Vocabulary, WordReader, split

POST = """From: someone@example.org
Subject: pucks
Lines: 9

In article <1@x> other@example.org writes:
> quoted words
The goalie stopped the puck.
Another line of words.

--
Signature of someone
"""


def _news(folder: Path) -> Path:
    for part in ("train", "test"):
        for group, word in (("rec.sport.hockey", "puck"), ("sci.space", "orbit")):
            place = folder / f"20news-bydate-{part}" / group
            place.mkdir(parents=True)
            for number in range(6):
                body = f"the {word} and a {word} went {number} times over the {word} in the game of the {word}"
                (place / str(100 + number)).write_text(f"From: a\n\n{body}\n", encoding="latin-1")
    return folder


GROUPS = ("rec.sport.hockey", "sci.space")


def test_posts_lose_header_quotes_and_signature() -> None:
    assert post_body(POST) == "The goalie stopped the puck.\nAnother line of words."


def test_newsgroups_are_read_from_folders_and_archives(tmp_path: Path) -> None:
    folder = _news(tmp_path / "news")
    with zipfile.ZipFile(tmp_path / "news.zip", "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
    with tarfile.open(tmp_path / "news.tar.gz", "w:gz") as archive:
        archive.add(folder, ".")
    for root in (folder, tmp_path / "news.zip", tmp_path / "news.tar.gz"):
        found = newsgroups(root, groups=GROUPS)
        assert len(found) == 12
        assert found.classes == ("hockey", "space")
        assert found.names[0] == "rec.sport.hockey/100"
        assert found.y.tolist() == [0] * 6 + [1] * 6
    with pytest.raises(hf.HoldfastError, match=r"has no posts of comp\.graphics"):
        newsgroups(folder)
    with pytest.raises(hf.HoldfastError, match="cannot read"):
        newsgroups(tmp_path / "nothing.tar.gz", groups=GROUPS)
    name = "20news-bydate-test/sci.space/1"
    with zipfile.ZipFile(tmp_path / "damaged.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, POST)
    content, at = (tmp_path / "damaged.zip").read_bytes(), 30 + len(name)  # after the header
    (tmp_path / "damaged.zip").write_bytes(content[:at] + b"\xff" * 8 + content[at + 8 :])
    (tmp_path / "plain.zip").write_text("no archive", encoding="utf-8")
    for name in ("damaged.zip", "plain.zip"):
        with pytest.raises(hf.HoldfastError, match=r"cannot read \S+zip: [^\n]+$"):
            newsgroups(tmp_path / name, groups=GROUPS)
    with pytest.raises(hf.HoldfastError, match="split must be"):
        newsgroups(folder, split="val")  # type: ignore[arg-type]  # wrong on purpose


def test_a_small_table_that_is_large_in_memory_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 20_000, pyarrow.int32()), ["word " * 2_000])
    table = pyarrow.table({"topic": [3] * 20_000, "question_title": texts, "question_content": texts})
    parquet.write_table(table, path)
    assert path.stat().st_size < 2**20
    assert yahoo_answers(path, most=2).texts == (" ".join(["word " * 2_000] * 2),) * 2
    with pytest.raises(hf.HoldfastError, match=r"a\.parquet in memory: it has more than the 64 MB"):
        yahoo_answers(path)
    parquet.write_table(table.slice(0, 1).set_column(1, "question_title", [[[{"a": 1}]]]), path)
    with pytest.raises(hf.HoldfastError, match="column 'question_title' should hold texts or numbers, not list"):
        yahoo_answers(path)
    parquet.write_table(table.slice(0, 1).drop_columns(["question_title"]), path)
    with pytest.raises(hf.HoldfastError, match="has no column 'question_title'"):
        yahoo_answers(path)


def test_json_is_one_object_a_line_or_a_list(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    rows = [{"topic": 1, "question_title": "Why?"}, {"topic": 2, "question_title": "How?", "question_content": "So?"}]
    for content in (json.dumps(rows), json.dumps(rows, indent=1), "\n\n".join(map(json.dumps, rows))):
        path.write_text(content, encoding="utf-8")
        assert yahoo_answers(path).texts == ("Why?", "How? So?"), "what is empty may be left out"
    for content in ("3", "[3]", "{", '{"topic": 1}\n[' + "[" * 100_000):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(hf.HoldfastError, match=r"^cannot read Yahoo! Answers in \S+a\.json: [^\n]+\.$"):
            yahoo_answers(path)


def test_a_folder_of_that_name_is_read_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _news(tmp_path / "newsgroups")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hf.HoldfastError, match=r"newsgroups has no posts of comp\.graphics"):
        read_texts("newsgroups")


def test_texts_are_cut_and_taken_in_turn(tmp_path: Path) -> None:
    found = newsgroups(_news(tmp_path), groups=GROUPS).cut(least=5, most=7).in_turn()
    assert {len(split(text)) for text in found.texts} == {7}
    assert found.y.tolist() == [0, 1] * 6
    assert len(found.first(3)) == 3
    assert len(found.cut(least=8, most=9)) == 0
    whole = topic_sentences()
    assert whole.cut(least=1, most=100).texts == whole.texts, "what is short enough keeps its last full stop"


def test_yahoo_answers_are_read_from_tables(tmp_path: Path) -> None:
    rows = [
        {"id": 0, "topic": 5, "question_title": "Who won?", "question_content": "The cup.", "best_answer": "They did."},
        {"id": 1, "topic": 2, "question_title": "Is it flu?", "question_content": "", "best_answer": "Ask a doctor."},
        {"id": 2, "topic": 2, "question_title": "", "question_content": "", "best_answer": "?"},
    ]
    path = tmp_path / "yahoo.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = yahoo_answers(path)
    assert found.texts == ("Who won? The cup.", "Is it flu?")
    assert [found.classes[y] for y in found.y.tolist()] == ["Sports", "Health"]
    assert found.classes == YAHOO
    assert len(yahoo_answers(path, most=1)) == 1
    (tmp_path / "bad.jsonl").write_text(json.dumps(rows[0] | {"topic": 10}), encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match=r"row 0 .* topic 10"):
        yahoo_answers(tmp_path / "bad.jsonl")
    (tmp_path / "none.csv").write_text("topic,question_title,question_content\n,Who?,\n", encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match=r"row 0 .* topic None"):
        yahoo_answers(tmp_path / "none.csv")
    (tmp_path / "numbers.CSV").write_text("topic,question_title,question_content\n3,12,\n3,13,14\n", encoding="utf-8")
    assert read_texts(str(tmp_path / "numbers.CSV")).texts == ("12", "13 14"), "numbers are texts too"
    (tmp_path / "other.jsonl").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match="has no column"):
        yahoo_answers(tmp_path / "other.jsonl")
    with pytest.raises(hf.HoldfastError, match=r"cannot read Yahoo! Answers in \S+none\.jsonl: No such file"):
        yahoo_answers(tmp_path / "none.jsonl")


def test_any_table_of_text_and_label_will_do(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text('text,label\n"good, really",1\nbad,0\n,1\n', encoding="utf-8")
    found = labelled(path, ("negative", "positive"))
    assert found.texts == ("good, really", "bad")
    assert found.y.tolist() == [1, 0]
    assert read_texts(str(path)).texts == found.texts
    with pytest.raises(hf.HoldfastError, match="label '1', which is none of only"):
        labelled(path, ("only",))
    path.write_text("\ufefftext,label\nfine,1\nbad\n", encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match=r"row 1 of .* has no label"):
        labelled(path)
    path.write_text("text,label\n", encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match="at least one row"):
        read_texts(str(path))
    path.write_text("text,label\n ,1\n", encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match="holds no text"):
        labelled(path)
    path.write_bytes("text,label\nna\u00efve,1\n".encode("latin-1"))
    with pytest.raises(hf.HoldfastError, match="cannot read texts"):
        read_texts(str(path))
    path.write_text("words\n", encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match="columns text and label"):
        labelled(path)
    with pytest.raises(hf.HoldfastError, match="there is no"):
        read_texts(str(tmp_path / "nothing"))


def _movies(folder: Path) -> Path:
    (folder / "docs").mkdir(parents=True)
    lines = ["the plot is thin .", "a plodding , tedious film it is n't fun .", "so it goes on ."]
    (folder / "docs" / "negR_1.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "docs" / "posR_1.txt").write_text("great fun .\nsee it .", encoding="utf-8")
    span = {"docid": "negR_1.txt", "start_token": 6, "end_token": 9, "text": "plodding , tedious"}
    bad = {"annotation_id": "negR_1.txt", "classification": "NEG", "evidences": [[span]]}
    good = {
        "annotation_id": "posR_1.txt",
        "classification": "POS",
        "evidences": [[span | {"start_token": 0, "end_token": 6}]],
    }
    (folder / "val.jsonl").write_text(json.dumps(bad) + "\n", encoding="utf-8")
    (folder / "train.jsonl").write_text(json.dumps(bad) + "\n" + json.dumps(good) + "\n", encoding="utf-8")
    return folder


def test_rationales_become_words_of_passages(tmp_path: Path) -> None:
    folder = _movies(tmp_path / "movies")
    with zipfile.ZipFile(tmp_path / "movies.zip", "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, Path("movies") / path.relative_to(folder))
    with tarfile.open(tmp_path / "movies.tar.gz", "w:gz") as packed:
        packed.add(folder, "movies")
    for root in (folder, tmp_path / "movies.zip", tmp_path / "movies.tar.gz"):
        texts, marks = movie_passages(root, most=13)
        assert texts.texts == ("a plodding , tedious film it is n't fun . so it goes on .",)
        words = split(texts.texts[0])
        assert [words[word].text for word in sorted(marked_words(words, marks[0]))] == ["plodding", "tedious"]
        assert movie_reviews(root, "train").names == ("posR_1.txt",), "what is in val is not learnt from"
    assert movie_passages(folder, most=5)[0].texts == (), "no line with a mark fits"
    with pytest.raises(hf.HoldfastError, match=r"has no train\.jsonl"):
        movie_reviews(tmp_path / "movies" / "docs", "train")
    entry = {"annotation_id": "../../secret", "classification": "NEG", "evidences": []}
    (tmp_path / "secret").write_text("not a review", encoding="utf-8")
    (folder / "val.jsonl").write_text(json.dumps(entry), encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match="cannot read ERASER's movies in"):
        movie_reviews(folder)


class _Constant(nn.Module):
    """Every text is positive."""

    def forward(self, rows: Tensor) -> Tensor:
        return 0 * rows.sum((1, 2))[:, None] + torch.tensor([-1.0, 2.0])


def test_a_network_that_is_always_wrong_has_no_passage_to_explain(tmp_path: Path) -> None:
    reader = WordReader(Vocabulary(("film", "plot"), torch.eye(2)))
    model = TextModel(reader, _Constant().eval(), ("negative", "positive"))
    data = MovieData(root=str(_movies(tmp_path / "movies")), min_words=5, max_words=13)
    with pytest.raises(hf.HoldfastError, match="classifies every passage wrongly"):
        data.load(SimpleNamespace(text_model=lambda device: model), None, "cpu")


def test_the_embedded_network_knows_the_embedded_sentences() -> None:
    model, sentences = topics_bilstm(), topic_sentences()
    assert len(sentences) == 100
    assert model.classes == sentences.classes
    right = model.ask(sentences.texts).label == sentences.y
    assert float(right.float().mean()) >= 0.97


def test_a_network_is_trained_kept_and_read_again(tmp_path: Path) -> None:
    folder = _news(tmp_path / "news")
    training, test = (newsgroups(folder, split=part, groups=GROUPS) for part in ("train", "test"))
    vectors = tmp_path / "vectors.txt"
    words = ["the", "puck", "orbit", "and", "a", "went", "over", "in", "game", "of"]
    drawn = torch.randn(len(words), 4, generator=torch.Generator().manual_seed(0))
    rows = zip(words, drawn.tolist(), strict=True)
    vectors.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows), encoding="utf-8")
    vocabulary = vocabulary_for(training, vectors)
    assert set(vocabulary.words) == set(words)
    path = tmp_path / "text.safetensors"
    accuracy = train_bilstm(training, test, vocabulary, path, epochs=30)
    assert accuracy == 1.0
    model = load_bilstm(path)
    assert model.classes == ("hockey", "space")
    assert [model.classifier.class_name(int(label)) for label in model.ask(["the puck", "the orbit"]).label] == [
        "hockey",
        "space",
    ]
    (tmp_path / "no.safetensors").write_bytes(b"nothing")
    with pytest.raises(hf.HoldfastError, match="cannot read the network"):
        load_bilstm(tmp_path / "no.safetensors")
