"""What is said about W is true of W, for every kind of inner product and network."""

from __future__ import annotations

import json

import pytest
import torch

import lcv
from lcv.errors import ArgumentError
from lcv.inner_product import INNER_PRODUCTS, make_inner_product
from lcv.visual.inspection import features_of, inspect_model, inspect_product


def strong(kind, channels=12):
    """An inner product far from I."""
    product = make_inner_product(kind, channels)
    for name, parameter in product.named_parameters():
        with torch.no_grad():
            if name == "P":
                parameter.copy_(torch.linalg.qr(torch.randn(channels, channels)).Q)
            else:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return product


@pytest.mark.parametrize("kind", INNER_PRODUCTS)
def test_the_numbers_are_those_of_W(kind):
    product = strong(kind)
    level = inspect_product(product)
    W = product.matrix().detach().double()
    symmetric = (W + W.mT) / 2
    # Eigenvectors: unit, and W stretches each by its eigenvalue.
    stretched = symmetric @ level.vectors
    torch.testing.assert_close(stretched, level.vectors * level.summary.eigenvalues)
    eye = torch.eye(12).double()
    torch.testing.assert_close(level.vectors.mT @ level.vectors, eye)
    said = level.as_dict(count=2)
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["positive_definite"] == bool(torch.linalg.eigvalsh(symmetric)[0] > 0)
    assert said["is_identity"] == (kind == "euclidean")
    assert said["most_weighted"][0]["eigenvalue"] == said["eigenvalues"][-1]
    assert said["most_weighted"][1]["eigenvalue"] == said["eigenvalues"][-2]
    assert said["least_weighted"][0]["eigenvalue"] == said["eigenvalues"][0]
    for end in said["most_weighted"], said["least_weighted"]:
        direction = torch.tensor(end[0]["direction"]).double()
        weight = direction @ W @ direction
        assert float(weight) == pytest.approx(end[0]["eigenvalue"], abs=1e-5)
        channel, share = next(iter(end[0]["strongest_channels"].items()))
        assert share == pytest.approx(float(direction.abs().max()))
        assert share == pytest.approx(float(direction[int(channel)]))
    assert (said["angles_degrees"] is None) == (kind == "free")


def test_a_rotation_by_a_known_angle():
    """One plane turned by 30 degrees: P has the angles 30, 30 and else 0."""
    product = make_inner_product("elliptical", 4)
    with torch.no_grad():
        product.S_upper[0] = torch.tan(torch.tensor(torch.pi / 12))
        product.t[0] = 1.0
    said = inspect_product(product).as_dict()
    assert said["angles_degrees"] == pytest.approx([0, 0, 30, 30], abs=1e-4)
    assert said["eigenvalues"] == pytest.approx([1, 1, 1, 3], rel=1e-5)
    assert said["condition"] == pytest.approx(3, rel=1e-5)
    assert said["distance_from_identity"] == pytest.approx(1.0, rel=1e-5)  # |3 − 1| / √4
    assert said["pair"]["channels"] == [0, 1]
    # Λ = diag(3, 1) turned by 30°: W01 = ±(3 − 1)/2 · sin 60°
    assert abs(said["pair"]["W"][0][1]) == pytest.approx(3**0.5 / 2, rel=1e-5)


def test_the_pair_is_the_one_that_W_ties_most():
    product = make_inner_product("gram", 5)
    with torch.no_grad():
        product.R[3, 1] = 0.8
        product.R[0, 4] = 0.2
    level = inspect_product(product)
    assert level.pair == (1, 3)
    W = product.matrix().detach().double()
    wanted = W[1, 3] / (W[1, 1] * W[3, 3]).sqrt()
    assert level.as_dict()["pair"]["cosine"] == pytest.approx(float(wanted))


def test_a_matrix_that_is_no_inner_product_says_so():
    product = make_inner_product("free", 3)
    with torch.no_grad():
        product.W[0, 0] = -2.0
        product.W[1, 2] = 0.5
    level = inspect_product(product, channels=(0, 1))
    said = level.as_dict()
    assert said["condition"] is None
    assert not said["positive_definite"]
    assert not level.has_ellipse
    assert any("no P and no angle" in note for note in said["notes"])
    assert any("not symmetric" in note for note in said["notes"])


