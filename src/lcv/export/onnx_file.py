"""The format "onnx": an ONNX model, run by ONNX Runtime."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from lcv.errors import BackendError, FileError

ENDING = ".onnx"
NOTE = "lcv"
OPSET = 18  # the oldest that the exporter writes of itself, so that most runtimes read it


def check_available() -> None:
    """Refuse, with what to do, where the optional packages are missing."""
    missing = []
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError:
            missing.append(package)
    if missing:
        raise BackendError(
            f"export: the format onnx needs {', '.join(missing)}, which "
            f"{'is' if len(missing) == 1 else 'are'} not installed here: "
            f'pip install "lcv-flow[export]"'
        )


def versions() -> dict[str, Any]:
    """What made and checked the file."""
    import onnx
    import onnxruntime  # type: ignore[import-untyped]

    return {
        "opset": OPSET,
        "torch": str(torch.__version__),
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
    }


def convert(program: ExportedProgram) -> Any:
    """The program as an `onnx.ModelProto` with the inputs image1 and image2 and the output flow."""
    try:
        with _quiet():
            converted = torch.onnx.export(
                program,
                input_names=["image1", "image2"],
                output_names=["flow"],
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    # The exporter raises errors of many kinds, whose first line says which operator it was.
    except Exception as error:
        first = str(error).strip().split("\n", 1)[0][:300]
        raise BackendError(
            f"export: torch {torch.__version__} cannot write this program as ONNX: {first}"
        ) from error
    assert converted is not None
    model = converted.model_proto
    # Notes for the exporter's own developers: names of modules and lines of code.
    for noted in (
        model.graph,
        *model.graph.node,
        *model.graph.value_info,
        *model.graph.initializer,
    ):
        noted.ClearField("metadata_props")
    return model


def content(model: Any, metadata: dict[str, Any]) -> bytes:
    """The bytes of the file, the metadata as JSON under the key "lcv" of its properties."""
    import onnx

    onnx.helper.set_model_props(model, {NOTE: json.dumps(metadata)})
    return bytes(model.SerializeToString())


class Runner:
    """Runs a file's bytes in ONNX Runtime on the CPU: flow = runner(image1, image2)."""

    def __init__(self, content: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, image1: Tensor, image2: Tensor) -> Tensor:
        images = {"image1": image1.numpy(), "image2": image2.numpy()}
        return torch.from_numpy(self.session.run(["flow"], images)[0])


def read_metadata(path: Path) -> dict[str, Any]:
    """What `content` was given."""
    import onnx

    try:
        properties = {p.key: p.value for p in onnx.load(path).metadata_props}
        return dict(json.loads(properties[NOTE]))
    # onnx raises protobuf's own errors, of a package that we do not import.
    except Exception as error:
        raise FileError(f"{path}: no .onnx file that lcv wrote: {str(error)[:200]}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter speaks of its own affairs: of torchvision, of deprecations, of its steps."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
