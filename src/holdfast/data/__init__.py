"""Data sets, networks and weights."""

from holdfast.data.digits import Digits, mnist, mnist_cnn

__all__ = ["Digits", "mnist", "mnist_cnn"]
