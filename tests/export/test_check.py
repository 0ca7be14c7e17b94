"""The check on the spot sees what is wrong, by how much, and says so."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

import lcv
from lcv.data.formats.image import write_image
from lcv.errors import ArgumentError, FileError
from lcv.export.check import difference, read_pairs, refuse_large, seeded_pairs
from lcv.export.prepare import Core
from lcv.export.sizes import choose_sizes
from lcv.models.raft import RAFT
from lcv.models.vcn import VCN

SIZES = choose_sizes("it", RAFT.export_rule, (64, 72))


@pytest.fixture
def model():
    return lcv.build("raft-small", "euclidean").eval()


@torch.no_grad()
def test_the_core_and_the_rule_are_the_model(model):
    """Padding and cutting by the rule gives what the model gives on the image itself, exactly."""
    core = Core(model, 1)
    pairs = seeded_pairs(RAFT.export_rule, SIZES)
    found = [difference(model, core, RAFT.export_rule, pair, 1) for pair in pairs]
    assert [each.most for each in found] == [0, 0, 0]
    assert [each.image for each in found] == [(64, 72), (61, 67), (57, 70)]
    assert [each.given for each in found] == [(64, 72)] * 3
    assert all(each.length > 0 for each in found)
    refuse_large("it", found)


@torch.no_grad()
def test_a_flow_that_is_off_is_measured(model):
    core = Core(model, 1)
    off = torch.tensor([0.03, 0.04]).view(1, 2, 1, 1)
    pair = seeded_pairs(RAFT.export_rule, SIZES)[2]
    found = difference(model, lambda a, b: core(a, b) + off, RAFT.export_rule, pair, 1)
    # A shift by (0.03, 0.04) is one by 0.05, to the rounding of flows of a few pixels.
    assert found.mean == pytest.approx(0.05, rel=1e-3)
    assert found.at_999 == pytest.approx(0.05, rel=1e-3)
    with pytest.raises(FileError, match=r"x.onnx: not written.*57×70 mean 0.05, 99.9 % 0.05"):
        refuse_large("x.onnx", [found])


def test_each_bound_counts_and_nan_is_not_small(model):
    pair = seeded_pairs(RAFT.export_rule, SIZES)[0]
    found = difference(model, Core(model, 1), RAFT.export_rule, pair, 1)
    assert found.is_small
    for wrong in ({"mean": 1.1e-3}, {"at_999": 1.1e-2}, {"mean": math.nan}):
        assert not dataclasses.replace(found, **wrong).is_small


def test_pairs_are_seeded_pictures_in_motion():
    pairs, again = seeded_pairs(RAFT.export_rule, SIZES), seeded_pairs(RAFT.export_rule, SIZES)
    for pair, same in zip(pairs, again, strict=True):
        assert torch.equal(pair.image1, same.image1)
        assert torch.equal(pair.image1, pair.image1.round())
        assert 0 <= pair.image1.min() < pair.image1.max() <= 255
        assert pair.image1.std() > 10
        assert (pair.image1 - pair.image2).abs().mean() > 1
    assert [pair.mode for pair in pairs] == ["sintel", "sintel", "kitti"]


def test_pairs_of_the_caller(tmp_path):
    files = {}
    for name, (h, w) in {"a.png": (61, 70), "b.png": (61, 70), "c.png": (61, 80)}.items():
        files[name] = tmp_path / name
        image = (255 * torch.rand(h, w, 3)).byte().numpy()
        write_image(files[name], image)
    (pair,) = read_pairs(RAFT.export_rule, SIZES, [(files["a.png"], str(files["b.png"]))])
    assert pair.name == "a.png, b.png"
    assert torch.equal(
        pair.image2[0].movedim(0, 2), torch.from_numpy(lcv.read_image(files["b.png"])).float()
    )
    with pytest.raises(ArgumentError, match="c.png: this frame is 61×80 and .*a.png is 61×70"):
        read_pairs(RAFT.export_rule, SIZES, [(files["a.png"], files["c.png"])])
    with pytest.raises(ArgumentError, match="c.png: .* comes to 64×80 .* the file takes 64×72"):
        read_pairs(RAFT.export_rule, SIZES, [(files["c.png"], files["c.png"])])
    large = choose_sizes("it", VCN.export_rule, (128, 128))
    with pytest.raises(ArgumentError, match="a.png: .* comes to 64×128 .* the file takes 128×128"):
        read_pairs(VCN.export_rule, large, [(files["a.png"], files["b.png"])])
    with pytest.raises(FileError, match="none.png"):
        read_pairs(RAFT.export_rule, SIZES, [(tmp_path / "none.png", files["a.png"])])
