"""Texts: words as features, and what classifiers of texts make of them."""

from holdfast.text.huggingface import huggingface, transformer
from holdfast.text.model import Reader, Reading, Sentences, TextModel, WordReader
from holdfast.text.network import BiLstm
from holdfast.text.substitution import Substitution, substitute
from holdfast.text.words import Vocabulary, Word, split

__all__ = [
    "BiLstm",
    "Reader",
    "Reading",
    "Sentences",
    "Substitution",
    "TextModel",
    "Vocabulary",
    "Word",
    "WordReader",
    "huggingface",
    "split",
    "substitute",
    "transformer",
]
