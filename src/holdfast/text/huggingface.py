"""Sequence classifiers of Hugging Face transformers, perturbed through their token embeddings."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from holdfast.errors import HoldfastError
from holdfast.features import FIXED
from holdfast.files import MEGABYTE, reading
from holdfast.text.model import Reader, Reading, TextModel, embed
from holdfast.text.words import Word

_PROBES = (1, 7)  # lengths of the texts that a model is tested on
_MOST_LAYERS, _MOST_LABELS = 1_000, 100_000  # each takes memory of its own, even without weights
_MOST_BUFFERS = 2**24  # numbers that a network keeps beside its weights, such as those of positions
_LARGEST = 65_536 * MEGABYTE  # bytes of one file of weights
_TOLERANCE = 1e-2  # of the largest logit: enough for the rounding of half precision


def huggingface(
    model: Any, tokenizer: Any, classes: Sequence[str] | None = None, *, device: torch.device | str | None = None
) -> TextModel:
    """Make a ``TextModel`` of a sequence classifier and its tokenizer.

    Perturbations move the embeddings of tokens. Special tokens and padding never move. The tokens of one word move
    together. The model is put into eval mode, and its weights are frozen. It is tested on two texts: its logits must be
    the same whether it gets tokens or embeddings with padding::

        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        model = hf.text.huggingface(
            AutoModelForSequenceClassification.from_pretrained(name), AutoTokenizer.from_pretrained(name)
        )

    Args:
        model: An ``AutoModelForSequenceClassification`` whose ``forward`` takes ``inputs_embeds``.
        tokenizer: Its fast tokenizer.
        classes: Names of the classes. None: those in the model's configuration (``id2label``).
        device: Where the model computes. None: where it is.

    Returns:
        The model of texts.

    Raises:
        HoldfastError: The model takes no embeddings, ignores the attention mask or returns no logits, or the tokenizer
            is slow or belongs to another model.
    """
    if "inputs_embeds" not in inspect.signature(model.forward).parameters:
        raise HoldfastError(f"{type(model).__name__} takes no inputs_embeds, which perturbations need.")
    if not getattr(tokenizer, "is_fast", False):
        raise HoldfastError(f"{type(tokenizer).__name__} does not say which tokens form a word: use a fast tokenizer.")
    model = model.eval().requires_grad_(False)
    model = model if device is None else model.to(device)
    reader = TokenReader(model, tokenizer)
    if classes is None:
        names = getattr(model.config, "id2label", None) or {}
        classes = [str(names[number]) for number in sorted(names)]
    text_model = TextModel(reader, ThroughVectors(model), classes)
    _check_agreement(text_model, model, tokenizer)
    return text_model


def transformer(name: str, *, device: torch.device | str = "cpu") -> TextModel:
    """Load a sequence classifier of transformers.

    Weights are read from safetensors only, and no code of the model's repository is run.

    Args:
        name: Its name on the Hugging Face hub, or a folder.
        device: Where the model computes.

    Returns:
        The model of texts, as ``huggingface`` makes it.

    Raises:
        HoldfastError: transformers is not installed, or the model cannot be loaded or has no trained classifier.
    """
    try:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer  # an optional extra
    except ImportError as error:
        raise HoldfastError('a network of Hugging Face requires transformers: pip install "holdfast[text]".') from error
    with reading(name, "the network"):
        if Path(name).is_dir():
            _check_folder(Path(name))
        model, loading = AutoModelForSequenceClassification.from_pretrained(
            name, use_safetensors=True, output_loading_info=True, trust_remote_code=False
        )
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    if loading["missing_keys"]:
        missing = sorted(loading["missing_keys"])[0]
        raise HoldfastError(f"{name} has no trained head for classification: {missing} is not in its weights.")
    return huggingface(model, tokenizer, device=device)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that lacks weights before memory is taken for them."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    path = folder / "config.json"
    with reading(path, "the network's settings", 16 * MEGABYTE):
        given = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(given, dict):
            raise ValueError("it should be a table of settings")
        for key, value in given.items():
            most = _MOST_LABELS if key == "num_labels" else _MOST_LAYERS if "layer" in key else None
            if most is not None and isinstance(value, int) and value > most:
                raise ValueError(f"{key} should be at most {most:,}, got {value:,}")
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return  # transformers says so
    held = sum(map(_numbers_in, files)) * (8 if "quantization_config" in given else 1)  # one holds several
    with torch.device("meta"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    needed = sum(one.numel() for one in model.parameters())
    if needed > held or sum(one.numel() for one in model.buffers()) > _MOST_BUFFERS:
        raise HoldfastError(
            f"{folder} has no trained head for classification or lacks other weights: config.json describes "
            f"{needed:,} numbers, and the safetensors hold {held:,}."
        )


def _numbers_in(path: Path) -> int:
    """Return how many numbers a file of weights holds."""
    with reading(path, "the network's weights", _LARGEST), safe_open(path, "pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118  # it is no dict


class TokenReader(Reader):
    """A reader that splits texts with a fast tokenizer: each word is one token or more.

    Args:
        model: The classifier, for its token embeddings and its longest input.
        tokenizer: Its fast tokenizer.

    Raises:
        HoldfastError: The tokenizer has more tokens than the model has embeddings.
    """

    def __init__(self, model: Any, tokenizer: Any):
        self.tokenizer = tokenizer
        self.vectors = model.get_input_embeddings().weight.detach().float().cpu()
        self.longest = min(int(tokenizer.model_max_length), _positions(model))
        if len(tokenizer) > len(self.vectors):
            raise HoldfastError(
                f"the tokenizer knows {len(tokenizer)} tokens and the model {len(self.vectors)}: use the tokenizer of "
                "this model."
            )
        self.names = _names(tokenizer, len(self.vectors))
        self._special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}

    def __call__(self, text: str) -> Reading:
        whole = self.tokenizer(text, truncation=False, verbose=False).encodings[0]
        cut = self.tokenizer(text, truncation=True, max_length=self.longest).encodings[0]
        spans = self._spans(text, cut)
        index = {word: number for number, word in enumerate(spans)}
        words = tuple(Word(text[start:end], start, end) for start, end in spans.values())
        owner = tuple(
            FIXED if row in self._special else index.get(word, FIXED)
            for row, word in zip(cut.ids, cut.word_ids, strict=True)
        )
        unknown = self.tokenizer.unk_token_id
        known = any(row != unknown for row, word in zip(cut.ids, owner, strict=True) if word != FIXED)
        return Reading(words, tuple(cut.ids), owner, len(self._spans(text, whole)) - len(spans), known)

    def _spans(self, text: str, encoding: Any) -> dict[int, tuple[int, int]]:
        """Return where each word of an encoding is, without the blanks that some tokenizers count to it."""
        spans = {}
        for row, word in zip(encoding.ids, encoding.word_ids, strict=True):
            if word is not None and row not in self._special and word not in spans:
                start, end = encoding.word_to_chars(word)
                inside = text[start:end].strip()
                start = text.index(inside, start)
                spans[word] = (start, start + len(inside))
        return {word: span for word, span in spans.items() if span[0] < span[1]}


class ThroughVectors(nn.Module):
    """A transformer as a network over ``[R, L, E + 1]``: token embeddings, and whether there is a token.

    The name of this class is part of the keys of stored results.

    Args:
        model: The classifier. It takes ``inputs_embeds`` and ``attention_mask``.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.train(model.training)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits ``[R, C]`` of inputs ``[R, L, E + 1]``."""
        is_token = (rows[..., -1] > 0.5).long()
        logits: Tensor = self.model(inputs_embeds=rows[..., :-1], attention_mask=is_token).logits
        return logits


def _names(tokenizer: Any, count: int) -> tuple[str | None, ...]:
    """Return the words of those tokens that are whole words, and None for the others."""
    tokens = tokenizer.convert_ids_to_tokens(list(range(min(count, len(tokenizer)))))
    special = set(tokenizer.all_special_ids)
    # Some tokenizers mark tokens that begin a word. A mark on few tokens is just a character.
    marked = {mark: sum(str(token).startswith(mark) for token in tokens) for mark in ("Ġ", "▁")}
    mark = next((mark for mark, times in marked.items() if 10 * times > len(tokens)), "")
    names = [
        token.removeprefix(mark)
        if row not in special and token is not None and token.startswith(mark) and token.removeprefix(mark).isalpha()
        else None
        for row, token in enumerate(tokens)
    ]
    return (*names, *[None] * (count - len(names)))


def _positions(model: Any) -> int:
    """Return the most tokens that the model can read; position tables may reserve rows for padding, as RoBERTa's do."""
    stated = getattr(model.config, "max_position_embeddings", None) or 0
    limits = [stated] if stated > 0 else []
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.rsplit(".", 1)[-1] in ("position_embeddings", "embed_positions"):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - reserved)
    return min(limits, default=512)


