"""VCN and VCN-small: coarse-to-fine flow from cost volumes whose channels are kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, cat, nn

from lcv.cost_volume.resize import resize_flow
from lcv.cost_volume.warp import in_view, warp
from lcv.errors import ArgumentError, ShapeError
from lcv.inner_product import make_inner_product
from lcv.layers.images import as_input, refuse_half
from lcv.layers.resizing import fit, fit_flow, next_multiples
from lcv.models.types import (
    Defaults,
    ExportRule,
    Fitted,
    FlowOutput,
    OneVolume,
    Role,
    refuse_options,
)
from lcv.models.vcn.features import CHANNELS, Pyramid
from lcv.models.vcn.matching import LevelResult, MatchingLevel, unit_length
from lcv.models.vcn.names import FAMILIES

COARSEST = 6
STRIDE = 2**COARSEST
HYPOTHESES = {6: 16, 5: 16, 4: 16, 3: 16, 2: 12}

Features = dict[int, Tensor]
"""The maps of one image by level, coarse first."""

REFUSED = {
    "iters": "it has a fixed number of levels and iterates nothing",
    "flow_init": "it starts every pair from the coarsest level",
    "pad": "it resizes to multiples of 64 by its own rule and never pads",
}


def resize_both(image1: Tensor, image2: Tensor, mode: str | None) -> Fitted:
    """Both images resized as `encode` resizes them."""
    size = image1.shape[2], image1.shape[3]
    larger = next_multiples(size, STRIDE)
    return Fitted(fit(image1, larger), fit(image2, larger), lambda flow: fit_flow(flow, size))


EXPORT_RULE = ExportRule(
    stride=STRIDE,
    least=2 * STRIDE,
    why_fixed="it pools its coarsest features over cells whose number and size follow the image's "
    "shape, so that each size is a program of its own",
    lookups=("grid_sample", "gather"),
    fit=resize_both,
    rule="Resize both images to the next multiples of 64, bilinearly, corners not aligned, without "
    "rounding; resize the flow back the same way and multiply its x by width / resized width and "
    "its y by height / resized height.",
)


class VCN(OneVolume):
    """Volumetric correspondence networks: at each level, an inner product per channel.

        volume[c, i, j, y, x] = g1[c, y, x] · g2[c, y + dy, x + dx],   g1, g2 = ip(f1, warp(f2))

    with f of unit length over the channels and no sum over c, so that the form of the inner
    product matters (see `vcn`). Levels 6 (1/64 of the image) to `finest` (2, or 3 in VCN-small)
    refine the flow of the level before.

    inner_products: one per level, by name: "6", "5", "4" (128 channels), "3", "2" (64 channels)
    md:    largest displacement per level, coarse first, in the level's pixels
    fac:   narrows the vertical range of level 6 to int(md[0] // fac)
    heads: add the out-of-range classifiers that the loss of training uses
    means: of frame 1 and of frame 2, subtracted after division by 255; a number, or three in the
           order blue, green, red. They are the buffers `mean1` and `mean2`.

    The caller's RGB in 0..255 becomes BGR in 0..1 less the mean inside. Images are resized
    (bilinearly, corners not aligned) to the next multiples of 64, never padded, and the flow is
    resized and rescaled back.
    **Departure:** the authors resize 8-bit images, which rounds to whole grey levels; we do not.
    """

    # Channels are kept apart, so that the form matters; see `vcn`.
    forms = ("factor", "left", "zca")
    stride = STRIDE
    least_side = STRIDE + 1  # resized to 128, 2 on the coarsest level, the least it can pool
    volumes = ("local",)
    takes_flow_init = False
    defaults = Defaults(
        losses=("multiscale", "sequence"),
        finetuning={
            "model.options": {"heads": True},
            "optim.weight_decay": 0.0,
            "loss.name": "multiscale",
            "precision": "float32",
        },
    )
    names = FAMILIES
    export_rule = EXPORT_RULE
    mean1: Tensor
    mean2: Tensor

    def __init__(
        self,
        inner_products: Mapping[str, nn.Module],
        *,
        md: Sequence[int] = (4, 4, 4, 4, 4),
        fac: float = 1.0,
        heads: bool = False,
        means: tuple[float | Sequence[float], float | Sequence[float]] = (0.33, 0.33),
        finest: int = 2,
    ) -> None:
        super().__init__()
        names = [str(k) for k in range(COARSEST, finest - 1, -1)]
        if set(inner_products) != set(names):
            raise ArgumentError(
                f"VCN: inner_products has levels {sorted(inner_products)}, wanted {names}. "
                f"Give one inner product for each level."
            )
        check_search_range(md, fac, names)
        self.md = tuple(int(m) for m in md)
        self.fac = float(fac)
        self.pyramid = Pyramid(finest)
        self.inner_products = nn.ModuleDict({name: inner_products[name] for name in names})
        self.levels = nn.ModuleDict()
        inherited = 0
        for name, m in zip(names, self.md, strict=True):
            k = int(name)
            self.levels[name] = MatchingLevel(
                CHANNELS[k],
                HYPOTHESES[k],
                inherited,
                (m, int(m // fac) if k == COARSEST else m),
                full=k == 2,
                head=heads,
            )
            inherited += HYPOTHESES[k]
        for name, mean in zip(("mean1", "mean2"), means, strict=True):
            self.register_buffer(name, torch.tensor(mean).expand(3).clone())
        self.apply(initialise)

    @property
    def inner_product(self) -> nn.Module:
        """The inner product of the finest level."""
        return self.inner_products[list(self.levels)[-1]]

    def encodes_by_role(self) -> bool:
        """Whether the two means differ, so that a frame's features depend on its place in a pair."""
        return not torch.equal(self.mean1, self.mean2)

    def normalise(self, image: Tensor, role: Role) -> Tensor:
        """RGB 0..255 → BGR 0..1 less the mean of that frame. (b, 3, h, w) → (b, 3, h, w)"""
        mean = self.mean1 if role == "first" else self.mean2
        return image.to(mean.dtype).flip(1) / 255 - mean[:, None, None]

    def encode(self, image: Tensor, role: Role = "first", pad: None = None) -> Features:
        """The maps of an image (b, 3, h, w), RGB 0..255, resized to multiples of 64.

        In training the batch normalisations see this batch alone, while `forward` shows them both
        frames as one batch, as the authors do.
        """
        refuse_options("VCN", REFUSED, pad=pad)
        (image,) = self._checked(image=image)
        return self.pyramid(self._resized(self.normalise(image, role)))

    def _checked(self, **images: Tensor) -> tuple[Tensor, ...]:
        refuse_half("VCN", self.mean1)
        checked = as_input("VCN", self.mean1, **images)
        h, w = checked[0].shape[-2:]
        if min(h, w) < self.least_side:
            raise ShapeError(
                f"VCN: images are {h}×{w}, wanted at least {self.least_side} pixels a side, since "
                f"the coarsest level works at 1/64. Enlarge the images and divide the flow by the "
                f"same factors."
            )
        return checked

    def _resized(self, image: Tensor) -> Tensor:
        return fit(image, next_multiples((image.shape[2], image.shape[3]), self.stride))

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
        """Flow from frame 1 to frame 2 out of their maps.

        size: (h, w) of the images; without it, the multiples of 64 to which they were resized

        `low` is the finest level's flow in its own pixels. `entropy` is the mean over the local
        and global entropies of all hypotheses, own and inherited, on that level.
        **Departure:** the authors return the entropy of the first pair of the batch alone.

        With `all_flows` (by default in training), `flows` holds every level's flow at full size,
        coarse first, and `extra` the keyword arguments of `multiscale_loss`: `md`, `fac`;
        `starts`, the flow each level started from, in its pixels (None on the coarsest);
        `out_of_range`, each level's logits (empty unless training with heads); and, from
        `forward` alone, `images`.
        """
        refuse_options("VCN", REFUSED, iters=iters, flow_init=flow_init)
        if all_flows is None:
            all_flows = self.training
        results: list[LevelResult] = []
        starts: list[Tensor | None] = []
        for name, level in self.levels.items():
            f1, f2 = features1[int(name)], features2[int(name)]
            g1, g2 = self.inner_products[name](unit_length(f1), unit_length(f2))
            start, inherited = None, None
            h, w = f1.shape[-2:]
            if results:
                start = resize_flow(results[-1].flow, (h, w), align_corners=False)
                inherited = results[-1].hypotheses.resized((h, w))
                g2 = warp(g2, start) * in_view(start, strict=True)
            results.append(level(g1, g2, f1, start, inherited))
            starts.append(None if start is None else start.detach())

        h, w = h * 2 ** int(name), w * 2 ** int(name)
        wanted = results if all_flows else results[-1:]
        flows = tuple(resize_flow(r.flow, (h, w), align_corners=False) for r in wanted)
        if size is not None:
            flows = tuple(fit_flow(flow, size) for flow in flows)
        extra = None
        if all_flows:
            logits = tuple(r.out_of_range for r in results if r.out_of_range is not None)
            extra = {
                "md": self.md,
                "fac": self.fac,
                "starts": tuple(starts),
                "out_of_range": logits,
            }
        return FlowOutput(
            flow=flows[-1],
            flows=flows if all_flows else (),
            low=results[-1].flow,
            entropy=results[-1].hypotheses.entropies.flatten(1, 2).mean(1, keepdim=True),
            extra=extra,
        )

    def forward(
        self,
        image1: Tensor,
        image2: Tensor,
        iters: None = None,
        flow_init: None = None,
        pad: None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Flow from image1 to image2, RGB (b, 3, h, w) in 0..255, at least 65 pixels a side.

        `flow`, `flows` and `extra["images"]` (the pair, normalised) have the images' size; `low`
        and `entropy` have a quarter (VCN-small: an eighth) of the next multiples of 64.
        """
        refuse_options("VCN", REFUSED, iters=iters, flow_init=flow_init, pad=pad)
        image1, image2 = self._checked(image1=image1, image2=image2)
        images = self.normalise(image1, "first"), self.normalise(image2, "second")
        resized = [self._resized(image) for image in images]
        if self.training:
            both = self.pyramid(cat(resized))
            pairs = {k: f.chunk(2) for k, f in both.items()}
            maps = [{k: pair[i] for k, pair in pairs.items()} for i in (0, 1)]
        else:
            maps = [self.pyramid(image) for image in resized]
        output = self.match(*maps, size=(image1.shape[2], image1.shape[3]), all_flows=all_flows)
        if output.extra is not None:
            output.extra["images"] = images
        return output


def check_search_range(md: Sequence[int], fac: float, names: Sequence[str]) -> None:
    """Refuse a search range that gives some level no window."""
    if len(md) != len(names) or any(m != int(m) or m < 1 for m in md):
        raise ArgumentError(
            f"VCN: md is {tuple(md)}, wanted {len(names)} whole numbers of at least 1, one for "
            f"each of the levels {', '.join(names)}"
        )
    if not 1 <= fac <= md[0]:
        raise ArgumentError(
            f"VCN: fac is {fac}, wanted 1 to md[0] = {md[0]}: it divides the vertical range of "
            f"level {COARSEST}, of which at least one pixel must be left"
        )


def initialise(module: nn.Module) -> None:
    """Normal weights of variance 2 / (kernel · outputs), biases 0; normalisations at 1 and 0."""
    if isinstance(module, nn.Conv2d | nn.Conv3d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def vcn(
    inner_product: str = "euclidean",
    form: str = "factor",
    md: Sequence[int] = (4, 4, 4, 4, 4),
    fac: float = 1.0,
    heads: bool = False,
) -> VCN:
    """VCN with random weights and W = I at all five levels: 6.23 M parameters, 10.31 M with heads.

    form: how W enters, which matters here since channels are not summed: "factor" multiplies
    (Q f1)_c (Q f2)_c, "left" (Wᵀ f1)_c (f2)_c. The paper does not say which it used; only under
    "factor" is its ablation "P only" a network of its own.
    md, fac: FlyingChairs and Things (4, 4, 4, 4, 4), 1; KITTI (8, 4, 4, 4, 4), 2; Sintel
    (7, 4, 4, 4, 4), 1.4.
    """
    return VCN(make_all(inner_product, form, finest=2), md=md, fac=fac, heads=heads)


def vcn_small(
    inner_product: str = "euclidean",
    form: str = "factor",
    md: Sequence[int] = (4, 4, 4, 4),
    fac: float = 1.0,
    heads: bool = False,
) -> VCN:
    """VCN without level 2, its flow at 1/8: 5.19 M parameters, 8.37 M with heads. See `vcn`."""
    return VCN(make_all(inner_product, form, finest=3), md=md, fac=fac, heads=heads, finest=3)


def make_all(inner_product: str, form: str, finest: int) -> dict[str, nn.Module]:
    """The same kind of inner product for each level, with that level's channels."""
    return {
        str(k): make_inner_product(inner_product, channels=CHANNELS[k], form=form)
        for k in range(COARSEST, finest - 1, -1)
    }
