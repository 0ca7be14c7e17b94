"""DDFlow's laws: what W = I changes, what exchanging the frames does, what is refused."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from lcv.cost_volume.resize import resize_flow
from lcv.cost_volume.warp import warp_clamped
from lcv.errors import ArgumentError, ShapeError
from lcv.inner_product import INNER_PRODUCTS
from lcv.models.ddflow import DDFlow, ddflow
from lcv.models.ddflow.estimator import unit_length
from lcv.models.ddflow.pyramid import CHANNELS, LEVELS
from lcv.models.types import FlowOutput, is_flow_model
from testing.closeness import assert_as_exact_as

SIZE = (71, 90)  # odd and even, unequal, and odd again at some levels


def lively(model: DDFlow, seed: int = 0) -> DDFlow:
    """The model in evaluation with weights that give flows of about a pixel; W stays as it is."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                fan_in = module.weight[0].numel()
                weight = torch.randn(module.weight.shape, generator=generator)
                module.weight.copy_(weight * (2 / fan_in) ** 0.5)
                module.bias.copy_(0.1 * torch.randn(module.bias.shape, generator=generator))
    return model.eval()


def images(b: int = 1, size: tuple[int, int] = SIZE, seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    image1, image2 = 255 * torch.rand(2, b, 3, *size, generator=generator)
    return image1, image2


def tensors(output: FlowOutput) -> dict[str, Tensor]:
    """All tensors of one direction by name."""
    assert output.low is not None
    assert output.extra is not None
    named = {f"flows[{i}]": f for i, f in enumerate(output.flows)}
    return {"flow": output.flow, "low": output.low, **named, **output.extra}


def both(output: FlowOutput) -> dict[str, Tensor]:
    """All tensors of both directions by name."""
    assert output.backward is not None
    backward = tensors(output.backward)
    return {**tensors(output), **{f"backward.{k}": v for k, v in backward.items()}}


def joined(output: FlowOutput) -> Tensor:
    return torch.cat([value.flatten() for value in both(output).values()])


@pytest.fixture(scope="module")
def model() -> DDFlow:
    return lively(ddflow())


def test_parameters_are_as_many_as_in_the_published_checkpoint() -> None:
    assert sum(p.numel() for p in ddflow().parameters()) == 4_273_628
    assert sum(p.numel() for p in ddflow("elliptical").parameters()) == 4_273_628 + 34_048


def test_it_is_a_flow_model(model: DDFlow) -> None:
    assert is_flow_model(model)
    assert list(model.inner_products) == ["6", "5", "4", "3", "2"]
    assert model.inner_product is model.inner_products["2"]
    assert [model.inner_products[k].channels for k in LEVELS] == [192, 128, 96, 64, 32]


@torch.no_grad()
@pytest.mark.parametrize("size", [SIZE, (5, 5), (47, 63), (64, 128), (65, 6)])
def test_shapes(model: DDFlow, size: tuple[int, int]) -> None:
    output = model(*images(2, size), all_flows=True)
    quarter = tuple(-(-side // 4) for side in size)
    for direction in (output, output.backward):
        assert direction is not None
        named = tensors(direction)
        assert named["flow"].shape == (2, 2, *size)
        assert named["low"].shape == (2, 2, *quarter)
        for i, level in enumerate(LEVELS):
            own = named[f"level_{level}"]
            assert own.shape == (2, 2, *(-(-side // 2 ** int(level)) for side in size))
            full = resize_flow(own, size, align_corners=True)
            assert torch.equal(named[f"flows[{i}]"], full)
        assert len(direction.flows) == 6
        assert torch.equal(direction.flows[-1], direction.flow)
        assert torch.equal(resize_flow(named["low"], size, align_corners=True), direction.flow)


@torch.no_grad()
def test_all_flows_come_in_training_or_when_asked_for() -> None:
    model, pair = ddflow(), images(1, (16, 24))
    assert len(model(*pair).flows) == len(model(*pair).backward.flows) == 6
    assert model(*pair, all_flows=False).flows == ()
    model.eval()
    assert model(*pair).flows == model(*pair).backward.flows == ()
    assert len(model(*pair, all_flows=True).flows) == 6


@torch.no_grad()
@pytest.mark.parametrize("kind", [kind for kind in INNER_PRODUCTS if kind != "euclidean"])
def test_w_equal_to_i_changes_no_bit(model: DDFlow, kind: str) -> None:
    plain, pair = both(model(*images())), images()
    forms = INNER_PRODUCTS[kind].forms if kind == "elliptical" else ("left",)
    for form in forms:
        with_w = ddflow(kind, form).eval()
        missing, unexpected = with_w.load_state_dict(model.state_dict(), strict=False)
        assert not unexpected
        assert all(name.startswith("inner_products.") for name in missing)
        for name, value in both(with_w(*pair)).items():
            assert torch.equal(value, plain[name]), (form, name)


@torch.no_grad()
@pytest.mark.parametrize("form", ["left", "factor"])
def test_a_rotation_alone_is_the_identity_up_to_rounding(model: DDFlow, form: str) -> None:
    rotated = ddflow("rotation", form).eval()
    rotated.load_state_dict(model.state_dict(), strict=False)
    generator = torch.Generator().manual_seed(0)
    for product in rotated.inner_products.values():
        product.S_upper.copy_(torch.randn(product.S_upper.shape, generator=generator))
        turn = (product.rotation() - torch.eye(product.channels)).abs().max()
        assert turn > 0.5
    pair = images()
    truth = joined(copy.deepcopy(model).double()(*(image.double() for image in pair)))
    assert_as_exact_as(joined(rotated(*pair)), joined(model(*pair)), truth)


@torch.no_grad()
def test_a_learned_w_changes_the_flow(model: DDFlow) -> None:
    weighed = ddflow("diagonal").eval()
    weighed.load_state_dict(model.state_dict(), strict=False)
    plain = both(model(*images()))
    for level in LEVELS:
        weighed.inner_products[level].t.copy_(torch.linspace(-1, 1, CHANNELS[level]))
        changed = both(weighed(*images()))
        for name in (f"level_{level}", f"backward.level_{level}"):
            assert (changed[name] - plain[name]).abs().max() > 1e-3, name


@torch.no_grad()
@pytest.mark.parametrize("kind", ["euclidean", "free"])
def test_exchanging_the_frames_exchanges_the_directions(kind: str) -> None:
    model = lively(ddflow(kind))
    if kind == "free":  # W not symmetric: both directions must put their own frame on the left
        for product in model.inner_products.values():
            product.W += torch.triu(torch.ones_like(product.W), 1)
    image1, image2 = images()
    there, back = model(image1, image2), model(image2, image1)
    exact = copy.deepcopy(model).double()(image1.double(), image2.double())
    exchanged = FlowOutput(**{**vars(back.backward), "backward": back})
    assert_as_exact_as(joined(exchanged), joined(there), joined(exact))


class Recorder(nn.Module):
    """An inner product that keeps what it is called with."""

    def __init__(self, calls: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        self.calls.append((f1, f2))
        return f1, f2


@torch.no_grad()
def test_each_level_is_called_once_with_each_directions_own_frame_on_the_left() -> None:
    calls: list[tuple[Tensor, Tensor]] = []
    model = lively(DDFlow({level: Recorder(calls) for level in LEVELS}))
    image1, image2 = images(2)
    features1, features2 = model.encode(image1), model.encode(image2)
    model.match(features1, features2)
    assert len(calls) == 5
    for (left, right), f1, f2 in zip(calls, features1, features2, strict=True):
        assert torch.equal(left, unit_length(torch.cat([f1, f2])))
        assert left.shape == right.shape
    start = torch.zeros(4, 2, *features1[0].shape[2:])
    warped = warp_clamped(torch.cat([features2[0], features1[0]]), start)
    assert torch.equal(calls[0][1], unit_length(warped))


@torch.no_grad()
def test_zero_flow_empties_the_last_row_and_column_of_the_coarsest_match() -> None:
    calls: list[tuple[Tensor, Tensor]] = []
    model = lively(DDFlow({level: Recorder(calls) for level in LEVELS}))
    model(*images(1, (200, 260)))
    right = calls[0][1]  # (2, 192, 4, 5)
    assert not right[:, :, -1].any()
    assert not right[:, :, :, -1].any()
    assert right[:, :, :-1, :-1].abs().sum(1).min() > 0


@torch.no_grad()
def test_a_batch_of_three_equals_three_of_one(model: DDFlow) -> None:
    image1, image2 = images(3)
    batched = both(model(image1, image2))
    double = copy.deepcopy(model).double()
    for i in range(3):
        a, b = image1[i : i + 1], image2[i : i + 1]
        single, exact = both(model(a, b)), both(double(a.double(), b.double()))
        for name, value in batched.items():
            assert_as_exact_as(value[i : i + 1], single[name], exact[name], slack=4)


@torch.no_grad()
def test_a_frame_encoded_once_serves_two_pairs(model: DDFlow) -> None:
    first, second = images()
    third, _ = images(seed=2)
    f1, f2, f3 = (model.encode(image) for image in (first, second, third))
    for whole, parts in (
        (model(first, second), model.match(f1, f2, size=SIZE)),
        (model(second, third), model.match(f2, f3, size=SIZE)),
    ):
        for name, value in both(whole).items():
            assert torch.equal(both(parts)[name], value), name


@torch.no_grad()
def test_without_a_size_the_flow_is_four_times_level_two(model: DDFlow) -> None:
    image1, image2 = images(1, (64, 36))
    features = model.encode(image1), model.encode(image2)
    assert torch.equal(model.match(*features).flow, model(image1, image2).flow)


@torch.no_grad()
def test_below_five_pixels_the_second_frame_would_not_matter(model: DDFlow) -> None:
    """Why the minimum is 5: at 4, level 2 has one row, and its warp is zero throughout."""
    for size, matters in (((4, 40), False), ((40, 4), False), ((5, 5), True)):
        image1, image2 = images(1, size)
        features1, features2, features3 = (
            model.pyramid(image / 255) for image in (image1, image2, image2.flip(2, 3))
        )
        one, other = model.match(features1, features2), model.match(features1, features3)
        assert torch.equal(one.flow, other.flow) != matters, size


def test_gradients_reach_every_parameter_and_s_only_after_lambda_moved() -> None:
    model = lively(ddflow("elliptical")).double()
    pair = [image.double() for image in images()]

    def gradients() -> dict[str, Tensor]:
        model.zero_grad()
        output = model(*pair)
        (output.flow.square().mean() + output.backward.flow.square().mean()).backward()
        return {name: p.grad for name, p in model.named_parameters()}

    start = gradients()
    for name, gradient in start.items():
        if not name.endswith("S_upper"):
            assert gradient.abs().max() > 0, name
    with torch.no_grad():
        for level in LEVELS:
            model.inner_products[level].t.copy_(torch.linspace(-1, 1, CHANNELS[level]))
    moved = gradients()
    for level in LEVELS:
        name = f"inner_products.{level}.S_upper"
        assert moved[name].abs().max() > 0
        assert start[name].abs().max() < 1e-10 * moved[name].abs().max()


@torch.no_grad()
def test_bytes_are_taken_as_they_are(model: DDFlow) -> None:
    image1, image2 = (image.byte() for image in images(1, (16, 24)))
    assert torch.equal(model(image1, image2).flow, model(image1.float(), image2.float()).flow)


@torch.no_grad()
def test_dtype_is_kept_also_under_autocast(model: DDFlow) -> None:
    image1, image2 = images(1, (40, 56))
    double = copy.deepcopy(model).double()(image1.double(), image2.double())
    assert all(value.dtype == torch.float64 for value in both(double).values())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert all(f.dtype == torch.float32 for f in model.encode(image1))
        output = model(image1, image2)
    assert all(value.dtype == torch.float32 for value in both(output).values())
    # bfloat16 has 8 bits: the flow must stay near, not equal.
    scale = double.flow.abs().max()
    assert 0 < (output.extra["level_6"] - double.extra["level_6"]).abs().max() < 0.05 * scale


def test_nothing_of_the_input_stays_on_the_modules() -> None:
    model = ddflow("elliptical")
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    model(*images(1, (16, 24))).flow.sum().backward()
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before
    assert not list(model.buffers())


def test_refusals(model: DDFlow) -> None:
    image1, image2 = images(1, (16, 24))
    with pytest.raises(ArgumentError, match="DDFlow takes no `pad`: it takes images of any size"):
        model(image1, image2, pad="sintel")
    with pytest.raises(ArgumentError, match="DDFlow takes no `iters`: its number of steps"):
        model(image1, image2, iters=12)
    with pytest.raises(ArgumentError, match="DDFlow takes no `flow_init`: it starts from zero"):
        model(image1, image2, flow_init=torch.zeros(1, 2, 4, 6))
    with pytest.raises(ShapeError, match=r"24 wide and 4 high, but both must be at least 5 pix"):
        model(image1[:, :, :4], image2[:, :, :4])
    with pytest.raises(ShapeError, match="image2 has h=15 but image1 has h=16"):
        model(image1, image2[:, :, 1:])
    with pytest.raises(ShapeError, match=r"image1 .* has 1 where 3 belongs"):
        model(image1[:, :1], image2[:, :1])
    features = model.encode(image1)
    with pytest.raises(ArgumentError, match="features2 has 4 maps, wanted the 5"):
        model.match(features, features[1:])
    with pytest.raises(ShapeError, match=r"features1 .* has 32 where 192 belongs"):
        model.match(features[::-1], features[::-1])
    with pytest.raises(ArgumentError, match=r"has the levels \['2'\], wanted one module for each"):
        DDFlow({"2": nn.Identity()})
    with pytest.raises(ArgumentError, match="unknown inner product 'kernel'"):
        ddflow("kernel")


@pytest.mark.parametrize("shape", [(1, 3, 2, 2), (2, 5, 3, 4)])
def test_unit_length(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    lengths = torch.linalg.vector_norm(unit_length(x), dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))
    zero = torch.zeros(shape, requires_grad=True)
    unit_length(zero).sum().backward()
    assert not unit_length(zero).any()
    assert torch.isfinite(zero.grad).all()
    assert torch.autograd.gradcheck(unit_length, x)
