"""Colours as people see them: distances in CIELAB, in grey and with the three kinds of colour blindness."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Machado, Oliveira & Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def rgb(colour: str) -> Array:
    """Return a colour such as ``#c2410c`` as three numbers from 0 to 1."""
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def linear(colour: Array) -> Array:
    """Return sRGB values as amounts of light."""
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def lab(colour: Array, vision: str = "full") -> Array:
    """Return the CIELAB coordinates of an sRGB colour, as people with this vision see it."""
    seen = (linear(colour) @ VISION[vision].T).clip(0, 1)
    ratio = seen @ _XYZ.T / _WHITE
    root = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def lightness(colour: str) -> float:
    """Return the lightness of a colour: what is left of it in grey, from 0 to 100."""
    return float(lab(rgb(colour))[0])


def contrast(colour: str, background: str = "#ffffff") -> float:
    """Return the contrast of two colours, as WCAG defines it, from 1 to 21."""
    light, dark = sorted((float(linear(rgb(one)) @ _XYZ[1]) for one in (colour, background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def nearest(colours: list[str], vision: str) -> float:
    """Return the smallest distance of two of the colours in CIELAB, as people with this vision see them."""
    seen = [lab(rgb(colour), vision) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))


def nearest_in_grey(colours: list[str]) -> float:
    """Return the smallest difference of the lightness of two of the colours."""
    return min(abs(lightness(one) - lightness(other)) for one, other in combinations(colours, 2))
