"""The data and the network that an experiment names."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from holdfast.analyses import Marks
from holdfast.chunks import Progress
from holdfast.data import (
    Digits,
    Photos,
    fashion_mnist,
    image_folder,
    imagenet_classifier,
    imagenet_names,
    mnist,
    mnist_cnn,
    photos,
)
from holdfast.data.digits import FASHION, load_weights
from holdfast.data.networks import mnist_cnn as mnist_network
from holdfast.data.rationales import marked_words, movie_passages
from holdfast.data.texts import read_texts
from holdfast.data.topics import load_bilstm, topic_sentences, topics_bilstm
from holdfast.data.train import train_cnn
from holdfast.data.zoo import cut_for, zoo_classifier
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.experiment.schema import Data, Settings
from holdfast.models.torch import TorchModel
from holdfast.text import Sentences, TextModel, transformer


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs ``x [N, *shape]`` and what each is called; texts with the model that reads them."""

    x: Tensor
    names: tuple[str, ...]
    read: Sentences | None = None
    text_model: TextModel | None = None
    marks: Marks | None = None

    def __len__(self) -> int:
        return len(self.x)


def examples_of(settings: Settings, limit: int | None = None, device: str = "cpu") -> Examples:
    """All examples that the experiment may ask about; of a folder of photographs, as many as it asks for.

    Texts come with their model, on the ``device``.
    """
    data = settings.data
    _check_network(settings)
    if data.is_text:
        return _texts(settings, device)
    if data.name == "photographs":
        found = _photographs(settings, limit)
        return Examples(found.x, found.names)
    digits = _digits(data)
    return Examples(digits.x, tuple(f"{data.name} #{number}" for number in range(len(digits))))


def wanted_of(settings: Settings, examples: Examples, limit: int | None) -> range:
    """Which of the examples the experiment is about, at most ``limit`` of them."""
    data = settings.data
    stop = data.first + min(data.count, limit or data.count)
    if (data.name == "photographs" or data.is_text) and data.first < len(examples):
        stop = min(stop, len(examples))  # there are as many as there are
    if stop > len(examples):
        raise HoldfastError(
            f"data.first = {data.first} and data.count = {data.count} ask for more than the {len(examples)} examples "
            "there are."
        )
    return range(data.first, stop)


def classes_of(settings: Settings, examples: Examples, model: TorchModel) -> tuple[str, ...]:
    """What the classes are called."""
    if examples.text_model is not None:
        return examples.text_model.classes or tuple(map(str, range(model.classes)))
    if settings.data.name == "photographs":
        return imagenet_names() if model.classes == 1000 else tuple(map(str, range(model.classes)))
    return FASHION if settings.data.name == "fashion-mnist" else tuple("0123456789")


def _photographs(settings: Settings, limit: int | None) -> Photos:
    data = settings.data
    size, crop = cut_for(settings.model.network)
    if data.root is None:
        return photos(size)
    return image_folder(data.root, size, limit=data.first + min(data.count, limit or data.count), crop=crop)


def _texts(settings: Settings, device: str) -> Examples:
    """The texts, topic by topic in turn, as the model reads them."""
    data = settings.data
    model, spans = _text_model(settings, device), {}
    if data.name == "eraser-movies":
        texts, marked = movie_passages(_named_root(data), most=data.most)
        spans = dict(zip(texts.names, marked, strict=True))
    else:
        texts = topic_sentences() if data.root is None else read_texts(data.root, most=50 * (data.first + data.count))
    texts = texts.cut(data.least, data.most)
    texts = texts.some([number for number, text in enumerate(texts.texts) if model.knows(text)]).in_turn()
    if not len(texts):
        raise HoldfastError(f"no text of {data.name} has {data.least} words, of which the network knows some.")
    number = {name.lower(): at for at, name in enumerate(model.classes)}
    same = all(name.lower() in number for name in texts.classes)
    if not same and spans:
        raise HoldfastError(
            f"people marked what is {' or '.join(texts.classes)}, and the network knows other classes: name one that "
            "was trained on movies with --weights."
        )
    if spans:  # what people marked is not for a prediction that they do not share
        own = torch.tensor([number[name.lower()] for name in texts.classes])[texts.y]
        texts = texts.some((model.ask(texts.texts).label.cpu() == own).nonzero()[:, 0].tolist())
    elif not same:
        warnings.warn(
            "the texts are of other classes than the network's: what it makes of them is explained, whatever it is.",
            HoldfastWarning,
            stacklevel=4,
        )
    wanted = texts.first(data.first + data.count)
    read = model.read(wanted.texts)
    _check_tops(settings, min(map(len, read.words)))
    marks = {name: {"people": marked_words(read.words[n], spans[name])} for n, name in enumerate(wanted.names) if spans}
    return Examples(read.x, wanted.names, read, model, Marks(marks) if marks else None)


