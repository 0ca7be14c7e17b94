"""RAFT: laws of the network, whatever its weights."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.cost_volume.ondemand import OnDemand
from lcv.errors import ArgumentError, ShapeError
from lcv.layers.padding import padding_for
from lcv.models.raft import raft_large, raft_small
from lcv.models.raft.upsample import convex_upsample
from testing.closeness import assert_as_exact_as
from testing.painted import painted_pair

BUILDERS = {"large": raft_large, "small": raft_small}


def network(size="small", inner_product="euclidean", seed=0, **options):
    torch.manual_seed(seed)
    return BUILDERS[size](inner_product, **options).eval()


def twins(size, first, second):
    """Two networks that differ in the kind of inner product alone."""
    one, two = network(size, first), network(size, second)
    two.load_state_dict(one.state_dict(), strict=False)
    return one, two


@pytest.fixture(scope="module")
def pair():
    image1, image2, _ = painted_pair(75, 99)
    return image1, image2


def test_gradients_reach_an_earlier_iteration_through_the_hidden_state_alone(pair):
    model = network()
    made = []
    model.update_block.register_forward_hook(lambda _, __, output: made.append(output))
    low = model(*pair, iters=2).low
    hidden, change = made[0]
    to_hidden, to_change = torch.autograd.grad(low.sum(), (hidden, change), allow_unused=True)
    assert to_hidden.abs().sum() > 0
    assert to_change is None


@pytest.mark.parametrize(("size", "count"), [("large", 5_257_536), ("small", 990_162)])
def test_parameters_are_counted_as_published(size, count):
    assert sum(p.numel() for p in network(size).parameters()) == count


@pytest.mark.parametrize(
    ("size", "extra"), [("large", 256 * 255 // 2 + 256), ("small", 128 * 127 // 2 + 128)]
)
def test_what_lcv_adds(size, extra):
    lcv, plain = (
        sum(p.numel() for p in network(size, kind).parameters())
        for kind in ("elliptical", "euclidean")
    )
    assert lcv - plain == extra


@pytest.mark.parametrize("size", BUILDERS)
@pytest.mark.parametrize("form", ["left", "factor", "zca"])
@torch.no_grad()
def test_w_equal_to_the_identity_changes_no_bit(size, form, pair):
    vanilla = network(size)
    with_lcv = network(size, "elliptical", form=form)
    with_lcv.load_state_dict(vanilla.state_dict(), strict=False)
    assert torch.equal(vanilla(*pair, iters=3).flow, with_lcv(*pair, iters=3).flow)


@pytest.mark.parametrize("size", BUILDERS)
@torch.no_grad()
def test_rotation_alone_changes_nothing_but_rounding(size, pair):
    vanilla, rotated = twins(size, "euclidean", "rotation")
    rotated.inner_product.S_upper.normal_()
    exact = vanilla.double()(*(image.double() for image in pair), iters=3).flow
    vanilla = vanilla.float()
    for form in ("left", "factor"):
        rotated.inner_product.form = form
        flow = rotated(*pair, iters=3).flow
        # PᵀP is I to a few ulps, which weigh as much as the rounding of the features themselves.
        assert_as_exact_as(flow, vanilla(*pair, iters=3).flow, exact, slack=8)
        assert not torch.equal(flow, vanilla(*pair, iters=3).flow), "PᵀP was not computed"


@pytest.mark.parametrize("size", BUILDERS)
@torch.no_grad()
def test_a_learned_w_does_change_the_flow(size, pair):
    vanilla, learned = twins(size, "euclidean", "elliptical")
    learned.inner_product.t.normal_()
    assert (vanilla(*pair, iters=3).flow - learned(*pair, iters=3).flow).abs().max() > 1e-3


@torch.no_grad()
def test_a_batch_of_three_equals_three_batches_of_one():
    model = network("large").double()
    pairs = [painted_pair(64, 72, seed)[:2] for seed in range(3)]
    first, second = (torch.cat([p[i] for p in pairs]).double() for i in (0, 1))
    together = model(first, second, iters=3).flow
    for i in range(3):
        alone = model(first[i : i + 1], second[i : i + 1], iters=3).flow
        torch.testing.assert_close(together[i : i + 1], alone)


@torch.no_grad()
def test_encoding_once_and_matching_twice_equals_two_calls():
    model = network("large")
    a, b, c = (painted_pair(64, 72, seed)[0] for seed in range(3))
    middle = model.encode(b)
    assert torch.equal(
        model.match(model.encode(a), middle, iters=3).flow, model(a, b, iters=3).flow
    )
    assert torch.equal(
        model.match(middle, model.encode(c), iters=3).flow, model(b, c, iters=3).flow
    )


@pytest.mark.parametrize("size", BUILDERS)
@torch.no_grad()
def test_on_demand_costs_give_the_same_flow(size, pair):
    model = network(size).double()
    images = [image.double() for image in pair]
    whole = model(*images, iters=3).flow
    model.cost_volume = OnDemand(
        levels=model.cost_volume.levels,
        radius=model.cost_volume.radius,
        scale=model.cost_volume.scale,
        max_bytes=1 << 16,
    )
    torch.testing.assert_close(model(*images, iters=3).flow, whole)


@torch.no_grad()
def test_what_does_not_change_is_computed_once_and_the_mask_only_where_asked():
    """At most 1,350 GFLOP at 496×1000 with 32 iterations, where the authors' code takes 1,780."""
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        image = torch.empty(1, 3, 496, 1000)
        raft_large("elliptical").eval()(image, image, iters=32)
    assert counter.get_total_flops() <= 1350e9


