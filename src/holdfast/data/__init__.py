"""Data sets, networks and weights."""

from holdfast.data.digits import Digits, fashion_mnist, mnist, mnist_cnn

__all__ = ["Digits", "fashion_mnist", "mnist", "mnist_cnn"]
