"""The sentence network of the paper: a bidirectional LSTM over word vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Lstm(nn.LSTM):
    """An LSTM that stays in training mode.

    cuDNN gives gradients of an LSTM in training mode only. The mode changes nothing here: there is no dropout inside.
    """

    def train(self, mode: bool = True) -> Lstm:
        super().train(True)
        return self


class BiLstm(nn.Module):
    """A classifier of sentences: inputs ``[R, L, E + 1]`` to logits ``[R, C]``.

    The first E numbers of a position are a word vector. The last one is 1 for a word and 0 for padding. One LSTM reads
    the words forwards, one backwards. The largest value of each unit over all words goes to a linear layer. Padding
    comes last in both directions, so that it changes nothing.

    >>> network = BiLstm(width=4, classes=3, hidden=5).eval()
    >>> network(torch.ones(2, 7, 4 + 1)).shape
    torch.Size([2, 3])

    Args:
        width: E, the size of a word vector.
        classes: C, the number of classes.
        hidden: Units of each of the two LSTMs.
        dropout: Share of the units that training drops before the linear layer.
    """

    def __init__(self, width: int, classes: int, hidden: int = 300, dropout: float = 0.3):
        super().__init__()
        # Weights are stored under these names.
        self.onward = Lstm(width, hidden, batch_first=True)
        self.backward_ = Lstm(width, hidden, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits ``[R, C]`` of inputs ``[R, L, E + 1]``."""
        vectors, is_word = rows[..., :-1], rows[..., -1] > 0.5
        position = torch.arange(rows.shape[1], device=rows.device).expand_as(is_word)
        length = is_word.sum(1, keepdim=True)
        mirrored = torch.where(position < length, length - 1 - position, position)
        reversed_ = vectors.gather(1, mirrored[..., None].expand_as(vectors))
        # The maximum over words ignores their order, so the second LSTM's output is not reversed again.
        units = torch.cat([self.onward(vectors)[0], self.backward_(reversed_)[0]], 2)
        largest = units.masked_fill(~is_word[..., None], -1).max(1).values  # units are between -1 and 1
        logits: Tensor = self.out(self.dropout(largest))
        return logits
