"""DDFlow, coarse to fine, forward and backward flow in one call; W sits in every cost volume."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from lcv.cost_volume.expect import expect
from lcv.cost_volume.resize import resize_flow
from lcv.errors import ArgumentError, ShapeError
from lcv.inner_product import make_inner_product
from lcv.layers.images import as_input, refuse_half
from lcv.models.ddflow.estimator import Context, Estimator
from lcv.models.ddflow.names import FAMILIES
from lcv.models.ddflow.pyramid import CHANNELS, LEVELS, Pyramid
from lcv.models.types import (
    Defaults,
    ExportRule,
    Fitted,
    FlowOutput,
    OneVolume,
    Role,
    refuse_options,
)

Features = tuple[Tensor, ...]
"""The maps of levels 6, 5, 4, 3, 2."""

REFUSED = {
    "iters": "its number of steps is that of its levels",
    "flow_init": "it starts from zero flow at its coarsest level",
    "pad": "it takes images of any size as they are",
}

EXPORT_RULE = ExportRule(
    stride=1,
    least=5,
    why_fixed="with open sizes torch's tracer works on its 405 reads of windows for longer than is of "
    "use",
    why_not="its warp continues the image at two edges and ends it at the other two, which no "
    "grid_sample does",
    fit=lambda image1, image2, mode: Fitted(image1, image2, lambda flow: flow),
    fits_any=False,
    rule="None: the images have a size that the file takes. (The network itself takes any size as it "
    "is, so a padded pair gives the flow of the padded images, not quite that of the images.)",
)


class DDFlow(OneVolume):
    """Features → inner product → 9×9 cost volume → estimator, at levels 6, 5, 4, 3, 2.

    inner_products: one module a level, keyed "6", "5", "4", "3", "2", for 192, 128, 96, 64 and 32
    channels; each serves both directions, the feature of the frame whose flow is sought on the
    left.

    `model(image1, image2)` takes RGB (b, 3, h, w) in 0..255 of any size from 5×5 on and neither
    pads nor resizes: a flow is resized to whatever size the next level's features have. The flow
    from image1 to image2 is `output.flow`, the one from image2 to image1 is
    `output.backward.flow`.

    Facts: exchanging the images exchanges the two flows. With a side under 5 pixels every level
    has but one row or column, where this network's warp is zero throughout, so that the flow
    would not depend on the second image at all; such images are refused.
    """

    forms = ("left", "factor", "zca")
    stride = 1  # any size is a size this network takes
    least_side = 5
    volumes = ("local",)
    takes_flow_init = False
    defaults = Defaults(
        losses=("unsupervised", "sequence"),
        # It learns without truth, on pairs of small motion.
        finetuning={
            "data.recipe": "moderate",
            "optim.weight_decay": 0.0,
            "loss.name": "unsupervised",
        },
    )
    names = FAMILIES
    export_rule = EXPORT_RULE

    def __init__(self, inner_products: Mapping[str, nn.Module]) -> None:
        super().__init__()
        if set(inner_products) != set(LEVELS):
            raise ArgumentError(
                f"DDFlow: inner_products has the levels {sorted(inner_products)}, wanted one "
                f"module for each of {', '.join(LEVELS)}. `ddflow(inner_product=...)` builds them."
            )
        self.pyramid = Pyramid()
        self.inner_products = nn.ModuleDict({level: inner_products[level] for level in LEVELS})
        self.estimators = nn.ModuleDict({level: Estimator(CHANNELS[level]) for level in LEVELS})
        self.context = Context()

    @property
    def inner_product(self) -> nn.Module:
        """The inner product of the finest cost volume, that of level 2."""
        return self.inner_products[LEVELS[-1]]

    def forward(
        self,
        image1: Tensor,
        image2: Tensor,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        pad: str | None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        refuse_options("DDFlow", REFUSED, iters=iters, flow_init=flow_init, pad=pad)
        parameter = self.context.conv1.weight
        image1, image2 = as_input("DDFlow", parameter, image1=image1, image2=image2)
        features = self.encode(image1), self.encode(image2)
        return self.match(*features, size=(image1.shape[2], image1.shape[3]), all_flows=all_flows)

    def encode(self, image: Tensor, role: Role = "first", pad: None = None) -> Features:
        """The features of one frame. (b, 3, h, w) RGB in 0..255 → levels 6, 5, 4, 3, 2

        Facts: every map has the parameters' dtype, also under autocast, which rounds inside the
        convolutions only.
        """
        refuse_options("DDFlow", REFUSED, pad=pad)
        refuse_half("DDFlow", self.context.conv1.weight)
        (image,) = as_input("DDFlow", self.context.conv1.weight, image=image)
        h, w = image.shape[2:]
        if min(h, w) < self.least_side:
            raise ShapeError(
                f"DDFlow: the image is {w} wide and {h} high, but both must be at least "
                f"{self.least_side} pixels: below, every level has one row or column, where this "
                f"network cannot match. Enlarge or pad the image."
            )
        x = image / 255
        return tuple(f.to(x.dtype) for f in self.pyramid(x))

    def match(
        self,
        features1: Features,
        features2: Features,
        *,
        size: tuple[int, int] | None = None,
        iters: None = None,
        flow_init: None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Both flows from the features of two frames.

        size: (h, w) of the images; without it, four times that of level 2, which is right for
        multiples of 4. all_flows: whether to return every level's flow at that size too, by
        default only in training.

        → FlowOutput with `flow`; `flows` from levels 6, 5, 4, 3, 2 and then `flow` itself; `low`,
        the refined flow of level 2 in its own pixels; `extra`, the flow of each level in its own
        pixels under "level_6" … "level_2"; `backward`, all of these for the reverse direction
        """
        refuse_options("DDFlow", REFUSED, iters=iters, flow_init=flow_init)
        for name, features in (("features1", features1), ("features2", features2)):
            if len(features) != len(LEVELS):
                raise ArgumentError(
                    f"DDFlow.match: {name} has {len(features)} maps, wanted the "
                    f"{len(LEVELS)} that `encode` returns, level 6 first."
                )
        for level, f1, f2 in zip(LEVELS, features1, features2, strict=True):
            shape = f"b {CHANNELS[level]} h w"
            hint = f"Both are level {level} as `encode` returns it, of images of one size."
            expect("DDFlow.match", f1, f"features1: {shape}", f2, f"features2: {shape}", hint=hint)
        if size is None:
            size = (4 * features1[-1].shape[2], 4 * features1[-1].shape[3])
        if all_flows is None:
            all_flows = self.training

        pairs = len(features1[0])
        # Both directions are one batch: the second half has the frames exchanged.
        flow = features1[0].new_zeros(2 * pairs, 2, *features1[0].shape[2:])
        levels = {}
        for level, a, b in zip(LEVELS, features1, features2, strict=True):
            f1, f2 = torch.cat([a, b]), torch.cat([b, a])  # (2b, c, h, w)
            flow = resize_flow(flow, (f1.shape[2], f1.shape[3]), align_corners=True)
            flow, x = self.estimators[level](f1, f2, flow, self.inner_products[level])
            levels[f"level_{level}"] = flow
        low = self.context(x, flow)

        full = resize_flow(low, size, align_corners=True)
        flows: tuple[Tensor, ...] = ()
        if all_flows:
            coarse = (resize_flow(f, size, align_corners=True) for f in levels.values())
            flows = (*coarse, full)

        def direction(part: slice, backward: FlowOutput | None = None) -> FlowOutput:
            return FlowOutput(
                flow=full[part],
                flows=tuple(f[part] for f in flows),
                low=low[part],
                backward=backward,
                extra={name: f[part] for name, f in levels.items()},
            )

        return direction(slice(None, pairs), backward=direction(slice(pairs, None)))


def ddflow(inner_product: str = "euclidean", form: str = "left") -> DDFlow:
    """DDFlow with random weights and the named kind of inner product at every level, W = I.

    Facts: 4,273,628 parameters without those of W; "elliptical" adds 34,048.
    """
    return DDFlow(
        {
            level: make_inner_product(inner_product, channels=channels, form=form)
            for level, channels in CHANNELS.items()
        }
    )
