"""Any sequence classifier of Hugging Face's transformers, asked through its word vectors."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from holdfast.errors import HoldfastError, first_line
from holdfast.features import FIXED
from holdfast.text.model import Reader, Reading, TextModel, embed
from holdfast.text.words import Word

_PROBES = (1, 7)  # words of the texts that a model is tried on
_AGREE = 1e-2  # of the largest logit: rounding, of half precision too, no more


def huggingface(
    model: Any, tokenizer: Any, classes: Sequence[str] | None = None, *, device: torch.device | str | None = None
) -> TextModel:
    """An ``AutoModelForSequenceClassification`` and its tokenizer as a ``TextModel``.

    Perturbations move the vectors that the model looks its tokens up in. Special tokens and padding never move; the
    pieces of one word move together. ``classes`` are the model's own ``id2label`` if not given. The model is put into
    eval mode, its weights are frozen, and it stays where it is or goes to ``device``.

    >>> model = hf.text.huggingface(AutoModelForSequenceClassification.from_pretrained(name),
    ...                             AutoTokenizer.from_pretrained(name))
    """
    if "inputs_embeds" not in inspect.signature(model.forward).parameters:
        raise HoldfastError(f"{type(model).__name__} takes no inputs_embeds: its words cannot be moved.")
    if not getattr(tokenizer, "is_fast", False):
        raise HoldfastError(f"{type(tokenizer).__name__} does not tell which pieces are a word: use a fast tokenizer.")
    model = model.eval().requires_grad_(False)
    model = model if device is None else model.to(device)
    reader = PieceReader(model, tokenizer)
    if classes is None:
        told = getattr(model.config, "id2label", None) or {}
        classes = [str(told[number]) for number in sorted(told)]
    text_model = TextModel(reader, ThroughVectors(model), classes)
    _check_agreement(text_model, model, tokenizer)
    return text_model


def transformer(name: str, *, device: torch.device | str = "cpu") -> TextModel:
    """A sequence classifier by its name on the hub, or from a folder; weights only as safetensors."""
    try:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer  # an optional extra
    except ImportError as error:
        raise HoldfastError('transformers are not installed: pip install "holdfast[text]".') from error
    try:
        model, told = AutoModelForSequenceClassification.from_pretrained(
            name, use_safetensors=True, output_loading_info=True, trust_remote_code=False
        )
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError, ImportError, RuntimeError, SafetensorError) as error:
        raise HoldfastError(f"cannot load {name}: {first_line(error)}") from error
    if told["missing_keys"]:
        lacking = sorted(told["missing_keys"])[0]
        raise HoldfastError(f"{name} has no trained head for classification: {lacking} is not in its weights.")
    return huggingface(model, tokenizer, device=device)


class PieceReader(Reader):
    """Words as a fast tokenizer cuts them, each one or more pieces."""

    def __init__(self, model: Any, tokenizer: Any):
        self.tokenizer = tokenizer
        self.vectors = model.get_input_embeddings().weight.detach().float().cpu()
        self.longest = min(int(tokenizer.model_max_length), _positions(model))
        if len(tokenizer) > len(self.vectors):
            raise HoldfastError(
                f"the tokenizer knows {len(tokenizer)} tokens, the model {len(self.vectors)}: they are not a pair."
            )
        self.names = _names(tokenizer, len(self.vectors))
        self._special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}

    def __call__(self, text: str) -> Reading:
        whole = self.tokenizer(text, truncation=False, verbose=False).encodings[0]
        cut = self.tokenizer(text, truncation=True, max_length=self.longest).encodings[0]
        spans = self._spans(text, cut)
        place = {word: at for at, word in enumerate(spans)}
        words = tuple(Word(text[start:end], start, end) for start, end in spans.values())
        owner = tuple(
            FIXED if row in self._special else place.get(word, FIXED)
            for row, word in zip(cut.ids, cut.word_ids, strict=True)
        )
        unknown = self.tokenizer.unk_token_id
        known = any(row != unknown for row, one in zip(cut.ids, owner, strict=True) if one != FIXED)
        return Reading(words, tuple(cut.ids), owner, len(self._spans(text, whole)) - len(spans), known)

    def _spans(self, text: str, read: Any) -> dict[int, tuple[int, int]]:
        """Where each word of an encoding stands, without the blanks that some tokenizers count to it."""
        found = {}
        for row, word in zip(read.ids, read.word_ids, strict=True):
            if word is not None and row not in self._special and word not in found:
                start, end = read.word_to_chars(word)
                inside = text[start:end].strip()
                start = text.index(inside, start)
                found[word] = (start, start + len(inside))
        return {word: span for word, span in found.items() if span[0] < span[1]}


class ThroughVectors(nn.Module):
    """A transformer as a network over ``[R, L, E + 1]``: vectors, and whether a token stands there."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.train(model.training)

    def forward(self, rows: Tensor) -> Tensor:
        there = (rows[..., -1] > 0.5).long()
        logits: Tensor = self.model(inputs_embeds=rows[..., :-1], attention_mask=there).logits
        return logits


