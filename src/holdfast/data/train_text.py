"""Training of the sentence network whose weights the package contains."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from holdfast.data.texts import Texts
from holdfast.data.training import EpochProgress, count_correct, fit, write_weights
from holdfast.errors import HoldfastError
from holdfast.text import BiLstm, Vocabulary, WordReader, embed, split

EPOCHS, BATCH, LONGEST = 8, 64, 200
"""Epochs, texts in a batch, and the words of a text that the network reads: the first ``LONGEST``."""
_WINDOW = (10, 100)  # fewest and most words of the part of a text that an epoch trains on


def vocabulary_for(texts: Texts, vectors: Path, most: int = 12_000) -> Vocabulary:
    """Choose the words that a network for some texts knows.

    Up to three quarters of them are the most frequent words of the texts that occur at least three times and have a
    vector. The others are the first words of the file that consist of letters.

    Args:
        texts: The texts to train on.
        vectors: A text file of word vectors, such as ``glove.6B.100d.txt``.
        most: Number of words.

    Returns:
        At most ``most`` words, and their vectors in half precision.

    Raises:
        HoldfastError: The file cannot be read as word vectors.
    """
    counts = Counter(word.text.lower().replace("’", "'") for text in texts.texts for word in split(text))
    common = [word for word, times in counts.most_common() if times > 2]
    inside = Vocabulary.read(vectors, keep=common)
    kept = sorted(inside.words, key=lambda word: -counts[word])[: most * 3 // 4]
    others = Vocabulary.read(vectors, most=most)
    words = list(dict.fromkeys([*kept, *(word for word in others.words if word.isalpha())]))[:most]
    every = dict(zip((*others.words, *inside.words), (*others.vectors, *inside.vectors), strict=True))
    return Vocabulary(tuple(words), torch.stack([every[word] for word in words]).half().float())


def train_bilstm(
    training: Texts,
    test: Texts,
    vocabulary: Vocabulary,
    out: Path,
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    device: str = "cpu",
    progress: EpochProgress | None = None,
) -> float:
    """Train the sentence network and write its words, their vectors and its weights, in half precision.

    Each epoch takes one random window of each text, so that the network learns from sentences and from whole posts.
    The vectors are not trained.

    Args:
        training: The texts to train on. Those without a word are left out.
        test: The texts to measure the accuracy on.
        vocabulary: The words that the network knows.
        out: The safetensors file to write.
        epochs: Number of epochs.
        seed: Seed of the weights, of the order of the texts, of the windows and of dropout.
        device: The device to train on.
        progress: Called after each epoch.

    Returns:
        The accuracy of the written network on ``test``.

    Raises:
        HoldfastError: The classes of the texts differ, no text has a word, or the file cannot be written.
    """
    if training.classes != test.classes:
        raise HoldfastError(
            f"training and test texts must have the same classes, got {training.classes} and {test.classes}."
        )
    torch.manual_seed(seed)
    rows = _rows(training, vocabulary, 10**9)
    usable = torch.tensor([number for number, one in enumerate(rows) if len(one)])
    network = BiLstm(vocabulary.vectors.shape[1], len(training.classes)).to(device)
    vectors, y = vocabulary.rows.to(device), training.y.to(device)
    accuracy = fit(
        network,
        lambda: _window_batches(rows, usable, vectors, y),
        lambda trained: measure_text_accuracy(trained, vocabulary, test),
        epochs=epochs,
        steps=-(-len(usable) // BATCH),
        smoothing=0.05,
        clip=5.0,
        precision=torch.half,
        progress=progress,
    )
    metadata = {
        "accuracy of the network": f"{accuracy:.2%} of {len(test):,} test texts",
        "classes": json.dumps(training.classes),
        "words": "\n".join(vocabulary.words),
    }
    tensors = {**network.state_dict(), "vectors": vocabulary.vectors}
    write_weights(out, {name: value.half() for name, value in tensors.items()}, metadata)
    return accuracy


def measure_text_accuracy(network: nn.Module, vocabulary: Vocabulary, texts: Texts) -> float:
    """Return the share of texts that the network classifies correctly. It is left in evaluation mode.

    The network reads the first ``LONGEST`` words of a text. A text without a word counts as an error.
    """
    vectors = vocabulary.rows.to(next(network.parameters()).device)
    rows = _rows(texts, vocabulary, LONGEST)
    # Texts of a similar length share a batch, so that there is little padding.
    order = sorted((number for number in range(len(rows)) if len(rows[number])), key=lambda number: len(rows[number]))
    chunks = (order[start : start + BATCH] for start in range(0, len(order), BATCH))
    batches = ((_padded([rows[number] for number in chunk], vectors), texts.y[chunk]) for chunk in chunks)
    return count_correct(network, batches) / len(texts)


def _rows(texts: Texts, vocabulary: Vocabulary, longest: int) -> list[Tensor]:
    """Return the rows of the vectors that each text's first ``longest`` words have."""
    reader = WordReader(vocabulary, longest)
    return [torch.tensor(reader(text).rows) for text in texts.texts]


def _window_batches(rows: list[Tensor], usable: Tensor, vectors: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield one random window of each usable text with its class, in random order."""
    for batch in usable[torch.randperm(len(usable))].split(BATCH):
        yield _padded([_window(rows[number]) for number in batch.tolist()], vectors), y[batch.to(y.device)]


def _window(rows: Tensor) -> Tensor:
    """Return a random run of the words, or all of them if they are fewer than its length."""
    fewest, most = _WINDOW
    length = int(torch.randint(fewest, most + 1, ()))
    start = int(torch.randint(max(1, len(rows) - length + 1), ()))
    return rows[start : start + length]


def _padded(rows: list[Tensor], vectors: Tensor) -> Tensor:
    """Return the inputs ``[B, L, E + 1]`` of texts, padded to the longest."""
    together = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    return embed(together.to(vectors.device), vectors)