def _check_tops(settings: Settings, fewest: int) -> None:
    """Refuse numbers of words that a text does not have."""
    asked = {"the largest of sizes": settings.sizes[-1]}
    if settings.analyses.substitution is not None:
        asked["analyses.substitution.top"] = settings.analyses.substitution.top
    if settings.gallery is not None:
        asked["gallery.top"] = settings.gallery.top
    for name, top in asked.items():
        if isinstance(top, int) and top >= fewest:
            raise HoldfastError(
                f"{name}, {top}, should be under the {fewest} words of the shortest text, so that some word is left to "
                "move: raise data.least."
            )


def _text_model(settings: Settings, device: str) -> TextModel:
    asked = settings.model
    if asked.network.startswith("huggingface:"):
        if asked.weights != "embedded":
            raise HoldfastError("model.weights is not for huggingface:NAME, which brings its own: leave it out.")
        return transformer(asked.network.removeprefix("huggingface:"), device=device)
    if asked.weights == "train":
        raise HoldfastError('model.weights should be "embedded" or a file: train one with holdfast train text-bilstm.')
    return topics_bilstm(device) if asked.weights == "embedded" else load_bilstm(asked.weights, device)


def _named_root(data: Data) -> str:
    if data.root is None:
        raise HoldfastError(f"{data.name} are not embedded: name their folder or archive with --data.")
    return data.root


def _digits(data: Data) -> Digits:
    if data.name == "fashion-mnist":
        if data.root is None:
            raise HoldfastError("Fashion-MNIST is not embedded: name the folder of its idx files with --data FOLDER.")
        return fashion_mnist(data.root)
    return mnist(data.root)


# ---------------------------------------------------------------------- networks


def _check_network(settings: Settings) -> None:
    data, asked = settings.data, settings.model.network.partition(":")[0]
    kinds: tuple[str, ...] = ("mnist-cnn",)
    if data.name == "photographs":
        kinds = ("efficientnet-lite0", "torchvision", "timm")
    elif data.is_text:
        kinds = ("text-bilstm", "huggingface")
    if asked not in kinds:
        told = [f"{kind}:NAME" if kind in ("torchvision", "timm", "huggingface") else kind for kind in kinds]
        listed = " or ".join(filter(None, (", ".join(told[:-1]), told[-1])))
        given = settings.model.network
        raise HoldfastError(f"model.network should be {listed} for {data.name}, got {given!r}.")
    if data.is_text != (settings.features.kind == "words"):
        raise HoldfastError(f'features.kind should {"" if data.is_text else "not "}be "words" for {data.name}.')


def classifier(
    settings: Settings, examples: Examples, folder: Path, device: str, train: bool, progress: Progress | None
) -> tuple[TorchModel, dict[str, str]]:
    """The network, and what is known about it."""
    asked = settings.model
    if examples.text_model is not None:
        least, most = settings.data.least, settings.data.most
        return examples.text_model.classifier, {
            "network": asked.network,
            "texts": f"the first {most} words of each, none of fewer than {least}",
        }
    if settings.data.name == "photographs":
        return _of_photographs(settings, device), {"network": asked.network}
    if asked.weights == "embedded":
        if settings.data.name != "mnist":
            raise HoldfastError('model.weights should be "train" or a file: the embedded network knows digits only.')
        return mnist_cnn().on(device), {}
    return _of_digits(settings, folder, device, train, progress)


def _of_photographs(settings: Settings, device: str) -> TorchModel:
    asked = settings.model
    if asked.network == "efficientnet-lite0":
        if asked.weights != "embedded":
            raise HoldfastError('model.weights should be "embedded" for efficientnet-lite0: they come in a package.')
        return imagenet_classifier(device)
    if asked.weights == "train":
        raise HoldfastError(f'model.weights should be "embedded" (the library\'s own) or a file for {asked.network}.')
    return zoo_classifier(asked.network, None if asked.weights == "embedded" else asked.weights, device)


def _of_digits(
    settings: Settings, folder: Path, device: str, train: bool, progress: Progress | None
) -> tuple[TorchModel, dict[str, str]]:
    asked = settings.model
    path = Path(asked.weights)
    if asked.weights == "train":
        content = json.dumps([settings.data.name, asked.model_dump()], sort_keys=True)
        path = folder / f"weights-{hashlib.sha256(content.encode()).hexdigest()[:8]}.safetensors"
        if not path.exists() and train:
            _train(settings, path, device, progress)
    network, about = mnist_network(), {}
    if path.exists() or asked.weights != "train":
        about = load_weights(network, path)
    return TorchModel(network.eval().requires_grad_(False), bounds=(0, 1)).on(device), about


def _train(settings: Settings, path: Path, device: str, progress: Progress | None) -> None:
    if settings.data.root is None:
        raise HoldfastError("training needs the training split: name the folder of its idx files with --data FOLDER.")
    load: Callable[..., Digits] = fashion_mnist if settings.data.name == "fashion-mnist" else mnist
    training, test = (load(settings.data.root, split=split) for split in ("train", "test"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")  # whole or not at all
        train_cnn(
            training,
            test,
            part,
            epochs=settings.model.epochs,
            seed=settings.model.seed,
            device=device,
            progress=None if progress is None else lambda done, total, _: progress(done, total),
        )
        part.replace(path)
    except OSError as error:
        raise HoldfastError(f"cannot keep the trained network in {path}: {error.strerror or error}.") from error
