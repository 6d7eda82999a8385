"""Cases of a small network and rankings of them, shared by the tests of analyses."""

from __future__ import annotations

import torch
from torch import Tensor

import holdfast as hf
from toys import small_net


def small_cases(n: int = 4) -> hf.Cases:
    x = torch.rand(n, 12, generator=torch.Generator().manual_seed(0)).double()
    return hf.TorchModel(small_net(), (0, 1)).ask(x)


def ranked(scores: Tensor) -> hf.Ranking:
    return hf.Ranking.by_score(small_cases(len(scores)), scores.double())
