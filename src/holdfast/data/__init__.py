"""Data sets, networks and weights."""

from holdfast.data.digits import Digits, fashion_mnist, mnist, mnist_cnn
from holdfast.data.imagenet import imagenet_classifier, imagenet_names, photos
from holdfast.data.photographs import Photos, image_folder, read_photo
from holdfast.data.zoo import zoo_classifier

__all__ = [
    "Digits",
    "Photos",
    "fashion_mnist",
    "image_folder",
    "imagenet_classifier",
    "imagenet_names",
    "mnist",
    "mnist_cnn",
    "photos",
    "read_photo",
    "zoo_classifier",
]
