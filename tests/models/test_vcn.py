"""VCN and VCN-small as networks: sizes, laws of W, batches, streams, refusals, training."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lcv import LcvError
from lcv.losses.multiscale import multiscale_loss
from lcv.models.types import is_flow_model
from lcv.models.vcn import VCN, vcn, vcn_small

# Rounding grows on its way through some fifty layers; what is left of it stays far below this,
# while an argmax that flips shows as whole pixels.
ROUNDING = torch.finfo(torch.float64).eps ** 0.5


def images(n: int, h: int, w: int, dtype: torch.dtype = torch.float32, b: int = 1) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n)
    shape = (n * b, 3, h, w)
    return list((255 * torch.rand(shape, generator=generator, dtype=dtype)).split(b))


def built(build, seed: int = 0, **options) -> VCN:
    torch.manual_seed(seed)
    return build(**options).eval()


def with_weights_of(model: VCN, other: VCN) -> VCN:
    missing, unexpected = model.load_state_dict(other.state_dict(), strict=False)
    assert unexpected == []
    assert all(name.startswith("inner_products.") for name in missing)
    return model.eval()


def bilinear(x: Tensor, size: tuple[int, int]) -> Tensor:
    return F.interpolate(x, size, mode="bilinear", align_corners=False)


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.fixture(scope="module")
def small() -> VCN:
    return built(vcn_small).double()


@pytest.mark.parametrize(
    ("build", "heads", "count"),
    [
        (vcn, False, 6_227_224),
        (vcn, True, 10_310_781),
        (vcn_small, False, 5_192_432),
        (vcn_small, True, 8_370_804),
    ],
)
def test_parameter_counts(build, heads, count):
    with torch.device("meta"):
        assert parameters(build(heads=heads)) == count


def test_one_inner_product_per_level_finest_last():
    with torch.device("meta"):
        model, small = vcn("elliptical"), vcn_small("elliptical")
    channels = {name: ip.channels for name, ip in model.inner_products.items()}
    assert list(channels.items()) == [("6", 128), ("5", 128), ("4", 128), ("3", 64), ("2", 64)]
    assert model.inner_product is model.inner_products["2"]
    assert small.inner_product is small.inner_products["3"]
    assert is_flow_model(model)
    assert all(ip.form == "factor" for ip in model.inner_products.values())
    assert parameters(model) - parameters(model.inner_products) == 6_227_224


def test_w_at_its_start_changes_no_bit():
    plain = built(vcn)
    pair = images(2, 128, 192)
    with torch.inference_mode():
        truth = plain(*pair)
        for form in ("factor", "left"):
            found = with_weights_of(vcn("elliptical", form), plain)(*pair)
            assert torch.equal(found.flow, truth.flow)
            assert torch.equal(found.entropy, truth.entropy)


def test_a_rotation_acts_in_factor_form_alone(small):
    pair = images(2, 128, 192, torch.float64)
    flows = {}
    with torch.inference_mode():
        truth = small(*pair).flow
        for form in ("factor", "left"):
            model = with_weights_of(vcn_small("rotation", form).double(), small)
            torch.manual_seed(1)
            for ip in model.inner_products.values():
                ip.S_upper.copy_(0.1 * torch.randn_like(ip.S_upper))
            flows[form] = model(*pair).flow
    assert (flows["left"] - truth).abs().max() < ROUNDING
    assert (flows["factor"] - truth).abs().mean() > 0.01


def test_output_has_what_its_type_promises():
    model = built(vcn)
    pair = images(2, 100, 150)
    with torch.inference_mode():
        output = model(*pair)
        full = model(*pair, all_flows=True)
    assert output.flow.shape == (1, 2, 100, 150)
    assert output.low.shape == (1, 2, 32, 48)
    assert output.entropy.shape == (1, 1, 32, 48)
    assert 0 < output.entropy.min() <= output.entropy.max() < 1
    assert output.flows == ()
    assert output.extra is None
    assert [f.shape for f in full.flows] == [(1, 2, 100, 150)] * 5
    assert torch.equal(full.flows[-1], full.flow)
    assert torch.equal(full.flow, output.flow)
    assert [s if s is None else tuple(s.shape[-2:]) for s in full.extra["starts"]] == [
        None,
        (4, 6),
        (8, 12),
        (16, 24),
        (32, 48),
    ]


def test_each_level_starts_from_the_doubled_flow_of_the_coarser(small):
    flows = []
    hooks = [
        level.register_forward_hook(lambda _, __, result: flows.append(result.flow))
        for level in small.levels.values()
    ]
    with torch.inference_mode():
        output = small(*images(2, 128, 192, torch.float64), all_flows=True)
    for hook in hooks:
        hook.remove()
    for coarser, start in zip(flows[:-1], output.extra["starts"][1:], strict=True):
        assert torch.equal(start, 2 * bilinear(coarser, start.shape[-2:]))
    assert torch.equal(output.low, flows[-1])
    for k, flow, full in zip((6, 5, 4, 3), flows, output.flows, strict=True):
        assert torch.equal(full, 2**k * bilinear(flow, (128, 192)))


def test_images_are_resized_to_multiples_of_64_and_the_flow_back(small):
    pair = images(2, 100, 150, torch.float64)
    with torch.inference_mode():
        found = small(*pair).flow
        flow = small(*(bilinear(image, (128, 192)) for image in pair)).flow
    flow = bilinear(flow, (100, 150))
    expected = flow * torch.tensor([150 / 192, 100 / 128], dtype=torch.float64).view(2, 1, 1)
    assert (found - expected).abs().max() < ROUNDING


def test_a_batch_is_its_pairs_one_by_one(small):
    first, second = images(2, 128, 130, torch.float64, b=3)
    with torch.inference_mode():
        together = small(first, second)
        for i in range(3):
            alone = small(first[i : i + 1], second[i : i + 1])
            assert (together.flow[i] - alone.flow[0]).abs().max() < ROUNDING
            assert (together.entropy[i] - alone.entropy[0]).abs().max() < ROUNDING


def test_a_stream_encodes_each_frame_once(small):
    a, b, c = images(3, 128, 192, torch.float64)
    with torch.inference_mode():
        fa, fb, fc = map(small.encode, (a, b, c))
        assert torch.equal(small.match(fa, fb).flow, small(a, b).flow)
        assert torch.equal(small.match(fb, fc).flow, small(b, c).flow)
    assert not small.encodes_by_role()


def test_each_frame_is_normalised_with_its_own_mean():
    inner_products = vcn_small().inner_products
    model = VCN(inner_products, md=(4,) * 4, finest=3, means=(0.25, (0.5, 0.25, 0.125)))
    red = torch.tensor([255.0, 51.0, 0.0]).view(1, 3, 1, 1)
    assert model.encodes_by_role()
    blue_green_red = torch.tensor([0.0, 0.2, 1.0])
    torch.testing.assert_close(model.normalise(red, "first").flatten(), blue_green_red - 0.25)
    torch.testing.assert_close(
        model.normalise(red, "second").flatten(), blue_green_red - torch.tensor([0.5, 0.25, 0.125])
    )


def test_search_range_shapes_the_coarsest_window():
    with torch.device("meta"):
        windows = {
            name: [level.window for level in vcn(md=(md, 4, 4, 4, 4), fac=fac).levels.values()]
            for name, md, fac in (("chairs", 4, 1), ("kitti", 8, 2), ("sintel", 7, 1.4))
        }
    rest = [(9, 9)] * 4
    assert windows == {
        "chairs": [(9, 9), *rest],
        "kitti": [(17, 9), *rest],
        "sintel": [(15, 11), *rest],
    }
    model = built(vcn_small, md=(8, 4, 4, 4), fac=2)
    with torch.inference_mode():  # a map of 2×2 pixels may be smaller than the window
        assert model(*images(2, 65, 66)).flow.isfinite().all()


def test_no_tensor_of_an_input_stays_behind(small):
    before = {name: set(vars(module)) for name, module in small.named_modules()}
    with torch.inference_mode():
        small(*images(2, 128, 128, torch.float64))
    for name, module in small.named_modules():
        assert set(vars(module)) == before[name]
        assert not any(isinstance(value, Tensor) for value in vars(module).values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pad": "sintel"}, "VCN takes no `pad`: .*resizes to multiples of 64"),
        ({"iters": 12}, "VCN takes no `iters`: .*fixed number of levels"),
        ({"flow_init": torch.zeros(1)}, "VCN takes no `flow_init`: .*coarsest level"),
    ],
)
def test_options_of_other_networks_are_refused(small, options, message):
    with pytest.raises(LcvError, match=message):
        small(*images(2, 128, 128), **options)


def test_refusals(small):
    with pytest.raises(LcvError, match=r"64×200, wanted at least 65 pixels a side.*Enlarge"):
        small(*images(2, 64, 200))
    with pytest.raises(LcvError, match="image2 has w=128 but image1 has w=192"):
        small(images(1, 128, 192)[0], images(1, 128, 128)[0])
    with pytest.raises(LcvError, match="VCN takes no `pad`: it resizes to multiples of 64"):
        small.encode(images(1, 130, 128)[0], pad="sintel")
    with pytest.raises(LcvError, match=r"md is .*wanted 5 whole numbers"):
        vcn(md=(4, 4))
    with pytest.raises(LcvError, match=r"fac is 5, wanted 1 to md\[0\] = 4"):
        vcn(fac=5)
    with pytest.raises(LcvError, match=r"levels \['6'\], wanted .*one inner product for each"):
        VCN({"6": nn.Identity()})


def painted_pair(h: int, w: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two smooth pairs whose second image is the first moved 3 pixels right and 2 down."""
    generator = torch.Generator().manual_seed(0)
    blots = torch.rand(2, 3, 20, 20, generator=generator)
    canvas = F.interpolate(255 * blots, (h + 2, w + 3), mode="bilinear", align_corners=False)
    flow = torch.tensor([3.0, 2.0]).view(1, 2, 1, 1).expand(2, 2, h, w)
    valid = torch.ones(2, 1, h, w, dtype=torch.bool)
    return canvas[..., 2:, 3:], canvas[..., :h, :w], flow, valid


