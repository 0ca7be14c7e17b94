"""Tiles cover an image, blend without seams, and come near the whole."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import lcv
from lcv.models.types import FlowOutput
from lcv.predict import tiles
from lcv.predict.matching import Encoded, Wanted
from lcv.predict.predictor import Predictor
from lcv.predict.tiles import OVERLAP, Tiling, _weights, make_tiling, match_tiles, median_shift
from testing.shared import shared


class Known:
    """A matcher that knows the flow of every image by its colours: (r, g) − 100 is the motion."""

    least = 57

    def __init__(self) -> None:
        self.calls: list[tuple[torch.Tensor, torch.Tensor | None]] = []

    def match(
        self, first: Encoded, second: Encoded, start: torch.Tensor | None = None
    ) -> FlowOutput:
        self.calls.append((first.image, start))
        flow = first.image[:, :2].float() - 100
        return FlowOutput(flow, low=flow[:, :, ::8, ::8])


@given(
    height=st.integers(57, 2000),
    width=st.integers(57, 2000),
    side=st.sampled_from([64, 256, 512, 1024]),
)
def test_tiles_cover_the_image_and_weights_sum_to_one(height, width, side):
    tiling = make_tiling(height, width, side, 57)
    for starts, length, extent in (
        (tiling.tops, height, tiling.height),
        (tiling.lefts, width, tiling.width),
    ):
        assert extent == min(side, length)
        assert starts[0] == 0
        assert starts[-1] + extent == length
        steps = np.diff(starts)
        assert len(starts) == 1 or steps.max() <= (1 - OVERLAP) * extent + 1
        total = torch.zeros(length)
        for start, weight in zip(
            starts, _weights(starts, extent, length, torch.device("cpu")), strict=True
        ):
            assert (weight > 0).all()
            total[start : start + extent] += weight
        assert torch.allclose(total, torch.ones(length), atol=1e-5)
    small_h, small_w = tiling.coarse
    assert small_h >= 57
    assert small_w >= 57
    if min(height, width) > 512 and side >= 256:
        assert small_h * small_w <= tiling.height * tiling.width


def test_a_flow_that_tiles_agree_on_comes_out_unchanged(monkeypatch):
    monkeypatch.setattr(tiles, "median_shift", lambda _: (0, 0))
    torch.manual_seed(0)
    image = torch.randint(80, 120, (1, 3, 200, 330)).float()
    tiling = make_tiling(200, 330, 96, 57)
    flows = match_tiles(Known(), Encoded(image), Encoded(image), tiling, Wanted())
    assert torch.allclose(flows.flow, image[:, :2] - 100, atol=1e-4)


def test_tiles_start_from_the_coarse_flow_and_are_moved_by_it():
    """A constant motion of (9, −6): the tile of frame 2 lies there, and nothing is left to find."""
    image1 = torch.full((1, 3, 160, 240), 100.0)
    image1[:, 0], image1[:, 1] = 109, 94
    matcher = Known()
    tiling = make_tiling(160, 240, 96, 57)
    flows = match_tiles(matcher, Encoded(image1), Encoded(image1), tiling, Wanted())
    coarse, matched = matcher.calls[0], matcher.calls[1:]
    assert coarse[1] is None
    assert coarse[0].shape[2:] == tiling.coarse
    assert len(matched) == tiling.number
    # (9, −6) in pixels of the coarse image is more in the whole: the scale goes on top.
    scale = torch.tensor([240 / tiling.coarse[1], 160 / tiling.coarse[0]])
    motion = torch.tensor([9.0, -6.0]) * scale
    shift = motion.round()
    inner = matched[len(tiling.lefts) + 1]  # second row and column: free to move either way
    assert torch.allclose(inner[1][0, :, 0, 0], (motion - shift) / 8, atol=1e-4)
    # Known answers (9, −6) in each tile, wherever frame 2's tile lies: the shift is added back.
    row, column = tiling.tops[1] + 48, tiling.lefts[1] + 48
    assert torch.allclose(flows.flow[0, :, row, column], torch.tensor([9.0, -6.0]) + shift)


def test_a_tile_at_the_border_stays_inside():
    image = torch.full((1, 3, 96, 160), 100.0)
    image[:, 0] = 40  # sixty pixels to the left, out of the leftmost tile's reach

    class Inside(Known):
        def match(self, first, second, start=None):
            assert second.image.shape == first.image.shape
            return super().match(first, second, start)

    match_tiles(Inside(), Encoded(image), Encoded(image), make_tiling(96, 160, 72, 57), Wanted())


def test_tiles_that_disagree_are_blended_without_an_edge(monkeypatch):
    monkeypatch.setattr(tiles, "median_shift", lambda _: (0, 0))

    class Unsure(Known):
        def match(self, first, second, start=None):
            super().match(first, second, start)
            flow = torch.zeros_like(first.image[:, :2].float()) + len(self.calls) % 2
            return FlowOutput(flow)

    image = torch.zeros(1, 3, 64, 160)
    flows = match_tiles(
        Unsure(), Encoded(image), Encoded(image), make_tiling(64, 160, 64, 57), Wanted()
    )
    assert flows.flow.amax() - flows.flow.amin() > 0.9
    assert flows.flow[0, 0, 0].diff().abs().max() < 0.12


def test_the_median_is_robust():
    flow = torch.zeros(1, 2, 10, 10)
    flow[:, 0], flow[:, 1] = 7.4, -3.6
    flow[:, :, :4] = 500
    assert median_shift(flow) == (7, -4)


def test_one_tile_over_everything_is_the_whole_started_from_half_way(make, frames):
    """Tiles of a predictor: the same interface, and a plan that says so."""
    predictor = make(strategy="tiles", iters=1)
    result = predictor(frames[0], frames[1], backward=True, occlusion=True, warp_error=True)
    assert result.flow.shape == result.backward.shape == (96, 136, 2)
    assert result.plan.strategy == "tiles"
    assert "the flow differs a little" in result.plan.text


def test_tiles_come_near_the_whole_on_a_real_pair():
    """Sintel: small tiles may add a tenth of a pixel to the error (measured: 0.03)."""
    folder = shared("data", "sintel", "training")
    names = [folder / "clean" / "alley_1" / f"frame_000{k}.png" for k in (1, 2)]
    one, two = (lcv.read_image(name)[40:360, 200:712] for name in names)
    truth = lcv.read_flow(folder / "flow" / "alley_1" / "frame_0001.flo")[0][40:360, 200:712]
    errors = {}
    for strategy, memory in (("all-pairs", None), ("tiles", "170MB")):
        predictor = Predictor(
            "raft-small", device="cpu", iters=8, strategy=strategy, max_memory=memory
        )
        result = predictor(one, two)
        errors[strategy] = np.linalg.norm(result.flow - truth, axis=2).mean()
    assert result.plan.tiling.number > 1
    assert errors["tiles"] < errors["all-pairs"] + 0.1


def test_how_an_image_is_cut():
    """Sintel's size: one row, three columns that overlap by half, a coarse pass of as many pixels."""
    assert make_tiling(436, 1024, 512, 57) == ((0,), (0, 256, 512), 436, 512, (304, 720))
    assert make_tiling(436, 1024, 512, 310).coarse == (310, 720)
    assert make_tiling(64, 512, 512, 57) == ((0,), (0,), 64, 512, (64, 512))
    assert make_tiling(100, 513, 512, 57)[:4] == ((0,), (0, 1), 100, 512)
    # 0.25 · 128 pixels of 224 are shared: two tiles are just enough, and of 225 three.
    assert make_tiling(224, 225, 128, 57)[:2] == ((0, 96), (0, 48, 97))


