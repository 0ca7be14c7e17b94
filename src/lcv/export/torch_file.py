"""The format "torch": a program of torch.export, in a .pt2 file."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from lcv.errors import FileError

ENDING = ".pt2"
NOTE = "lcv.json"


def check_available() -> None:
    """torch is always here."""


def versions() -> dict[str, Any]:
    """What the program depends on."""
    return {"torch": str(torch.__version__)}


def convert(program: ExportedProgram) -> ExportedProgram:
    """A program is what the file holds."""
    return program


def content(program: ExportedProgram, metadata: dict[str, Any]) -> bytes:
    """The bytes of the file, the metadata in its extra file `lcv.json`."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, buffer, extra_files={NOTE: json.dumps(metadata, indent=1)})
    return buffer.getvalue()


class Runner:
    """Runs a file's bytes: flow = runner(image1, image2)."""

    def __init__(self, content: bytes) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.module = torch.export.load(io.BytesIO(content)).module()

    def __call__(self, image1: Tensor, image2: Tensor) -> Tensor:
        with torch.no_grad():
            return self.module(image1, image2)


def read_metadata(path: Path) -> dict[str, Any]:
    """What `content` was given, read out of the archive without loading the program."""
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(f"/extra/{NOTE}"))
            return dict(json.loads(archive.read(name)))
    except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise FileError(f"{path}: no .pt2 file that lcv wrote: {str(error)[:200]}") from error
