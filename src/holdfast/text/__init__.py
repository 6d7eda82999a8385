"""Texts: words as features, readers of words, and classifiers over word vectors."""

from holdfast.text.huggingface import huggingface, transformer
from holdfast.text.model import Reader, Reading, Sentences, TextModel, WordReader, embed
from holdfast.text.network import BiLstm
from holdfast.text.substitution import Substitution, by_word, substitute
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
    "by_word",
    "embed",
    "huggingface",
    "split",
    "substitute",
    "transformer",
]