@torch.no_grad()
def test_the_prepared_unit_is_the_textbook_one():
    torch.manual_seed(0)
    for size in BUILDERS:
        unit = network(size).update_block.gru
        channels = next(unit.children()).in_channels
        h = torch.randn(2, unit.hidden, 5, 7)
        context = torch.randn(2, unit.context, 5, 7)
        motion = torch.randn(2, channels - unit.hidden - unit.context, 5, 7)
        expected = h
        for suffix in unit.suffixes:
            z, r, q = (getattr(unit, f"conv{gate}{suffix}") for gate in "zrq")
            x = torch.cat([expected, context, motion], 1)
            update, reset = torch.sigmoid(z(x)), torch.sigmoid(r(x))
            candidate = torch.tanh(q(torch.cat([reset * expected, context, motion], 1)))
            expected = (1 - update) * expected + update * candidate
        torch.testing.assert_close(unit(h, motion, unit.prepare(context)), expected)


def test_convex_upsampling_by_hand():
    flow = torch.zeros(1, 2, 2, 3)
    flow[0, 0, 0, 1], flow[0, 1, 0, 1] = 5.0, -3.0
    mask = torch.full((1, 9, 8, 8, 2, 3), -1e9)
    mask[:, 4] = 0.0  # every fine pixel takes its own coarse one,
    mask[0, 4, 6, 2, 0, 0], mask[0, 5, 6, 2, 0, 0] = -1e9, 0.0  # but one takes its right neighbour
    fine = convex_upsample(flow, mask.flatten(1, 3))
    expected = torch.zeros(1, 2, 16, 24)
    expected[0, 0, :8, 8:16], expected[0, 1, :8, 8:16] = 40.0, -24.0
    expected[0, :, 6, 2] = torch.tensor([40.0, -24.0])  # row 6, column 2 of the pixel at the left
    torch.testing.assert_close(fine, expected)


