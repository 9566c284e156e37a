"""Lists of rows made from a mask."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tilewright.integrations.transformers import v4  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")


def expected(mask: torch.Tensor) -> list[list[list[int]]]:
    """By plain loops."""
    batch, tokens, rows = mask.shape
    return [
        [[b * rows + r for r in range(rows) if mask[b, t, r] == 0] for t in range(tokens)]
        for b in range(batch)
    ]


def random_mask(batch: int, tokens: int, rows: int, hidden: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(batch * 1000 + tokens * 10 + rows)
    mask = torch.where(torch.rand(batch, tokens, rows, generator=generator) < 0.7, hidden, 0.0)
    mask[0, 0] = hidden
    mask[-1, -1] = 0
    return mask


@pytest.mark.parametrize("hidden", [-torch.inf, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 200), (2, 1, 70), (1, 37, 64), (3, 20, 129)])
def test_lists_name_the_visible_rows(shape: tuple[int, int, int], hidden: float) -> None:
    mask = random_mask(*shape, hidden)
    lists, lengths = v4.lists_of_mask(mask)
    assert lists.dtype == lengths.dtype == torch.int32 and lists.is_contiguous()
    assert lists.shape[:2] == lengths.shape == mask.shape[:2]
    for b, queries in enumerate(expected(mask)):
        for t, rows in enumerate(queries):
            assert lengths[b, t] == len(rows)
            assert lists[b, t].tolist() == rows + [-1] * (lists.shape[-1] - len(rows))


def test_no_tokens_have_no_lists() -> None:
    lists, lengths = v4.lists_of_mask(torch.zeros(2, 0, 9))
    assert lists.shape == (2, 0, 64) and lengths.shape == (2, 0)


def test_boolean_masks_name_the_same_rows() -> None:
    mask = random_mask(2, 9, 50, -torch.inf)
    for given, wanted in zip(
        v4.lists_of_mask(mask == 0), v4.lists_of_mask(mask), strict=True
    ):
        assert torch.equal(given, wanted)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = random_mask(2, 31, 75, -torch.inf)
    whole = v4.lists_of_mask(mask)
    monkeypatch.setattr(v4, "CHUNK_ELEMENTS", 4 * 2 * 75)
    assert all(torch.equal(a, b) for a, b in zip(whole, v4.lists_of_mask(mask), strict=True))
    monkeypatch.setattr(v4, "CHUNK_ELEMENTS", 1)
    assert all(torch.equal(a, b) for a, b in zip(whole, v4.lists_of_mask(mask), strict=True))


def test_a_window_gives_short_lists() -> None:
    tokens, window = 600, 128
    distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
    mask = torch.where((distance >= 0) & (distance < window), 0.0, -torch.inf)
    lists, lengths = v4.lists_of_mask(mask[None])
    assert lists.shape[-1] == window
    assert torch.equal(lengths[0], torch.arange(1, tokens + 1).clamp(max=window).int())


def test_widths_are_few_while_a_text_grows() -> None:
    widths = {v4.lists_of_mask(torch.zeros(1, 1, rows))[0].shape[-1] for rows in range(1, 257, 15)}
    assert widths == {64, 128, 192, 256}
