"""The paper's kind of sentence network: a bidirectional LSTM over word vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Lstm(nn.LSTM):
    """An LSTM that cuDNN gives gradients of: it refuses them outside training mode, which changes nothing here."""

    def train(self, mode: bool = True) -> Lstm:
        super().train(True)
        return self


class BiLstm(nn.Module):
    """Logits of ``rows [R, L, E + 1]``: word vectors, and a last number that is 1 where a word stands, 0 in padding.

    One LSTM reads the words forwards, one backwards; the largest value of each unit over the words goes to a linear
    layer. Padding comes last both ways, so that it changes nothing.
    """

    def __init__(self, width: int, classes: int, hidden: int = 300, dropout: float = 0.3):
        super().__init__()
        self.onward = Lstm(width, hidden, batch_first=True)
        self.backward_ = Lstm(width, hidden, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, rows: Tensor) -> Tensor:
        vectors, there = rows[..., :-1], rows[..., -1] > 0.5
        place = torch.arange(rows.shape[1], device=rows.device).expand_as(there)
        length = there.sum(1, keepdim=True)
        turned = torch.where(place < length, length - 1 - place, place)
        reversed_ = vectors.gather(1, turned[..., None].expand_as(vectors))
        # In which order the units see the words no longer matters once the largest is taken.
        units = torch.cat([self.onward(vectors)[0], self.backward_(reversed_)[0]], 2)
        largest = units.masked_fill(~there[..., None], -1).max(1).values  # they lie between -1 and 1
        logits: Tensor = self.out(self.dropout(largest))
        return logits
