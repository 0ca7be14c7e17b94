"""All statistics of the procedural source in one frozen record, and the ready-made ones.

Lengths are pixels of the frames made, unless a field says "share of" something. N(0, σ) is a normal
distribution, U(a, b) a uniform one. The speed s of a scene scales everything that moves in it, so
that scenes range from hundredths of a pixel to a third of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Recipe:
    """What scenes look like and how they move; `generate` takes one."""

    layers: int = 8
    """Background and objects together, 1 to 32."""

    speed_sigma: float = 0.9
    """s = e^N(0, speed_sigma), one a scene."""
    speed_range: tuple[float, float] = (0.02, 5.0)
    """s is clipped to this."""
    background_shift: float = 9.0
    """Camera: the background moves by N(0, this)·s in x and in y."""
    object_shift: float = 14.0
    """Objects move by N(0, this)·s on top of their share of the camera's motion."""
    camera_share: tuple[float, float] = (0.6, 1.4)
    """U of this: how much of the camera's shift an object takes part in (nearer moves more)."""
    fast_probability: float = 0.1
    """This part of the objects moves `fast_factor` times as far."""
    fast_factor: float = 3.0
    """See `fast_probability`."""
    largest_shift: float = 0.34
    """A layer's own shift, a step, is clipped to this share of the width in x, height in y."""
    background_turn: float = 0.03
    """The background turns by about N(0, this) radians, times min(s, 1)."""
    object_turn: float = 0.09
    """The same for objects, on top."""
    background_zoom: float = 0.03
    """The background grows by e^N(0, this), the exponent times min(s, 1)."""
    object_zoom: float = 0.06
    """The same for objects, on top."""
    background_shear: float = 0.02
    """The background is sheared by N(0, this), times min(s, 1)."""
    object_shear: float = 0.03
    """The same for objects, on top."""
    warp_probability: float = 0.35
    """This part of the layers bends: two crossed sine shears."""
    warp_shift: float = 5.0
    """Amplitude N(0, this)·min(s, 1) of each shear; less where the layer is too small for it."""
    change: float = 0.3
    """In sequences each step's motion differs from the first by this share of its spread."""

    object_size: tuple[float, float] = (0.08, 0.6)
    """Radii as a share of the smaller side: a + (b − a)·U²; small ones are the more frequent."""
    elongation: float = 0.5
    """An object's radii differ by a factor e^|N(0, this)|."""
    kinds: tuple[float, float, float, float, float] = (0.4, 0.24, 0.14, 0.12, 0.1)
    """Weights of blobs, polygons, sticks, ribbons (open thin curves) and rings."""
    thin: tuple[float, float] = (0.5, 5.0)
    """Half width of sticks, ribbons and rings: a + (b − a)·U³."""
    cut_probability: float = 0.3
    """This part of the blobs and polygons is cut into by thresholded noise: bays, islands, holes."""
    hole_probability: float = 0.2
    """This part of the blobs and polygons has a round hole."""

    texture_scale: tuple[float, float] = (0.6, 1.0)
    """Texels a pixel, U of this; never more than the texture has room for."""
    flat_probability: float = 0.12
    """This part of the layers has its contrast reduced to 3 to 25 %."""
    negative_probability: float = 0.1
    """This part of the layers is a photographic negative."""
    contrast: tuple[float, float] = (0.7, 1.2)
    """Gain of a layer's texture about mid-grey, U of this, and a little more a channel."""
    camouflage_probability: float = 0.0
    """This part of the objects wears what the background wears, so that only motion gives them away."""
    tint: float = 25.0
    """Offset of a layer's texture, N(0, this) grey levels, half of it common to the channels."""

    illumination: float = 1.0
    """Probability that a scene gets gamma, gain, offset and a smooth shade of its own."""
    illumination_change: float = 0.5
    """Probability that these differ between the frames, with a colour cast."""
    fog: float = 0.1
    """Probability of fog: a pale veil of smooth thickness that drifts."""
    motion_blur: float = 0.15
    """Probability that frames are blurred along their motion."""
    shutter: float = 0.5
    """Longest exposure as a share of the time between frames, U(0, this)."""
    sharpen: float = 0.0
    """Probability that frames are sharpened, as cameras do."""
    sharpen_amount: tuple[float, float] = (0.5, 5.0)
    """How much of what a blur of one pixel takes away is added, U of this."""
    noise: float = 0.8
    """Probability of sensor noise."""
    noise_sigma: float = 7.5
    """Its largest deviation in grey levels, U(0, this)."""
    jpeg: float = 0.2
    """Probability of losses like JPEG's."""
    jpeg_quality: tuple[float, float] = (30.0, 90.0)
    """Quality on JPEG's scale, U of this."""

    def __post_init__(self) -> None:
        if not 1 <= self.layers <= 32:
            raise ArgumentError(f"Recipe: layers is {self.layers}, wanted 1 to 32")
        for field in fields(self):
            value = getattr(self, field.name)
            chance = field.name.endswith("probability") or field.name in _CHANCES
            if chance and not 0 <= value <= 1:
                raise ArgumentError(
                    f"Recipe: {field.name} is {value}, wanted a probability from 0 to 1"
                )
            pair = isinstance(value, tuple) and len(value) == 2
            if pair and not value[0] <= value[1]:
                raise ArgumentError(
                    f"Recipe: {field.name} is {value}, wanted (low, high) with low ≤ high"
                )
            if isinstance(value, float) and value < 0:
                raise ArgumentError(f"Recipe: {field.name} is {value}, wanted 0 or more")
        if self.speed_range[0] <= 0 or self.object_size[0] <= 0 or self.texture_scale[0] <= 0:
            raise ArgumentError(
                "Recipe: speed_range, object_size and texture_scale must begin above 0; found "
                f"{self.speed_range}, {self.object_size}, {self.texture_scale}"
            )
        if not 0 < self.jpeg_quality[0] <= self.jpeg_quality[1] <= 100:
            raise ArgumentError(
                f"Recipe: jpeg_quality is {self.jpeg_quality}, wanted (low, high) from 1 to 100"
            )

    def without_effects(self) -> Recipe:
        """The same scenes and motions with every effect switched off."""
        return replace(
            self,
            illumination=0.0,
            illumination_change=0.0,
            fog=0.0,
            motion_blur=0.0,
            sharpen=0.0,
            noise=0.0,
            jpeg=0.0,
        )


