"""From a network to a program: the core traced by torch.export, at one size or with sizes open."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule, Node

from lcv.cost_volume.allpairs.portable import sample_by_gather
from lcv.errors import BackendError
from lcv.export.sizes import Sizes, traced_size

MOST_PAIRS = 1024  # of a batch


@torch.no_grad()
def trace(
    name: str, core: nn.Module, sizes: Sizes, lookup: str, batch: bool = False
) -> ExportedProgram:
    """The program of a core: image1, image2 (b, 3, h, w) → flow (b, 2, h, w).

    batch: whether b stays open; else it is 1
    Facts: with lookup "gather" there is no grid_sample in it.
    """
    h, w = traced_size(sizes)
    b = 2 if batch else 1  # a tracer takes 1 for a constant
    images: tuple[Tensor, Tensor] = torch.zeros(b, 3, h, w), torch.zeros(b, 3, h, w)
    image: dict[int, Any] = {0: Dim("batch", min=1, max=MOST_PAIRS)} if batch else {}
    if sizes.is_open:
        rows, columns = (
            Dim(axis, min=low // sizes.stride, max=high // sizes.stride)
            for axis, (low, high) in (("rows", sizes.height), ("columns", sizes.width))
        )
        image |= {2: sizes.stride * rows, 3: sizes.stride * columns}
    open_sizes = (image, image) if image else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own deprecations, nothing of the caller's
            program = torch.export.export(core, images, dynamic_shapes=open_sizes)
            if lookup == "gather":
                sampler = torch.ops.aten.grid_sampler.default
                if any(node.target is sampler for node in nodes_of(program)):
                    program = program.run_decompositions({sampler: sample_by_gather})
    # torch raises errors of many kinds here, some of them its own internal ones.
    except Exception as error:
        first = str(error).strip().split("\n", 1)[0][:300]
        advice = (
            " Sizes left open may be what it cannot follow: give one size (--size HxW)."
            if sizes.is_open
            else " Leave out --batch."
            if batch
            else ""
        )
        raise BackendError(
            f"export: torch {torch.__version__} cannot trace {name} ({sizes.words()}): {first}.{advice}"
        ) from error
    # They would travel in the file: two images of the traced size, and the folders of this machine.
    program.example_inputs = None
    for node in nodes_of(program):
        node.meta.pop("stack_trace", None)
    return program


def nodes_of(program: ExportedProgram) -> Iterator[Node]:
    """Every operation, also those in the parts that stand apart, such as those without autocast."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            yield from module.graph.nodes
