"""DDFlow's feature pyramid: six halvings of the image, five of which are matched."""

from __future__ import annotations

from torch import Tensor, nn

from lcv.models.ddflow.conv import SameConv2d, leaky

WIDTHS = {1: 16, 2: 32, 3: 64, 4: 96, 5: 128, 6: 192}
LEVELS = ("6", "5", "4", "3", "2")
CHANNELS = {level: WIDTHS[int(level)] for level in LEVELS}


class Pyramid(nn.Module):
    """Features at levels 6 to 2, level k having 1/2ᵏ of the image's resolution, rounded up.

    image: (b, 3, h, w) in 0..1 → five maps (b, c, ⌈h/2ᵏ⌉, ⌈w/2ᵏ⌉), coarsest first,
    c = 192, 128, 96, 64, 32 for k = 6, 5, 4, 3, 2

    Each level is two 3×3 convolutions, the first at stride 2, both leaky with slope 0.2; no
    normalisation. (PWC-Net, a near relative, has three a level, 196 channels at level 6 and
    slope 0.1.)
    """

    def __init__(self) -> None:
        super().__init__()
        inputs = 3
        for level, width in WIDTHS.items():
            self.add_module(f"conv{level}_1", SameConv2d(inputs, width, stride=2))
            self.add_module(f"conv{level}_2", SameConv2d(width, width))
            inputs = width

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        maps = []
        x = image
        for level in WIDTHS:
            x = leaky(self.get_submodule(f"conv{level}_1")(x))
            x = leaky(self.get_submodule(f"conv{level}_2")(x))
            maps.append(x)
        return tuple(reversed(maps[1:]))
