"""On demand equals all pairs, forwards and backwards, whatever the chunk and the way."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lcv.cost_volume import AllPairs, OnDemand
from lcv.cost_volume.conventions import coords_from_flow
from lcv.cost_volume.ondemand import tiled, torch_impl
from lcv.errors import ArgumentError, ShapeError
from testing.closeness import assert_as_exact_as

# So many pixels a window pixel make a level coarse: all levels gathered, some, none.
SPLITS = [0, 3, 60]


def _inputs(
    b: int, c: int, h: int, w: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(c + h + w)
    f1, f2 = torch.randn(2, b, c, h, w, dtype=dtype)
    spread = torch.tensor([w + 8.0, h + 8.0]).view(2, 1, 1)
    coords = (torch.rand(b, 2, h, w) * spread - 4).floor() + 0.1 + 0.8 * torch.rand(b, 2, h, w)
    return f1, f2, coords.to(dtype)


def _with_gradients(operator: AllPairs | OnDemand, *inputs: Tensor) -> tuple[Tensor, ...]:
    f1, f2, coords = leaves = [t.clone().requires_grad_() for t in inputs]
    out = operator.lookup(operator.build(f1, f2), coords)  # type: ignore[arg-type]
    slope = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return out.detach(), *torch.autograd.grad(out, leaves, slope)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("size", [(8, 16), (9, 13), (11, 8)])
@pytest.mark.parametrize("max_bytes", [1, 50_000, 128 * 2**20])
def test_equals_all_pairs(
    size: tuple[int, int], max_bytes: int, split: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 1e-5 of the largest value in float32, as the specification of both demands."""
    monkeypatch.setattr(torch_impl, "_COARSE", split)
    inputs = _inputs(2, 3, *size, dtype=torch.float32)
    expected = _with_gradients(AllPairs(3, (2, 1), 0.5), *inputs)
    got = _with_gradients(OnDemand(3, (2, 1), 0.5, max_bytes), *inputs)
    for g, e in zip(got, expected, strict=True):
        assert (g - e).abs().max() <= 1e-5 * e.abs().max().clamp(min=1)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("c", [1, 2, 3, 64, 256])
def test_torch_equals_reference(c: int, split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_impl, "_COARSE", split)
    inputs = _inputs(2, c, 9, 13, dtype=torch.float32)
    options = {"levels": 3, "radius": (1, 2), "scale": c**-0.5, "max_bytes": 300_000}
    plain = _with_gradients(OnDemand(backend="reference", **options), *inputs)
    fast = _with_gradients(OnDemand(backend="torch", **options), *inputs)
    doubles = [t.double() for t in inputs]
    truth = _with_gradients(OnDemand(backend="reference", **options), *doubles)
    for f, p, t in zip(fast, plain, truth, strict=True):
        assert_as_exact_as(f, p, t)


@pytest.mark.parametrize(
    ("backend", "split"), [("reference", 60), *(("torch", split) for split in SPLITS)]
)
def test_gradients(backend: str, split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_impl, "_COARSE", split)
    operator = OnDemand(2, (1, 2), 0.7, 5_000, backend)
    inputs = tuple(t.requires_grad_() for t in _inputs(2, 2, 4, 5))

    def lookup(f1: Tensor, f2: Tensor, coords: Tensor) -> Tensor:
        return operator.lookup(operator.build(f1, f2), coords)

    # One random projection of the Jacobian; entry by entry it answers to the reference above.
    assert torch.autograd.gradcheck(lookup, inputs, fast_mode=True)


def test_each_input_alone_gets_its_gradient() -> None:
    inputs = _inputs(1, 3, 5, 6)
    everything = _with_gradients(OnDemand(2, 1), *inputs)[1:]
    for wanted in range(3):
        leaves = [t.clone().requires_grad_(i == wanted) for i, t in enumerate(inputs)]
        operator = OnDemand(2, 1)
        out = operator.lookup(operator.build(leaves[0], leaves[1]), leaves[2])
        slope = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
        (alone,) = torch.autograd.grad(out, leaves[wanted], slope)
        torch.testing.assert_close(alone, everything[wanted])


