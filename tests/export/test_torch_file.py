"""torch.export: on real pairs at three sizes the flow of the model; the file says what it is."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import torch
from torch.fx import GraphModule

import lcv
from export.real_pairs import CROPS, pair
from lcv.errors import FileError
from lcv.export import export_model, read_metadata, torch_file
from lcv.export.check import difference
from lcv.models.raft import RAFT
from testing.shared import shared

ITERS = 4


@pytest.mark.slow
def test_real_pairs_at_three_sizes(tmp_path):
    weights = shared("weights", "raft-small.pth")
    model = lcv.load("raft-small", weights=weights)
    path = tmp_path / "raft-small.pt2"
    metadata = export_model(model, path, iters=ITERS, lookup="grid_sample", weights=weights)
    run = torch_file.Runner(path.read_bytes())
    for name in CROPS:
        found = difference(model, run, RAFT.export_rule, pair(name), ITERS)
        assert found.is_small, f"{name}: {found.words()}"
        assert found.length > 0.1

    assert read_metadata(path) == metadata
    assert metadata["format"] == "torch"
    assert metadata["torch"] == torch.__version__
    assert "opset" not in metadata
    targets = {
        str(node.target)
        for module in run.module.modules()
        if isinstance(module, GraphModule)
        for node in module.graph.nodes
    }
    assert any("grid_sampler" in target for target in targets)
    with zipfile.ZipFile(path) as archive:
        content = b"".join(map(archive.read, archive.namelist()))
    for folder in (Path(lcv.__file__).parent, Path(torch.__file__).parent, tmp_path):
        assert str(folder).encode() not in content


def test_a_file_of_others_has_no_metadata_of_ours(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as archive:
        archive.writestr("lcv.json", json.dumps({}))
    with pytest.raises(FileError, match="no .pt2 file that lcv wrote"):
        read_metadata(tmp_path / "x.pt2")
