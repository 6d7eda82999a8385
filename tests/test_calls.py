"""The way from a call to the network is as short as docs/design.md says."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch
from torch import Tensor, nn

import holdfast as hf

PACKAGE = str(Path(hf.__file__).parent)
DESIGN = (Path(__file__).parents[1] / "docs" / "design.md").read_text(encoding="utf-8")


class Traced(nn.Linear):
    """Notes how many functions of the package lie between the caller and the network."""

    frames = 0

    def forward(self, x: Tensor) -> Tensor:
        calls = [frame for frame in traceback.extract_stack() if frame.filename.startswith(PACKAGE)]
        self.frames = max(self.frames, len(calls))
        return super().forward(x)


def _asked() -> tuple[Traced, hf.Cases]:
    torch.manual_seed(0)
    net = Traced(12, 4).eval()
    cases = hf.TorchModel(net, (0, 1)).ask(torch.rand(2, 12))
    net.frames = 0
    return net, cases


def test_an_explainer() -> None:
    net, cases = _asked()
    hf.GreedyAS(step=0.2)(cases)
    assert f"`hf.GreedyAS()(cases)`: {net.frames} frames" in DESIGN


def test_a_judge() -> None:
    net, cases = _asked()
    hf.Judge(steps=10, classes=1, starts=1)(cases, torch.ones(2, 1, 12, dtype=torch.bool))
    assert f"`hf.Judge()(cases, subsets)`: {net.frames} frames" in DESIGN
