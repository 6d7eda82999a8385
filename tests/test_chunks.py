from __future__ import annotations

import pytest
import torch

from holdfast.chunks import chunked


def test_pieces_cover_everything_once() -> None:
    pieces = [piece for piece, _ in chunked(lambda piece: None, 10, 4)]
    assert [i for piece in pieces for i in range(piece.start, piece.stop)] == list(range(10))


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), RuntimeError("can't allocate memory: 9 GB")]
)
def test_a_piece_that_does_not_fit_is_halved(error: Exception) -> None:
    sizes = []

    def work(piece: slice) -> int:
        size = len(range(piece.start, piece.stop))
        sizes.append(size)
        if size > 3:
            raise error
        return size

    assert sum(done for _, done in chunked(work, 20, 16)) == 20
    assert sizes[:4] == [16, 8, 4, 2]
    assert max(sizes[4:]) <= 2


def test_other_errors_and_single_rows_pass_through() -> None:
    def broken(piece: slice) -> None:
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        list(chunked(broken, 4, 2))

    def too_big(piece: slice) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        list(chunked(too_big, 4, 2))
