"""Data sets, networks and weights."""

from holdfast.data.mnist import Digits, mnist, mnist_cnn

__all__ = ["Digits", "mnist", "mnist_cnn"]
