"""A rehearsal counts what is alive, and computes the shapes that the real thing has."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from lcv.predict.ledger import Ledger, hollow_model
from lcv.predict.matching import Encoded, matcher_for
from lcv.predict.pairs import Wanted, match_whole
from lcv.predict.shapes import RULES, shape_of
from lcv.predict.tiles import make_tiling, match_tiles

CPU = torch.device("cpu")
KB = 4000  # bytes of a thousand numbers


def test_what_is_alive_is_counted_and_what_is_not_is_not():
    with Ledger(CPU) as ledger:
        x = torch.empty(1000)
        y = x + 1
        assert ledger.live == 2 * KB
        y.mul_(2).relu_()  # in place
        z = y.view(10, 100)[::2].transpose(0, 1)  # views
        assert ledger.live == 2 * KB
        del x
        w = z.contiguous()  # a copy of half of it
        assert ledger.live == 1.5 * KB
        del y, z
        torch.cat([w, w])
        assert ledger.most == 2 * KB
        (w.double() > 0).sum()
    assert w.device == CPU
    assert w.shape == (100, 5)


def test_a_convolution_takes_its_blocks():
    with Ledger(CPU) as ledger:
        x, weight = torch.empty(1, 20, 10, 10), torch.empty(40, 20, 3, 3)
        have = ledger.live
        out = F.conv2d(x, weight, padding=1)
        assert out.shape == (1, 40, 10, 10)
        assert ledger.live == have + 40 * 400
        # Twenty channels become 32, forty become 48: first both, then the latter and the result.
        assert ledger.most == have + max(32 * 400 + 48 * 400, 48 * 400 + 40 * 400)


def test_a_tensor_without_content_must_not_leave():
    with Ledger(CPU):
        x = torch.empty(3)
    with pytest.raises(RuntimeError, match="has left its rehearsal"):
        x + 1


def test_a_hollow_model_leaves_hooks_and_weights_alone(make):
    model = make().model
    seen = []
    handle = model.fnet.register_forward_hook(lambda *_: seen.append(1))
    hollow = hollow_model(model, CPU)
    handle.remove()
    assert not hollow.fnet._forward_hooks
    assert model.fnet.conv1.weight.untyped_storage().nbytes() > 0
    assert hollow.fnet.conv1.weight.shape == model.fnet.conv1.weight.shape


class Compared(TorchDispatchMode):
    """Runs operations, and works out for each what it should return."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: set[str] = set()
        self.count = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        pointwise = torch.Tag.pointwise in func.tags
        if func.is_view or (name.endswith("_") and not name.startswith("_")):
            return out
        if name not in RULES and not pointwise:
            self.unknown.add(name)
            return out
        as_meta = torch.utils._pytree.tree_map_only(
            torch.Tensor,
            lambda x: torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta"),
            (args, kwargs),
        )
        expected = shape_of(func, *as_meta)
        outs, expecteds = ((x,) if isinstance(x, torch.Tensor) else x for x in (out, expected))
        for real, guess in zip(outs, expecteds, strict=True):
            if name == "native_batch_norm" and real is not outs[0]:
                continue  # statistics of a few bytes, which are there in one torch and not in another
            assert guess.shape == real.shape, name
            assert guess.dtype == real.dtype, name
            assert guess.is_contiguous() == real.is_contiguous(), name
            assert guess.untyped_storage().nbytes() == real.untyped_storage().nbytes(), name
        self.count += 1
        return out


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("raft-small", "all-pairs"),
        ("raft-large", "on-demand"),
        ("raft-small", "tiles"),
        ("vcn-small", "local"),
        ("ddflow", "local"),
    ],
)
def test_shapes_are_worked_out_as_torch_has_them(make, frames, name, strategy, autocast):
    """Every operation of every network, in float32 and under autocast, beside the real one."""
    iters = 2 if name.startswith("raft") else None
    matcher = matcher_for(make(name).model, name, iters, None).with_strategy(strategy)
    first, second = (Encoded(frame[None, :, :, :131].byte()) for frame in frames[:2])
    wanted = Wanted(backward=True, occlusion=True, warp_error=True)
    with (
        torch.no_grad(),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast),
        Compared() as compared,
    ):
        if strategy == "tiles":
            match_tiles(
                matcher,
                first,
                second,
                make_tiling(96, 131, 72, 57),
                wanted,
                shift_of=lambda _: (3, 1),
            )
        else:
            match_whole(matcher, first, second, wanted)
    assert compared.unknown == set()
    assert compared.count > 300