def test_the_coarse_flow_is_read_in_the_middle_of_every_eighth_pixel():
    """A coarse flow that says where each of its pixels lies in the image is read as places again.

    A coarse pixel stands for 2 columns and 16 rows; beyond its first and last middle it goes on.
    """
    one_way = object.__new__(tiles._OneWay)
    one_way.image1 = torch.zeros(1, 3, 128, 160)
    x = (2 * torch.arange(80.0) + 0.5) / 2
    y = (16 * torch.arange(8.0) + 7.5) / 16
    one_way.coarse = torch.stack((x.expand(8, 80), y[:, None].expand(8, 80)))[None]
    for top, left, tall, wide in ((0, 40, 128, 72), (60, 90, 68, 70)):
        one_way.tiling = Tiling((top,), (left,), tall, wide, (8, 80))
        found = one_way._coarse_in(top, left)
        rows, columns = -(-tall // 8), -(-wide // 8)
        middle_x = left + 8 * torch.arange(columns) + 3.5
        middle_y = (top + 8 * torch.arange(rows) + 3.5).clamp(7.5, 127 - 7.5)
        assert found.shape == (1, 2, rows, columns)
        assert torch.allclose(found[0, 0], middle_x.clamp(max=158.5).expand(rows, columns))
        assert torch.allclose(found[0, 1], middle_y[:, None].expand(rows, columns))


def test_tiles_of_frame_2_lie_where_the_motion_leads_inside_the_image():
    """Pixels of frame 2 that say where they are; the motion is 30 to the left and 20 down."""
    grid = torch.stack(torch.meshgrid(torch.arange(160.0), torch.arange(240.0), indexing="ij"))
    image2 = torch.cat((grid.flip(0), grid[:1]))[None]
    seen = []

    class Moving(Known):
        def match(self, first, second, start=None):
            if start is None:
                small = second.image.shape[2:]
                motion = torch.tensor([-30 * small[1] / 240, 20 * small[0] / 160])
                return FlowOutput(motion[None, :, None, None].expand(1, 2, *small))
            seen.append((second.image[0, :2, 0, 0].tolist(), start.abs().max()))
            return FlowOutput(torch.zeros(1, 2, *second.image.shape[2:]))

    tiling = make_tiling(160, 240, 96, 57)
    assert tiling[:4] == ((0, 64), (0, 72, 144), 96, 96)
    flows = match_tiles(Moving(), Encoded(image2), Encoded(image2), tiling, Wanted())
    assert [place for place, _ in seen] == [
        [0, 20], [42, 20], [114, 20], [0, 64], [42, 64], [114, 64]
    ]  # fmt: skip
    # What a tile is moved by is not left to find: here all of it but at the borders.
    assert [round(8 * float(rest)) for _, rest in seen] == [30, 0, 0, 30, 20, 20]
    corners = [flows.flow[0, :, y, x].tolist() for y, x in ((0, 0), (0, 239), (159, 0), (159, 239))]
    assert torch.allclose(
        torch.tensor(corners), torch.tensor([[0.0, 20], [-30, 20], [0, 0], [-30, 0]]), atol=1e-4
    )


def test_weights_are_raised_cosines():
    """Two tiles of four pixels, two of them shared: sin² of 22.5° and 67.5° against each other."""
    one, two = _weights((0, 2), 4, 6, torch.device("cpu"))
    small, large = np.sin(np.pi / 8) ** 2, np.sin(3 * np.pi / 8) ** 2
    wanted = torch.tensor([1, 1, large, small], dtype=torch.float32)
    assert torch.allclose(one, wanted)
    assert torch.allclose(two, wanted.flip(0))


def test_the_way_back_is_matched_from_frame_2_without_a_start():
    one, two = torch.full((1, 3, 96, 96), 103.0), torch.full((1, 3, 96, 96), 98.0)
    matcher, start = Known(), torch.zeros(1, 2, 12, 12)
    tiling = make_tiling(96, 96, 96, 57)
    flows = match_tiles(matcher, Encoded(one), Encoded(two), tiling, Wanted(backward=True), start)
    assert [first[0, 0, 0, 0] for first, _ in matcher.calls] == [103, 98, 98, 103]
    assert matcher.calls[0][1] is start
    assert matcher.calls[1][1] is None
    assert flows.low is not None
    assert torch.allclose(flows.flow, torch.full((1, 2, 96, 96), 3.0))
    assert torch.allclose(flows.backward, torch.full((1, 2, 96, 96), -2.0))
