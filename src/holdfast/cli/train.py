"""``holdfast train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app import Device, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.arguments import usable_device
from holdfast.cli.show import progress_bar
from holdfast.data import mnist
from holdfast.data.train import train_cnn
from holdfast.errors import HoldfastError


@app.command()
def train(
    network: Annotated[str, typer.Argument(help="The network to train: mnist-cnn.")],
    data: Annotated[Path, typer.Option(help="Folder with the MNIST idx or idx.gz files.")],
    out: Annotated[Path, typer.Option(help="Where to write the weights.")] = Path("mnist-cnn.safetensors"),
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files from the public mirror.")] = False,
    epochs: Annotated[int, typer.Option(min=1)] = 12,
    device: Device = "cpu",
    seed: Seed = 0,
) -> None:
    """Train a network that the package carries weights for, and measure it on the full test set."""
    if network != "mnist-cnn":
        raise HoldfastError(f"there is no network {network!r} to train: use mnist-cnn.")
    usable_device(device)
    if not out.resolve().parent.is_dir():
        raise HoldfastError(f"the folder {out.resolve().parent} for the weights does not exist.")
    with progress_bar("training, epochs", False) as progress:
        training, test = (mnist(data, split=split, download=download) for split in ("train", "test"))
        accuracy = train_cnn(
            training,
            test,
            out,
            epochs=epochs,
            seed=seed,
            device=device,
            progress=lambda done, total, _: progress(done, total) if progress else None,
        )
    console.print(f"{out}: {accuracy:.2%} of the test digits right", highlight=False)
