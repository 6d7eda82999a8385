"""Training of the sentence network whose weights the package carries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from holdfast.data.texts import Texts
from holdfast.errors import HoldfastError
from holdfast.text import BiLstm, Vocabulary, WordReader, embed, split

EPOCHS, BATCH, LONGEST = 8, 64, 200
_FEWEST = 10  # words of a window of a text that is learnt from


def vocabulary_for(texts: Texts, vectors: Path, most: int = 12_000) -> Vocabulary:
    """The words of ``texts`` that have a vector, commonest first, then the commonest others, ``most`` in all."""
    counted = Counter(word.text.lower().replace("’", "'") for text in texts.texts for word in split(text))
    common = [word for word, times in counted.most_common() if times > 2]
    inside = Vocabulary.read(vectors, keep=common)
    kept = sorted(inside.words, key=lambda word: -counted[word])[: most * 3 // 4]
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
    progress: Callable[[int, int, float], None] | None = None,
) -> float:
    """Train the sentence network, write words, vectors and weights to ``out``, return its accuracy on ``test``.

    Every epoch takes a random window of each text, so that the network learns from sentences and whole posts alike.
    AdamW with a one-cycle rate; vectors are not learnt; the weights are those of the last step, in half precision.
    """
    if training.classes != test.classes:
        raise HoldfastError("training and test texts should be of the same classes.")
    torch.manual_seed(seed)
    reader = WordReader(vocabulary, 10**9)
    rows = [torch.tensor(reader(text).rows) for text in training.texts]
    kept = [number for number, one in enumerate(rows) if len(one)]
    network = BiLstm(vocabulary.vectors.shape[1], len(training.classes)).to(device)
    vectors, y = vocabulary.rows.to(device), training.y.to(device)
    batches = -(-len(kept) // BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=epochs * batches)
    accuracy = 0.0
    for epoch in range(epochs):
        network.train()
        for batch in torch.tensor(kept)[torch.randperm(len(kept))].split(BATCH):
            x = _padded([_window(rows[number]) for number in batch.tolist()], vectors)
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(network(x), y[batch.to(device)], label_smoothing=0.05)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimiser.step()
            rate.step()
        if epoch == epochs - 1:
            network.half().float()  # as it is kept
        accuracy = measure_text_accuracy(network.eval(), vocabulary, test)
        if progress is not None:
            progress(epoch + 1, epochs, accuracy)
    about = {
        "accuracy of the network": f"{accuracy:.2%} of {len(test):,} test texts",
        "classes": json.dumps(training.classes),
        "words": "\n".join(vocabulary.words),
    }
    tensors = {name: value.cpu().half().contiguous() for name, value in network.state_dict().items()}
    save_file({**tensors, "vectors": vocabulary.vectors.half()}, out, about)
    return accuracy


def measure_text_accuracy(network: nn.Module, vocabulary: Vocabulary, texts: Texts) -> float:
    """The share of texts that the network, reading their first words, names right; a text without words is not."""
    device = next(network.parameters()).device
    reader, vectors = WordReader(vocabulary, LONGEST), vocabulary.rows.to(device)
    rows = [torch.tensor(reader(text).rows) for text in texts.texts]
    order = sorted((number for number in range(len(rows)) if len(rows[number])), key=lambda number: len(rows[number]))
    right = 0
    with torch.no_grad():
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            x = _padded([rows[number] for number in batch], vectors)
            right += int((network(x).argmax(1).cpu() == texts.y[batch]).sum())
    return right / len(texts)


def _window(rows: Tensor) -> Tensor:
    """A random run of the words, of ``_FEWEST`` to 100 of them."""
    length = int(torch.randint(_FEWEST, 101, ()))
    start = int(torch.randint(max(1, len(rows) - length + 1), ()))
    return rows[start : start + length]


def _padded(rows: list[Tensor], vectors: Tensor) -> Tensor:
    together = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    return embed(together.to(vectors.device), vectors)