@pytest.mark.parametrize("split", SPLITS)
def test_every_number_is_written(split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh memory is filled with NaN first, so that a gap between two chunks shows."""
    monkeypatch.setattr(torch_impl, "_COARSE", split)
    new_empty = Tensor.new_empty
    poisoned = []

    def poison(self: Tensor, *size: int) -> Tensor:
        poisoned.append(size)
        return new_empty(self, *size).fill_(float("nan"))

    monkeypatch.setattr(Tensor, "new_empty", poison)
    f1, f2, coords = _inputs(2, 3, 7, 9)
    operator = OnDemand(2, (2, 1), max_bytes=20_000)
    for with_gradients in (True, False):
        poisoned.clear()
        with torch.set_grad_enabled(with_gradients):
            out = operator.lookup(operator.build(f1, f2), coords)
        assert poisoned
        assert out.isfinite().all()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("far", [1e3, -1e30, float("inf")])
@pytest.mark.parametrize("axis", [0, 1])
def test_far_outside_is_exactly_zero(
    far: float, split: int, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_impl, "_COARSE", split)
    f1, f2, coords = _inputs(2, 3, 8, 9, dtype=torch.float32)
    coords[:, axis] = far
    operator = OnDemand(3, 2)
    assert operator.lookup(operator.build(f1, f2), coords).eq(0).all()
    with torch.no_grad():
        assert operator.lookup(operator.build(f1, f2), coords).eq(0).all()


MOTIONS = {
    "still": lambda h, w: torch.zeros(2, h, w),
    "smooth": lambda h, w: torch.linspace(-3, 3, h * w).view(1, h, w).expand(2, h, w),
    "noise": lambda h, w: 20 * torch.randn(2, h, w),
    "edge": lambda h, w: 30.0 * (torch.arange(w) > w // 2).expand(2, h, w),
    "half outside": lambda h, w: -(w / 2 + 0.3) * torch.ones(2, h, w),
}


@given(
    size=st.tuples(st.integers(4, 21), st.integers(4, 21)),
    radius=st.tuples(st.integers(0, 3), st.integers(0, 4)),
    levels=st.integers(1, 3),
    motion=st.sampled_from([*MOTIONS]),
    max_bytes=st.sampled_from([1, 9_000, 128 * 2**20]),
)
@settings(deadline=None, max_examples=40)
def test_tiles_of_points_equal_the_reference(
    size: tuple[int, int], radius: tuple[int, int], levels: int, motion: str, max_bytes: int
) -> None:
    """What is looked up without gradients, whatever the shape and wherever the points go."""
    torch.manual_seed(sum(size))
    f1, f2 = torch.randn(2, 2, 3, *size, dtype=torch.float64)
    coords = coords_from_flow(MOTIONS[motion](*size).expand(2, -1, -1, -1).double() + 0.3)
    operators = [OnDemand(levels, radius, 0.5, max_bytes, name) for name in ("torch", "reference")]
    with torch.no_grad():
        states = [operator.build(f1, f2) for operator in operators]
        got, truth = (o.lookup(s, coords) for o, s in zip(operators, states, strict=True))
    assert states[0].backend == "tiled"
    torch.testing.assert_close(got, truth, rtol=0, atol=1e-12)


class Made(TorchDispatchMode):
    """The bytes of everything that is made, by its address."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[int, int] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = function(*args, **(kwargs or {}))
        if isinstance(out, Tensor):
            memory = out.untyped_storage()
            self.bytes[memory.data_ptr()] = max(
                memory.nbytes(), self.bytes.get(memory.data_ptr(), 0)
            )
        return out


def test_tiles_of_points_keep_to_max_bytes() -> None:
    max_bytes = 300_000
    f1, f2, coords = _inputs(1, 32, 24, 32, dtype=torch.float32)
    operator = OnDemand(3, 3, max_bytes=max_bytes)
    with torch.no_grad():
        state = operator.build(f1, f2)
        with Made() as made:
            result = operator.lookup(state, coords)
    given = {t.untyped_storage().data_ptr() for t in (*state.features, result)}
    assert max(n for address, n in made.bytes.items() if address not in given) <= max_bytes


def test_gradients_keep_to_max_bytes() -> None:
    """Each level's gradient goes the way of its costs: as a whole, the finest would take far more."""
    max_bytes = 600_000  # more than the gradient that is given has
    f1, f2, coords = _inputs(1, 4, 64, 80, dtype=torch.float32)
    operator = OnDemand(3, 1, max_bytes=max_bytes)
    f1.requires_grad_()
    costs = operator.lookup(operator.build(f1, f2), coords)
    ones = torch.ones_like(costs)
    with Made() as made:
        costs.backward(ones)
    assert 0 < max(made.bytes.values()) <= max_bytes


def test_a_coordinate_that_is_not_a_number_spoils_its_own_costs_alone() -> None:
    f1, f2, coords = _inputs(1, 3, 9, 12)
    operator = OnDemand(2, 1)
    with torch.no_grad():
        state = operator.build(f1, f2)
        whole = operator.lookup(state, coords)
        coords[0, :, 2, 3] = float("nan")
        spoiled = operator.lookup(state, coords)
    assert spoiled[0, :, 2, 3].isnan().all()
    spoiled[0, :, 2, 3] = whole[0, :, 2, 3]
    torch.testing.assert_close(spoiled, whole)


def test_points_go_into_tiles_and_back() -> None:
    maps = torch.arange(2 * 13 * 11.0).view(1, 2, 13, 11)
    points = tiled._by_tile(maps)[0]
    assert points[0, :64].view(2, 2, 4, 4)[0, 1, 0].tolist() == [4, 5, 6, 7]
    assert torch.equal(
        tiled._from_tiles(points.t()[:, None], 13, 11)[..., 0].permute(2, 0, 1), maps[0]
    )


def test_chunks_cover_all_points_within_the_budget() -> None:
    points = torch.zeros(2, 100, 8)
    plan = torch_impl.make_plan(10, 10, levels=2, rx=1, ry=1, max_bytes=30_000)
    chunks = list(torch_impl._chunks(points, plan, copies=1))
    places = [i for _, _, place in chunks for i in range(place.start, place.stop)]
    assert places == list(range(200))
    assert len(chunks) > 2


def test_refusals() -> None:
    x = torch.zeros(1, 2, 8, 9)
    operator = OnDemand(2, 1)
    state = operator.build(x, x)
    with pytest.raises(ShapeError, match=r"OnDemand.build: f2 has c=3 but f1 has c=2"):
        operator.build(x, torch.zeros(1, 3, 8, 9))
    with pytest.raises(ArgumentError, match=r"OnDemand.build: 5 levels .* at least 16×16, but f2"):
        OnDemand(5).build(x, x)
    with pytest.raises(ArgumentError, match=r"OnDemand.lookup: coords .* wanted \(1, 2, 8, 9\)"):
        operator.lookup(state, torch.zeros(2, 2, 8, 9))
    with pytest.raises(ArgumentError, match=r"built with .* build and look up with the same"):
        OnDemand(3, 1).lookup(state, torch.zeros(1, 2, 8, 9))
    with pytest.raises(ArgumentError, match="OnDemand: max_bytes is 0, wanted at least 1"):
        OnDemand(max_bytes=0)
    OnDemand(max_bytes=1)
    with pytest.raises(ShapeError, match=r"OnDemand.lookup: coords has 3 dimensions \(2,8,9\)"):
        operator.lookup(state, torch.zeros(2, 8, 9))
    with pytest.raises(ArgumentError, match="OnDemand: levels is 0, wanted an integer of at least"):
        OnDemand(0)
    with pytest.raises(
        ArgumentError, match="OnDemand: radius is -1, wanted an integer of at least"
    ):
        OnDemand(2, -1)


def test_a_gradient_is_computed_anew_and_only_where_one_is_wanted() -> None:
    x, coords = torch.rand(1, 2, 8, 9), torch.rand(1, 2, 8, 9)
    for operator in (AllPairs(2, 1), OnDemand(2, 1)):
        assert operator.lookup(operator.build(x, x), coords).grad_fn is None
        for wanted in (x, coords):
            wanted.requires_grad_(True)
            costs = operator.lookup(operator.build(x, x), coords)
            assert costs.grad_fn.name() == "_LookupBackward"
            with torch.no_grad():
                assert operator.lookup(operator.build(x, x), coords).grad_fn is None
            wanted.requires_grad_(False)


def test_the_defaults_are_rafts() -> None:
    for operator in (AllPairs(), OnDemand()):
        assert (operator.levels, operator.radius, operator.scale) == (4, 4, 1.0)
    assert OnDemand().max_bytes == 128 << 20


@pytest.mark.parametrize("size", [(9, 13), (16, 12)])
def test_at_the_size_raft_uses_it_equals_all_pairs_forwards_and_backwards(size):
    """256 channels, 4 levels, radius 4."""
    generator = torch.Generator().manual_seed(0)
    f1, f2 = (torch.randn(1, 256, *size, generator=generator).requires_grad_() for _ in range(2))
    coords = torch.rand(1, 2, *size, generator=generator) * 14 - 1
    found = []
    for volume in (AllPairs(4, 4, 1 / 16), OnDemand(4, 4, 1 / 16, max_bytes=1 << 17)):
        costs = volume.lookup(volume.build(f1, f2), coords)
        weights = torch.linspace(-1, 1, costs.numel()).view_as(costs)
        found.append((costs, *torch.autograd.grad((costs * weights).sum(), (f1, f2))))
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max() < 1e-5 * max(1, one.abs().max())
