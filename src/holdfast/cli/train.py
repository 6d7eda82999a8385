"""``holdfast train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from holdfast.cli import options
from holdfast.cli.app import out as console
from holdfast.cli.arguments import usable_device
from holdfast.cli.show import progress_bar
from holdfast.data import mnist
from holdfast.data import train as digits
from holdfast.data import train_text as texts
from holdfast.data.rationales import SENTIMENTS, movie_reviews
from holdfast.data.texts import Texts, labelled, newsgroups
from holdfast.errors import HoldfastError

app = typer.Typer(add_completion=False)


@app.command()
def train(
    network: Annotated[str, typer.Argument(help="The network to train: mnist-cnn or text-bilstm.")],
    data: Annotated[
        Path,
        typer.Option(help="Folder with the MNIST idx or idx.gz files; folder or archive with newsgroups or movies."),
    ],
    out: Annotated[Path | None, typer.Option(help="Where to write the weights: Default: NETWORK.safetensors.")] = None,
    kind: Annotated[
        str | None,
        typer.Option("--texts", help="What data holds for text-bilstm: newsgroups (default) or movies."),
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors for text-bilstm, such as glove.6B.100d.txt.")
    ] = None,
    more: Annotated[
        Path | None, typer.Option(help="A .csv table of text and label to train on as well, for text-bilstm.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files from the public mirror.")] = False,
    epochs: Annotated[int | None, typer.Option(min=1, help="Default: 12 for mnist-cnn, 8 for text-bilstm.")] = None,
    device: options.Device = "cpu",
    seed: options.Seed = 0,
) -> None:
    """Train a network that the package has weights for, and measure it on the full test set."""
    if network not in ("mnist-cnn", "text-bilstm"):
        raise HoldfastError(f"there is no network {network!r} to train: use mnist-cnn or text-bilstm.")
    if network == "mnist-cnn" and (kind, vectors, more) != (None, None, None):
        raise HoldfastError("--texts, --vectors and --more are for text-bilstm: leave them out.")
    if network == "text-bilstm" and download:
        raise HoldfastError("--download is for mnist-cnn: newsgroups and movies are read from --data.")
    usable_device(device)
    out = out or Path(f"{network}.safetensors")
    if not out.resolve().parent.is_dir():
        raise HoldfastError(f"the folder {out.resolve().parent} for the weights does not exist.")
    with progress_bar("training, epochs", False) as progress:

        def told(done: int, total: int, _: float) -> None:
            if progress:
                progress(done, total)

        if network == "mnist-cnn":
            training, test = (mnist(data, split=split, download=download) for split in ("train", "test"))
            accuracy = digits.train_cnn(
                training, test, out, epochs=epochs or digits.EPOCHS, seed=seed, device=device, progress=told
            )
        else:
            if vectors is None:
                raise HoldfastError("text-bilstm needs --vectors, a text file such as glove.6B.100d.txt.")
            learnt, held = _texts(kind or "newsgroups", data, more)
            words = texts.vocabulary_for(learnt, vectors)
            accuracy = texts.train_bilstm(
                learnt, held, words, out, epochs=epochs or texts.EPOCHS, seed=seed, device=device, progress=told
            )
    console.print(f"{out}: {accuracy:.2%} of the test examples are classified correctly", highlight=False)


def _texts(kind: str, data: Path, more: Path | None) -> tuple[Texts, Texts]:
    """The texts to learn from and those to measure on."""
    if kind not in ("newsgroups", "movies"):
        raise HoldfastError(f"--texts must be newsgroups or movies, got {kind!r}.")
    if kind == "movies":
        learnt, held = movie_reviews(data, "train"), movie_reviews(data, "val")
        extra = None if more is None else labelled(more, SENTIMENTS)
    else:
        learnt, held = newsgroups(data, split="train"), newsgroups(data, split="test")
        extra = None if more is None else labelled(more, learnt.classes)
    if extra is not None:
        y = torch.cat([learnt.y, extra.y])
        learnt = Texts(learnt.texts + extra.texts, y, learnt.classes, learnt.names + extra.names)
    return learnt, held