@pytest.mark.parametrize(
    ("size", "mode", "wanted"),
    [
        ((436, 1024), "sintel", (0, 0, 2, 2)),
        ((375, 1242), "kitti", (3, 3, 0, 1)),
        ((370, 1226), "kitti", (3, 3, 0, 6)),
        ((376, 1241), "kitti", (3, 4, 0, 0)),
        ((375, 1242), "sintel", (3, 3, 0, 1)),
        ((370, 1226), "sintel", (3, 3, 3, 3)),
    ],
)
def test_padding_is_the_authors(size, mode, wanted):
    padding = padding_for(*size, 8, mode)
    assert tuple(padding) == wanted
    image = torch.rand(1, 1, *size)
    assert torch.equal(padding.undo(padding.apply(image)), image)


@torch.no_grad()
def test_any_size_in_the_same_size_out():
    model = network()
    for h, w in [(57, 58), (64, 64), (75, 99)]:
        image = torch.rand(1, 3, h, w) * 255
        output = model(image, image, iters=1)
        assert output.flow.shape == (1, 2, h, w)
        assert output.low.shape == (1, 2, -(-h // 8), -(-w // 8))
        assert output.flows == ()


def test_training_gives_every_prediction_the_last_being_the_flow(pair):
    model = network().train()
    output = model(*pair, iters=3)
    assert len(output.flows) == 3
    assert torch.equal(output.flows[-1], output.flow)
    assert len(model(*pair).flows) == 12
    assert model(*pair, iters=3, all_flows=False).flows == ()
    assert len(model.eval()(*pair, iters=2, all_flows=True).flows) == 2


@pytest.mark.parametrize("size", BUILDERS)
def test_flows_with_gradients_are_those_without_in_their_order(size):
    """With gradients all are made full size at once."""
    model = network(size).eval()
    images = 255 * torch.rand(2, 2, 3, 80, 104, generator=torch.Generator().manual_seed(3))
    together = model(*images, iters=3, all_flows=True)
    with torch.no_grad():
        apart = model(*images, iters=3, all_flows=True)
    assert len(together.flows) == len(apart.flows) == 3
    for flow, other in zip(
        (*together.flows, together.flow), (*apart.flows, apart.flow), strict=True
    ):
        assert flow.requires_grad
        torch.testing.assert_close(flow, other, rtol=0, atol=1e-3)
        assert (flow - together.flows[1]).abs().max() > 0.1 or flow is together.flows[1]


@pytest.mark.parametrize("frozen", [True, False])
def test_masks_are_held_in_training_alone(pair, frozen, monkeypatch):
    model = network("large").eval().requires_grad_(not frozen)
    sizes = []
    upsample = model.upsample
    monkeypatch.setattr(
        model, "upsample", lambda flow, h: (sizes.append(len(h)), upsample(flow, h))[1]
    )
    model(*pair, iters=3, all_flows=True)
    assert sizes == ([1, 1, 1] if frozen else [3])


@torch.no_grad()
def test_iterations_can_be_split_by_a_warm_start(pair):
    """Starting from a flow is starting there: costs are looked up around it."""
    model = network("large")
    start = torch.ones(1, 2, 10, 13)
    assert not torch.equal(model(*pair, iters=1, flow_init=start).low, model(*pair, iters=1).low)
    moved = forward_interpolate(model(*pair, iters=2).low)
    assert torch.isfinite(model(*pair, iters=1, flow_init=moved).flow).all()
    zero = torch.zeros(1, 2, 10, 13)
    assert torch.equal(model(*pair, iters=2, flow_init=zero).flow, model(*pair, iters=2).flow)


@pytest.mark.parametrize("size", BUILDERS)
def test_gradients_reach_what_they_should(size, pair):
    model = network(size, "elliptical").train()
    with torch.no_grad():
        model.inner_product.t.copy_(torch.linspace(-1, 1, model.inner_product.channels))
    sum(flow.abs().mean() for flow in model(*pair, iters=2).flows).backward()
    before_a_norm = {  # a bias before an instance norm is taken out by it
        name
        for name, _ in model.named_parameters()
        if name.startswith("fnet.") and name.endswith("bias") and name != "fnet.conv2.bias"
    }
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        if name not in before_a_norm:
            assert parameter.grad.abs().max() > 0, name


def test_autocast_leaves_w_the_costs_and_the_flow_in_float32(pair):
    model = network("large", "elliptical")
    seen = []
    build = type(model.cost_volume).build

    class Watching(type(model.cost_volume)):
        def build(self, f1, f2):
            seen.append((f1.dtype, f2.dtype, torch.is_autocast_enabled("cpu")))
            return build(self, f1, f2)

    model.cost_volume = Watching(scale=1 / 16)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        output = model(*pair, iters=2)
    assert seen == [(torch.float32, torch.float32, False)]
    assert output.flow.dtype == output.low.dtype == torch.float32


def test_no_tensor_of_the_input_stays_on_a_module(pair):
    model = network("large", "elliptical")
    before = {id(v) for m in model.modules() for v in vars(m).values()}
    kept = {k for m in model.modules() for k in vars(m)}
    with torch.no_grad():
        model(*pair, iters=1)
    assert {k for m in model.modules() for k in vars(m)} == kept
    after = [v for m in model.modules() for v in vars(m).values() if id(v) not in before]
    assert not any(isinstance(v, torch.Tensor) for v in after)


def test_what_cannot_be_done_is_said():
    model = network()
    small, image = torch.zeros(1, 3, 56, 100), torch.zeros(1, 3, 64, 64)
    with pytest.raises(ShapeError, match=r"the image is 56×100 pixels, wanted at least 57 both"):
        model(small, small)
    with pytest.raises(ShapeError, match=r"image2 has w=64 but image1 has w=72"):
        model(torch.zeros(1, 3, 64, 72), image)
    with pytest.raises(ArgumentError, match="iters must be a whole number of at least 1, got 0"):
        model(image, image, iters=0)
    with pytest.raises(ArgumentError, match="unknown mode 'zero'; the modes are sintel, kitti"):
        model(image, image, pad="zero")
    with pytest.raises(ShapeError, match="flow_init has h=4 but features has h=8"):
        model(image, image, flow_init=torch.zeros(1, 2, 4, 8))
    features = model.encode(image, "second")
    with pytest.raises(
        ArgumentError, match="features1 lack the context; encode that frame as the first"
    ):
        model.match(features, features)
    with pytest.raises(
        ArgumentError, match=r"iters must be a whole number of at least 1, got 2\.0"
    ):
        model(image, image, iters=2.0)
    with pytest.raises(ArgumentError, match="unknown mode ''"):
        model(image, image, pad="")
    with pytest.raises(ArgumentError, match="flow_init is a list, wanted a tensor"):
        model(image, image, flow_init=[0])
    with pytest.raises(ArgumentError, match="wanted the Features of two frames"):
        model.match(image, image)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@torch.no_grad()
def test_a_halved_model_runs_and_keeps_its_costs_in_float32(dtype, pair):
    model = network("small", "elliptical")
    exact = model(*pair, iters=2).flow
    output = model.to(dtype)(*pair, iters=2)
    assert output.flow.dtype == torch.float32
    assert (output.flow - exact).abs().max() < 0.2 * exact.abs().max()


@pytest.mark.slow
@torch.no_grad()
def test_the_whole_model_compiles_at_a_second_size():
    """There the compiler goes over to symbolic sizes, in the padding too."""
    torch._dynamo.reset()
    model = network("small")
    compiled = torch.compile(model, backend="aot_eager")
    for size in [(59, 61), (65, 67)]:
        images = painted_pair(*size)[:2]
        torch.testing.assert_close(compiled(*images, iters=1).flow, model(*images, iters=1).flow)


def test_encoders_are_born_with_he_s_normal_weights():
    """Variance 2 / (kernel · outputs): deviations of 36,864 draws are within 2 %."""
    torch.manual_seed(0)
    weight = raft_large().fnet.layer1[0].conv1.weight
    assert weight.shape == (64, 64, 3, 3)
    assert float(weight.detach().std()) == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.02)