_CHANCES = ("illumination", "illumination_change", "fog", "motion_blur", "sharpen", "noise", "jpeg")

TRAINING = Recipe()
"""For supervised training at about 368×496: mean |flow| about 20 px, a hundredth to hundreds."""

PRETRAINING = replace(
    TRAINING,
    background_zoom=0.05,
    object_zoom=0.07,
    texture_scale=(0.7, 1.4),
    illumination_change=0.4,
    fog=0.05,
    motion_blur=0.1,
    sharpen=0.8,
    noise_sigma=5.0,
    jpeg=0.1,
)
"""What our own weights were trained on: TRAINING, as sharp as photographs (|∆₂ image| of 4 to 40
grey levels, where TRAINING without its noise has 4), with more zoom and milder effects."""

FINE = replace(
    PRETRAINING,
    speed_sigma=1.2,
    speed_range=(0.02, 8.0),
    background_shift=4.0,
    object_shift=6.0,
    fast_probability=0.2,
    fast_factor=8.0,
    illumination_change=0.3,
    sharpen_amount=(0.3, 3.0),
    noise_sigma=3.5,
    flat_probability=0.08,
)
"""The last stage of our own weights: slow scenes, some objects far faster than what is behind them,
a few scenes with hundreds of pixels."""

HIDDEN = replace(
    FINE,
    layers=7,
    background_shift=3.0,
    fast_probability=0.3,
    fast_factor=6.0,
    object_size=(0.1, 0.6),
    kinds=(0.5, 0.3, 0.08, 0.06, 0.06),
    camouflage_probability=0.5,
    texture_scale=(0.3, 1.4),
    flat_probability=0.15,
)
"""FINE with half of the objects cut from the photograph behind them, more of them fast and some of
them smooth. Where looks tell what is an object, a network learns to believe looks, and takes a
smooth car in a street for a part of the street."""

MODERATE = Recipe(
    speed_sigma=0.5,
    speed_range=(0.1, 2.5),
    background_shift=3.0,
    object_shift=4.0,
    fast_probability=0.0,
    background_turn=0.01,
    object_turn=0.04,
    background_zoom=0.01,
    object_zoom=0.03,
    background_shear=0.007,
    object_shear=0.015,
    warp_shift=2.0,
    illumination_change=0.2,
    fog=0.0,
    motion_blur=0.0,
    jpeg=0.0,
    noise_sigma=3.0,
)
"""For unsupervised training: mean |flow| about 5 px, mild effects."""

QUICK = Recipe(
    layers=4,
    speed_sigma=0.3,
    speed_range=(0.4, 2.0),
    background_shift=3.6,
    object_shift=5.0,
    fast_probability=0.0,
    background_turn=0.02,
    object_turn=0.05,
    background_zoom=0.02,
    object_zoom=0.04,
    object_size=(0.2, 0.6),
    kinds=(0.5, 0.3, 0.1, 0.05, 0.05),
    thin=(1.0, 4.0),
    warp_shift=2.0,
    flat_probability=0.0,
    illumination_change=0.0,
    fog=0.0,
    motion_blur=0.0,
    jpeg=0.0,
    noise_sigma=2.0,
)
"""For runs of minutes at small sizes such as 96×128: mean |flow| 4 to 8 px."""

BENCHMARK = replace(TRAINING, fast_probability=0.15, thin=(0.5, 4.0))
"""The benchmark split's: like TRAINING with a little more of what is difficult."""

RECIPES = {
    "training": TRAINING,
    "pretraining": PRETRAINING,
    "fine": FINE,
    "hidden": HIDDEN,
    "moderate": MODERATE,
    "quick": QUICK,
    "benchmark": BENCHMARK,
}
"""The ready recipes by name."""
