"""Figures that Hsieh et al. (ICLR 2021) published, to stand beside ours. Network, judge and digits were others."""

from __future__ import annotations

_MNIST_AREAS: dict[str, dict[str, float]] = {
    "Robustness-S̄r": {
        "Grad": 88.00,
        "IG": 85.98,
        "EG": 93.24,
        "SHAP": 75.48,
        "LOO": 74.14,
        "BBMP": 78.58,
        "CFX": 69.88,
        "Random": 64.44,
        "Greedy-AS": 98.01,
        "Greedy": 83.57,
        "One-Step Banzhaf": 86.37,
    },
    "Robustness-Sr": {
        "Grad": 91.72,
        "IG": 91.97,
        "EG": 91.05,
        "SHAP": 101.49,
        "LOO": 104.38,
        "BBMP": 176.61,
        "CFX": 102.81,
        "Random": 193.75,
        "Greedy-AS": 82.81,
        "Greedy": 171.56,
        "One-Step Banzhaf": 83.59,
    },
    "Insertion": {
        "Grad": 174.18,
        "IG": 177.12,
        "EG": 228.64,
        "SHAP": 125.93,
        "LOO": 121.99,
        "BBMP": 108.97,
        "CFX": 102.05,
        "Random": 51.71,
        "Greedy-AS": 270.75,
    },
    "Deletion": {
        "Grad": 153.58,
        "IG": 150.90,
        "EG": 113.21,
        "SHAP": 213.32,
        "LOO": 274.77,
        "BBMP": 587.08,
        "CFX": 137.69,
        "Random": 312.07,
        "Greedy-AS": 94.24,
    },
}

# Rows of the paper's table of references: Insertion and Deletion of the methods in this order.
_ORDER = ("Grad", "IG", "SHAP", "LOO", "BBMP", "CFX", "EG", "Random", "Greedy-AS")
_MNIST_REFERENCES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "uniform": (
        (174.18, 177.12, 125.93, 121.99, 108.97, 102.05, 228.64, 51.71, 270.75),
        (153.58, 150.90, 213.32, 274.77, 587.08, 137.69, 113.21, 312.07, 94.24),
    ),
    "0": (
        (393.25, 802.57, 656.55, 706.63, 212.12, 81.59, 450.37, 120.65, 502.32),
        (214.81, 134.64, 66.36, 119.91, 362.95, 840.78, 138.57, 453.01, 252.44),
    ),
    "0.25": (
        (293.92, 424.45, 412.87, 453.29, 142.00, 77.33, 341.05, 78.73, 455.74),
        (162.24, 133.06, 115.88, 204.75, 442.23, 354.05, 161.28, 426.21, 90.89),
    ),
    "0.5": (
        (218.18, 317.55, 136.51, 189.87, 42.76, 86.80, 382.31, 49.15, 479.92),
        (209.83, 258.50, 271.11, 424.66, 549.11, 90.50, 195.47, 392.69, 155.59),
    ),
    "0.75": (
        (220.90, 204.92, 79.28, 125.73, 21.97, 163.46, 285.66, 67.35, 325.47),
        (305.17, 305.38, 481.67, 712.46, 708.93, 89.38, 250.57, 451.18, 176.85),
    ),
    "1": (
        (234.61, 206.54, 89.83, 128.71, 25.31, 229.02, 276.48, 81.44, 313.66),
        (364.01, 372.18, 647.68, 956.88, 823.90, 101.31, 310.50, 495.91, 223.99),
    ),
}
_MNIST_SANITY = {"Grad": 0.30, "IG": 0.30, "SHAP": 0.11, "LOO": 0.49, "BBMP": 0.17, "CFX": 0.26, "Greedy-AS": 0.18}
_MNIST_SENSITIVITY = {
    "Grad": 0.45,
    "IG": 0.38,
    "LOO": 0.31,
    "BBMP": 0.38,
    "SHAP": 0.52,
    "CFX": 0.57,
    "EG": 0.20,
    "Random": 0.85,
    "Greedy-AS": 0.61,
}
_TESTED = ("Grad", "IG", "SHAP", "LOO", "BBMP", "CFX")


def area(data: str | None, criterion: str, method: str) -> float | None:
    """The paper's area (its tables 1, 2 and the ablation)."""
    return _MNIST_AREAS.get(criterion, {}).get(method) if data == "mnist" else None


def verdict(data: str | None, criterion: str, method: str) -> str | None:
    """The paper's t-test of Greedy-AS against a method: on MNIST it won all of those it made."""
    return "win" if data == "mnist" and criterion in _MNIST_AREAS and method in _TESTED else None


def reference(data: str | None, criterion: str, value: str, method: str) -> float | None:
    """The paper's area of Insertion or Deletion under a reference value."""
    if data != "mnist" or value not in _MNIST_REFERENCES or method not in _ORDER:
        return None
    return _MNIST_REFERENCES[value][criterion == "Deletion"][_ORDER.index(method)]


def sanity(data: str | None, method: str) -> float | None:
    """The paper's rank correlation after the last layer was re-initialised."""
    return _MNIST_SANITY.get(method) if data == "mnist" else None


def sensitivity(data: str | None, method: str) -> float | None:
    """The paper's sensitivity; its radius is not stated."""
    return _MNIST_SENSITIVITY.get(method) if data == "mnist" else None
