"""Data sets, networks and weights."""

from holdfast.data.digits import Digits, fashion_mnist, mnist, mnist_cnn
from holdfast.data.imagenet import imagenet_classifier, imagenet_names, photos
from holdfast.data.photographs import Photos, image_folder, read_photo
from holdfast.data.rationales import movie_passages, movie_reviews
from holdfast.data.tabular import Table, adult, adult_trees, breast_cancer, california_housing, wine
from holdfast.data.texts import Texts, labelled, newsgroups, yahoo_answers
from holdfast.data.topics import load_bilstm, topic_sentences, topics_bilstm
from holdfast.data.zoo import zoo_classifier

__all__ = [
    "Digits",
    "Photos",
    "Table",
    "Texts",
    "adult",
    "adult_trees",
    "breast_cancer",
    "california_housing",
    "fashion_mnist",
    "image_folder",
    "imagenet_classifier",
    "imagenet_names",
    "labelled",
    "load_bilstm",
    "mnist",
    "mnist_cnn",
    "movie_passages",
    "movie_reviews",
    "newsgroups",
    "photos",
    "read_photo",
    "topic_sentences",
    "topics_bilstm",
    "wine",
    "yahoo_answers",
    "zoo_classifier",
]
