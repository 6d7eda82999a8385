"""Pictures of small images: directions are told apart in grey and with colour blindness, on dark and lit pixels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from colour_vision import VISION, Array, lab
from holdfast.modalities.image import mark


def _shown() -> dict[str, Array]:
    """The colour of a pixel by what happens to it. A dark pixel is raised, a lit one lowered."""
    base = np.array([0.0, 1.0, 0.0, 1.0, 0.0])[None, :, None].repeat(3, 2)
    change = torch.tensor([[[0.5, -0.5, 0.0, 0.0, 0.0]]])
    marked = torch.tensor([[[True, True, True, False, False]]])
    pixels = mark(base, change, marked)[0]
    return dict(zip(("raised", "lowered", "unmoved", "lit", "dark"), pixels, strict=True))


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_directions_are_distinct(vision: str) -> None:
    seen = {name: lab(pixel, vision) for name, pixel in _shown().items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 15, (one, other)


def test_directions_are_distinct_in_grey() -> None:
    light = {name: float(lab(pixel)[0]) for name, pixel in _shown().items()}
    for one, other in combinations(light, 2):
        assert abs(light[one] - light[other]) > 6, (one, other, light)
    assert light["raised"] - light["lowered"] > 10