def _names(tokenizer: Any, count: int) -> tuple[str | None, ...]:
    """What the tokens that are whole words are called."""
    tokens = tokenizer.convert_ids_to_tokens(list(range(min(count, len(tokenizer)))))
    special = set(tokenizer.all_special_ids)
    begun = {mark: sum(str(token).startswith(mark) for token in tokens) for mark in ("Ġ", "▁")}
    mark = next((mark for mark, times in begun.items() if 10 * times > len(tokens)), "")  # of words, not letters
    names = [
        token.removeprefix(mark)
        if row not in special and token is not None and token.startswith(mark) and token.removeprefix(mark).isalpha()
        else None
        for row, token in enumerate(tokens)
    ]
    return (*names, *[None] * (count - len(names)))


def _positions(model: Any) -> int:
    """How many tokens the model has places for; some of its table may be kept for padding, as RoBERTa's first two."""
    told = getattr(model.config, "max_position_embeddings", None) or 0
    places = [told] if told > 0 else []
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.rsplit(".", 1)[-1] in ("position_embeddings", "embed_positions"):
            kept = 0 if module.padding_idx is None else module.padding_idx + 1
            places.append(module.num_embeddings - kept)
    return min(places, default=512)


def _check_agreement(text_model: TextModel, model: Any, tokenizer: Any) -> None:
    """Refuse a model that answers otherwise through its vectors, padding beside it, than to its own tokens."""
    ordinary = [row for row, name in enumerate(text_model.reader.names) if name is not None]
    if not ordinary:
        raise HoldfastError(f"the {type(tokenizer).__name__} knows no word: are all its files there?")
    probes = [tokenizer.decode(ordinary[:: max(1, len(ordinary) // count)][:count]) for count in _PROBES]
    device = text_model.classifier.device
    read = [torch.tensor(text_model.reader(text).rows) for text in probes]
    rows = nn.utils.rnn.pad_sequence(read, batch_first=True, padding_value=-1)
    answers = [model(**tokenizer(text, return_tensors="pt").to(device)) for text in probes]
    if not hasattr(answers[0], "logits"):
        raise HoldfastError(f"{type(model).__name__} returns no logits: use an AutoModelForSequenceClassification.")
    ours = text_model.classifier(embed(rows, text_model.reader.vectors).to(device))
    for mine, answer in zip(ours, answers, strict=True):
        own = answer.logits[0].to(ours)
        off = float((mine - own).abs().max())
        if not off <= _AGREE * float(own.abs().max()) + 1e-5:
            raise HoldfastError(
                f"{type(model).__name__} answers through inputs_embeds otherwise than to its own tokens (logits differ "
                f"by {off:.2g}): it does not take padding or vectors as they are meant."
            )
