"""Training of the digit network whose weights the package contains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from holdfast.data.digits import Digits
from holdfast.data.networks import mnist_cnn
from holdfast.data.training import EpochProgress, count_correct, fit, write_weights

EPOCHS, BATCH = 12, 100
_TEST_BATCH = 500


def train_cnn(
    training: Digits,
    test: Digits,
    out: Path,
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    device: str = "cpu",
    progress: EpochProgress | None = None,
) -> float:
    """Train the digit network without augmentation and write its weights.

    Args:
        training: The images to train on.
        test: The images to measure the accuracy on.
        out: The safetensors file to write.
        epochs: Number of epochs.
        seed: Seed of the weights and of the order of the images.
        device: The device to train on.
        progress: Called after each epoch.

    Returns:
        The accuracy of the written network on ``test``.

    Raises:
        HoldfastError: There are no training images, or the file cannot be written.
    """
    torch.manual_seed(seed)
    network = mnist_cnn().to(device)
    x, y = training.x.to(device), training.y.to(device)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for batch in torch.randperm(len(x)).to(device).split(BATCH):
            yield x[batch], y[batch]

    accuracy = fit(
        network,
        batches,
        lambda trained: measure_accuracy(trained, test),
        epochs=epochs,
        steps=-(-len(x) // BATCH),
        progress=progress,
    )
    metadata = {"accuracy of the network": f"{accuracy:.2%} of {len(test):,} test images"}
    write_weights(out, network.state_dict(), metadata)
    return accuracy


def measure_accuracy(network: nn.Module, digits: Digits) -> float:
    """Return the share of images that the network classifies correctly. It is left in evaluation mode."""
    batches = zip(digits.x.split(_TEST_BATCH), digits.y.split(_TEST_BATCH), strict=True)
    return count_correct(network, batches) / len(digits)
