"""ONNX: on real pairs at three sizes the flow of the model, also by the example of the docs alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import lcv
from export.real_pairs import CROPS, frames, pair
from lcv.errors import BackendError, FileError
from lcv.export import export_model, onnx_file, read_metadata
from lcv.export.check import difference
from lcv.export.half import halved
from lcv.models.embedded import embedded_card, embedded_file
from lcv.models.raft import RAFT
from lcv.version import __version__

ITERS = 3
DOCS = Path(__file__).resolve().parents[2] / "docs" / "export.md"


@pytest.fixture(scope="module")
def open_file(tmp_path_factory):
    """Our own raft-small, whose W was learned, sizes and batch open, by gather; and the model."""
    model = lcv.load("raft-small")
    path = tmp_path_factory.mktemp("onnx") / "raft-small.onnx"
    weights = embedded_file("raft-small")
    return model, path, export_model(model, path, iters=ITERS, weights=weights, batch=True)


def test_real_pairs_at_three_sizes(open_file):
    model, path, _ = open_file
    run = onnx_file.Runner(path.read_bytes())
    for name in CROPS:
        for mode in ("sintel", "kitti"):
            found = difference(model, run, RAFT.export_rule, pair(name, mode), ITERS)
            assert found.is_small, f"{name}: {found.words()}"
            assert found.length > 0.1


def test_the_file_says_what_it_is(open_file):
    _, path, metadata = open_file
    assert read_metadata(path) == metadata
    assert metadata["weights"]["file"] == "raft-small.safetensors"
    assert metadata["weights"]["sha256"] == embedded_card("raft-small")["sha256"]
    assert metadata["made_by"] == f"lcv {__version__}"
    assert metadata["iters"] == ITERS
    assert metadata["opset"] == onnx_file.OPSET
    assert metadata["W"].startswith("folded")
    assert metadata["sizes"] == {"stride": 8, "height": [128, 4096], "width": [128, 4096]}
    assert metadata["fit"]["modes"] == ["sintel", "kitti"]
    assert metadata["inputs"]["image1"]["shape"] == ["batch", 3, "height", "width"]
    assert metadata["precision"] == "float32"
    pairs = [row["pair"] for row in metadata["error"]["measured"]]
    assert pairs == ["procedural"] * 3 + ["procedural, second of two"]
    assert all(row["mean"] <= 1e-3 for row in metadata["error"]["measured"])

    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [each.name for each in model.graph.input] == ["image1", "image2"]
    assert [each.name for each in model.graph.output] == ["flow"]
    assert {each.domain for each in model.opset_import} == {""}
    assert "GridSample" not in {node.op_type for node in model.graph.node}


def test_a_batch_of_three_is_three_pairs(open_file):
    _, path, _ = open_file
    run = onnx_file.Runner(path.read_bytes())
    images = 255 * torch.rand(4, 3, 128, 136, generator=torch.Generator().manual_seed(0))
    flow = run(images[:3], images[1:])
    for k in range(3):
        alone = run(images[k : k + 1], images[k + 1 : k + 2])
        assert (flow[k] - alone[0]).norm(dim=0).mean() <= 1e-3


def test_half_precision_on_real_pairs(open_file):
    """Within the bounds of float32, with the weights of all convolutions stored in half the bytes."""
    model, path, _ = open_file
    whole = onnx.load(path)
    half = halved(whole)
    onnx.checker.check_model(half, full_check=True)
    content = half.SerializeToString()
    assert len(content) < 0.6 * path.stat().st_size
    assert whole.SerializeToString() == onnx.load(path).SerializeToString(), "a copy is changed"
    kinds = {each.data_type for each in half.graph.initializer if len(each.dims) == 4}
    assert kinds == {onnx.TensorProto.FLOAT16}
    run = onnx_file.Runner(content)
    found = difference(model, run, RAFT.export_rule, pair("chairs", "sintel"), ITERS)
    assert found.is_small, found.words()


def test_the_file_tells_nothing_of_the_machine_it_was_made_on(open_file):
    _, path, _ = open_file
    content = path.read_bytes()
    for folder in (Path(lcv.__file__).parent, Path(torch.__file__).parent, path.parent):
        assert str(folder).encode() not in content


def test_the_example_of_the_docs_runs_without_lcv_and_torch(open_file, tmp_path):
    model, path, _ = open_file
    (code,) = re.findall(r"```python\n(import json.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    for number, frame in enumerate(frames("chairs"), start=1):
        lcv.data.formats.image.write_image(tmp_path / f"frame{number}.png", frame)
    (tmp_path / "raft-small.onnx").symlink_to(path)
    code += "\nimport sys\nassert not {'lcv', 'torch'} & set(sys.modules)\n"
    code += "np.save('flow.npy', flow)\n"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with torch.no_grad():
        _, image1, image2, _ = pair("chairs")
        truth = model(image1, image2, iters=ITERS).flow
    flow = torch.from_numpy(np.load(tmp_path / "flow.npy"))
    assert flow.shape == truth.shape
    assert (flow - truth).norm(dim=1).mean() <= 1e-3


def test_missing_packages_are_named_with_what_to_do(monkeypatch, tmp_path):
    for package in ("onnxscript", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    model = lcv.build("raft-small")
    with pytest.raises(
        BackendError,
        match=r'needs onnxscript, onnxruntime, which are not installed.*pip install "lcv-flow\[export\]"',
    ):
        export_model(model, tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_others_has_no_metadata_of_ours(tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"nothing of the kind")
    with pytest.raises(FileError, match="no .onnx file that lcv wrote"):
        read_metadata(tmp_path / "x.onnx")


def test_what_the_exporter_cannot_write_is_its_first_line(monkeypatch):
    def export(*words, **options):
        raise RuntimeError(f"\n {'x' * 310}\nand much more\nof it")

    monkeypatch.setattr(torch.onnx, "export", export)
    with pytest.raises(BackendError) as caught:
        onnx_file.convert("a program")
    begin = f"export: torch {torch.__version__} cannot write this program as ONNX: "
    assert str(caught.value) == begin + 300 * "x"