def test_training_reaches_every_parameter_and_lowers_the_loss():
    torch.manual_seed(0)
    model = vcn("elliptical", heads=True)
    image1, image2, flow, valid = painted_pair(128, 128)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(4):
        output = model(image1, image2)
        loss = multiscale_loss(output.flows, flow, valid, **output.extra)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        if step == 0:
            assert len(output.extra["out_of_range"]) == 5
            for name, p in model.named_parameters():
                assert p.grad is not None, name
                assert p.grad.isfinite().all(), name
                # In factor form with channels apart, S moves at once as well.
                assert p.grad.any(), name
        optimiser.step()
    assert losses[-1] < losses[0]


def test_in_left_form_s_waits_for_t():
    torch.manual_seed(0)
    model = vcn_small("elliptical", "left").double()
    image1, image2, flow, valid = painted_pair(128, 128)
    output = model(image1[:1], image2[:1])
    multiscale_loss(output.flows, flow[:1].double(), valid[:1], **output.extra).backward()
    for ip in model.inner_products.values():
        assert ip.t.grad.abs().max() > 0
        assert ip.S_upper.grad.abs().max() <= ROUNDING * ip.t.grad.abs().max()


def test_training_shows_the_normalisations_both_frames_at_once(small):
    model = with_weights_of(vcn_small().double(), small).train()
    image1, image2 = images(2, 128, 128, torch.float64)
    model(image1, image2)
    moved = model.pyramid.stem[0][1].running_mean
    both = model.pyramid.stem[0][0](
        torch.cat([model.normalise(image1, 1), model.normalise(image2, 2)])
    )
    torch.testing.assert_close(moved, 0.1 * both.mean((0, 2, 3)))
    assert model.pyramid.stem[0][1].num_batches_tracked == 1


def test_it_is_born_with_he_s_normal_weights_and_no_biases():
    torch.manual_seed(0)
    model = vcn_small()
    layers = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Conv3d)]
    for layer in layers:
        assert layer.bias is None or not layer.bias.any()
    spread = [
        float(m.weight.square().mean()) * m.weight[0, 0].numel() * m.out_channels
        for m in layers
        if m.weight.numel() > 10_000
    ]
    assert len(spread) > 10
    assert spread == pytest.approx([2.0] * len(spread), rel=0.1)