def test_the_identity_says_so():
    said = inspect_product(make_inner_product("elliptical", 3)).as_dict()
    assert (said["condition"], said["distance_from_identity"]) == (1.0, 0.0)
    assert said["eigenvalues"] == [1.0, 1.0, 1.0]
    assert said["angles_degrees"] == [0.0, 0.0, 0.0]
    assert said["notes"] == [
        "W = I: all directions weigh the same, so none is the most or the least"
    ]


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("raft-small", {"": 128}),
        ("vcn-small", {"6": 128, "5": 128, "4": 128, "3": 64}),
        ("ddflow", {"6": 192, "5": 128, "4": 96, "3": 64, "2": 32}),
    ],
)
def test_every_level_of_every_network_and_its_features(name, levels):
    model = lcv.build(name).eval()
    found = inspect_model(model)
    assert {level: len(each.W) for level, each in found.items()} == levels
    image = 255 * torch.rand(1, 3, 72, 88)
    features = features_of(model, image)
    assert {level: len(f) for level, f in features.items()} == levels
    assert all(f.ndim == 3 and f.isfinite().all() for f in features.values())
    assert all(not product._forward_pre_hooks for product in model.inner_products.values())


def test_the_features_are_the_encoders():
    model = lcv.build("raft-small").eval()
    image = 255 * torch.rand(1, 3, 64, 88)
    with torch.no_grad():
        wanted = model.encode(image).matching[0]
    torch.testing.assert_close(features_of(model, image)[""], wanted, rtol=0, atol=0)


def test_refusals():
    product = make_inner_product("elliptical", 4)
    for pair in ((1, 1), (0, 4), (-1, 2)):
        with pytest.raises(ArgumentError, match=r"two different channels of level 3 from 0 to 3"):
            inspect_product(product, "3", pair)
    with pytest.raises(ArgumentError, match="Linear has no W to inspect"):
        inspect_model(torch.nn.Linear(2, 2))


def test_how_many_directions_and_channels_are_named():
    level = inspect_product(strong("elliptical", 8))
    said = level.as_dict()
    assert [len(said[end]) for end in ("most_weighted", "least_weighted")] == [3, 3]
    values = [each["eigenvalue"] for each in said["most_weighted"]]
    assert values == said["eigenvalues"][:-4:-1]
    named = said["least_weighted"][2]
    assert named["eigenvalue"] == said["eigenvalues"][2]
    strongest = sorted(enumerate(named["direction"]), key=lambda each: -abs(each[1]))[:5]
    assert named["strongest_channels"] == {str(channel): share for channel, share in strongest}
    assert said["channels"] == 8
    assert said["notes"] == []


def test_one_channel_has_no_plane():
    product = make_inner_product("diagonal", 1)
    with torch.no_grad():
        product.t.fill_(1.0)
    level = inspect_product(product)
    assert level.pair == (0, 0)
    assert not level.has_ellipse
    assert level.as_dict()["pair"] == {"channels": [0, 0], "W": [[3.0, 3.0]] * 2, "cosine": 1.0}


def test_a_plane_of_no_length_is_no_ellipse_and_has_no_cosine():
    product = make_inner_product("free", 3)
    with torch.no_grad():
        product.W.copy_(torch.diag(torch.tensor([0.0, 1.0, 2.0])))
    level = inspect_product(product)
    assert level.pair == (0, 1)  # nothing is tied
    assert not level.positive
    assert not level.has_ellipse
    assert level.as_dict()["pair"]["cosine"] == 0.0
    assert inspect_product(product, channels=(2, 1)).has_ellipse
    assert inspect_product(product, channels=(2, 1)).plane().tolist() == [[2, 0], [0, 1]]


def test_channels_are_counted_from_zero():
    product = make_inner_product("elliptical", 4)
    assert inspect_product(product, channels=(0, 3)).pair == (0, 3)
    assert inspect_product(product, channels=(3, 0)).pair == (3, 0)
    with pytest.raises(ArgumentError, match="wanted two different channels from 0 to 3$"):
        inspect_product(product, channels=(4, 0))