def _check_agreement(text_model: TextModel, model: Any, tokenizer: Any) -> None:
    """Refuse a model whose logits for padded embeddings differ from those for its own tokens."""
    ordinary = [row for row, name in enumerate(text_model.reader.names) if name is not None]
    if not ordinary:
        raise HoldfastError(f"the {type(tokenizer).__name__} knows no word: are all its files there?")
    probes = [tokenizer.decode(ordinary[:: max(1, len(ordinary) // count)][:count]) for count in _PROBES]
    device = text_model.classifier.device
    tokens = [torch.tensor(text_model.reader(text).rows) for text in probes]
    rows = nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=-1)
    answers = [model(**tokenizer(text, return_tensors="pt").to(device)) for text in probes]
    if not hasattr(answers[0], "logits"):
        raise HoldfastError(f"{type(model).__name__} returns no logits: use an AutoModelForSequenceClassification.")
    embedded = text_model.classifier(embed(rows, text_model.reader.vectors).to(device))
    for logits, answer in zip(embedded, answers, strict=True):
        expected = answer.logits[0].to(embedded)
        difference = float((logits - expected).abs().max())
        if not difference <= _TOLERANCE * float(expected.abs().max()) + 1e-5:
            raise HoldfastError(
                f"{type(model).__name__} answers through inputs_embeds otherwise than to its own tokens (logits differ "
                f"by {difference:.2g}): it must respect attention_mask and use inputs_embeds as they are."
            )
