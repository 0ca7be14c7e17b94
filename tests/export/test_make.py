"""Whole or not at all, and only if it is right."""

from __future__ import annotations

import pytest
import torch

import lcv
from lcv.errors import ArgumentError, FileError
from lcv.export import export_model, make, read_metadata, table, torch_file
from lcv.export.sizes import Sizes
from lcv.models.registry import Spec


@pytest.fixture
def model():
    return lcv.build("raft-small").eval()


class OffByATenth(torch_file.Runner):
    """A runtime that is wrong."""

    def __call__(self, image1, image2):
        return super().__call__(image1, image2) + 0.1


def test_one_size_whole_or_not_at_all(model, tmp_path, monkeypatch):
    path = tmp_path / "small.pt2"
    options = {"size": (64, 72), "iters": 1}
    # Every step but the tracing is its own; that takes seconds, so it is done once.
    programs = []

    def trace_once(*arguments):
        if not programs:
            programs.append(trace(*arguments))
        return programs[0]

    trace = make.trace
    monkeypatch.setattr(make, "trace", trace_once)
    with monkeypatch.context() as patch:
        patch.setattr(torch_file, "Runner", OffByATenth)
        with pytest.raises(
            FileError, match=r"small.pt2: not written.*mean 0.14, .*; 57×70 mean 0.14"
        ):
            export_model(model, path, **options)
    assert list(tmp_path.iterdir()) == []

    with monkeypatch.context() as patch:

        def full(*arguments):
            raise OSError(28, "No space left on device")

        patch.setattr(make.Path, "write_bytes", full)
        with pytest.raises(FileError, match="writing failed, nothing was left behind"):
            export_model(model, path, **options)
    assert list(tmp_path.iterdir()) == []

    path.write_bytes(b"of yesterday")
    with pytest.raises(FileError, match="exists already"):
        export_model(model, path, **options)
    assert path.read_bytes() == b"of yesterday"

    steps = []
    metadata = export_model(model, path, overwrite=True, progress=steps.append, **options)
    assert [path] == list(tmp_path.iterdir())
    assert read_metadata(path) == metadata
    assert metadata["sizes"] == {"stride": 8, "height": [64, 64], "width": [72, 72]}
    assert metadata["weights"] is None
    assert [row["image"] for row in metadata["error"]["measured"]] == [[64, 72], [61, 67], [57, 70]]
    assert len(steps) == 3
    shown = table(metadata)
    for word in (
        "raft-small, W: folded",
        "not from a file",
        "float32 (1, 3, 64, 72), RGB",
        "float32 (1, 2, 64, 72), x right",
        "64×72 alone, height×width\n",
        "Only those that this brings to 64×72. Pad both",
        "57×70",
        "kitti",
    ):
        assert word in shown
    assert "h, w" not in shown
    metadata["sizes"] = Sizes(8, (128, 4096), (128, 2048)).as_dict()
    shown = table(metadata)
    assert "float32 (1, 3, h, w), RGB" in shown
    assert "heights 128 to 4096, widths 128 to 2048, multiples of 8\n" in shown
    assert "alone" not in shown
    assert "Only those" not in shown

    run = torch_file.Runner(path.read_bytes())
    image1, image2 = 255 * torch.rand(2, 1, 3, 64, 72)
    with torch.no_grad():
        torch.testing.assert_close(
            run(image1, image2), model(image1, image2, iters=1).flow, atol=1e-4, rtol=1e-4
        )


def test_an_unknown_ending_is_refused(model, tmp_path):
    with pytest.raises(ArgumentError, match="x.pb: wanted a name ending in .onnx or .pt2"):
        export_model(model, tmp_path / "x.pb")
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_said_before_anything_is_traced(model, tmp_path, monkeypatch):
    def never(*arguments):
        raise AssertionError("traced all the same")

    monkeypatch.setattr(make, "trace", never)
    (tmp_path / "there.pt2").write_bytes(b"mine")
    for options, words in (
        ({"size": (100, 100)}, "the next is 104×104"),
        ({"iters": 0}, "iters is 0"),
        ({"lookup": "texture"}, "no lookup 'texture'"),
        ({}, "exists already"),
    ):
        with pytest.raises((ArgumentError, FileError), match=words):
            export_model(model, tmp_path / "there.pt2", **options)
    assert (tmp_path / "there.pt2").read_bytes() == b"mine"


def test_a_network_that_is_none_of_ours_is_to_be_wrapped_first(tmp_path):
    network = torch.nn.Identity()
    network.spec = Spec("mine")
    with pytest.raises(ArgumentError, match="export: mine is not a FlowModel; wrap it with lcv.wr"):
        export_model(network, tmp_path / "x.pt2")
