from __future__ import annotations

from holdfast.prose import capital, counted, listed, visible


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "example") for n in (0, 1, 2)] == ["0 examples", "1 example", "2 examples"]
    assert counted(1, "loss", "losses") == "1 loss"
    assert counted(2, "loss", "losses") == "2 losses"


def test_names_with_commas_are_quoted_in_lists() -> None:
    assert listed(["a, b"]) == "a, b"
    assert listed(["a, b", "c"], "or") == "“a, b” or c"
    assert capital("éa") == "Éa"


def test_characters_that_are_not_shown_become_escapes_and_others_stay() -> None:
    assert visible("\x00\x1b[0m\x7f\x85") == r"\x00\x1b[0m\x7f\x85"
    assert visible("a\u202eb\u2066c\ufeff") == r"a\u202eb\u2066c\ufeff"
    assert visible("\ud800") == r"\ud800", "half a character cannot be written to a file"
    family = (
        "\U0001f468\u200d\U0001f469 S\u0304r \u4e2d\u6587 \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\n\tx"
    )
    assert visible(family) == family, "joined emoji, combining marks, scripts and line ends"
