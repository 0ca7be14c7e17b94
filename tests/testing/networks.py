"""Networks that cost nothing and whose flow is known beforehand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lcv.models.ddflow.model import EXPORT_RULE
from lcv.models.types import Defaults, FlowOutput


class Stub(nn.Module):
    """The contract of a network around any `forward`: a test says no more than its flow."""

    forms = ("left",)
    stride = 8
    least_side = 1
    volumes = ("local",)
    takes_flow_init = False
    defaults = Defaults()
    names = ()
    export_rule = EXPORT_RULE
    inner_product = None

    @property
    def inner_products(self) -> dict[str, nn.Module]:
        return {}

    def encodes_by_role(self) -> bool:
        return False

    def encode(self, image: Tensor, role: str = "first", pad: str | None = None) -> Tensor:
        return image

    def match(self, features1: Tensor, features2: Tensor, **options: Any) -> FlowOutput:
        given = ("iters", "flow_init")
        return self(features1, features2, **{k: options[k] for k in given if options.get(k)})

    def with_volume(self, name: str) -> Stub:
        return self

    def layer_before_w(self) -> None:
        return None

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        return []

    def core_for_export(self, lookup: str) -> nn.Module:
        return self


class Constant(Stub):
    """The same flow at every pixel, whatever it sees; remembers how it was called.

    recurrent: takes iterations, padding and a start, as RAFT does; else refuses them, as VCN does
    """

    def __init__(self, flow: tuple[float, float] = (0.0, 0.0), recurrent: bool = True) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.tensor(flow))
        self.calls: list[dict[str, object]] = []
        self.takes_flow_init = recurrent
        if recurrent:
            self.defaults = Defaults(iters=20, pads=("sintel", "kitti"))

    def forward(self, image1: Tensor, image2: Tensor, **options: Any) -> FlowOutput:
        assert image1.shape == image2.shape
        if not self.takes_flow_init:
            assert options == {}, "this network has its own rules"
        self.calls.append({**options, "training": self.training, "dtype": self.constant.dtype})
        b, _, h, w = image1.shape
        flow = self.constant.view(1, 2, 1, 1).expand(b, 2, h, w)
        low = self.constant.view(1, 2, 1, 1).expand(b, 2, -(-h // 8), -(-w // 8)) / 8
        return FlowOutput(flow, low=low)


class Interrupted(Constant):
    """Counts its calls, and is interrupted at one of them."""

    def __init__(self, at: int = 0) -> None:
        super().__init__((2.0, -1.0))
        self.count, self.at = 0, at

    def forward(self, image1: Tensor, image2: Tensor, **options: Any) -> FlowOutput:
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt
        return super().forward(image1, image2, **options)
