"""All statistics of the procedural source in frozen records: `Recipe`, `Space` and `Mixture`.

Lengths are pixels of the frames made, unless a field says "share of" something. N(0, σ) is a normal
distribution, U(a, b) a uniform one. The speed s of a scene scales everything that moves in it, so
that scenes range from hundredths of a pixel to a third of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from lcv.errors import ArgumentError

EFFECTS = (
    "illumination",
    "illumination_change",
    "fog",
    "motion_blur",
    "sharpen",
    "noise",
    "jpeg",
    "shadow",
)
"""The fields that are probabilities of an effect."""
SURFACES = 4
"""Layers of a scene in space that are not cards: the far plane, the ground and two walls."""


@dataclass(frozen=True)
class Space:
    """Planes seen by a moving camera. Lengths in space are about metres; the frame's own are pixels.

    A far plane, perhaps a ground and walls, and cards: flat objects that face the camera or are
    tilted. What is nearer at a pixel is seen there, so planes may cut through each other.
    """

    focal: tuple[float, float] = (0.55, 1.3)
    """Focal length as a share of the width, U of this."""
    ground_probability: float = 0.6
    """This part of the scenes has a ground."""
    camera_height: tuple[float, float] = (1.0, 2.0)
    """Above the ground, U of this."""
    horizon: tuple[float, float] = (0.35, 0.6)
    """The ground's, as a share of the frame's height, U of this."""
    far: tuple[float, float] = (40.0, 200.0)
    """Depth of the far plane of scenes with a ground, log-uniform."""
    backdrop: tuple[float, float] = (4.0, 60.0)
    """The same for scenes without one, where it is also tilted."""
    slope: float = 0.6
    """How much the backdrop's inverse depth changes from the middle to an edge, U(0, this)."""
    wall_probability: float = 0.3
    """Of a wall on the left, and of one on the right."""
    wall_distance: tuple[float, float] = (1.5, 10.0)
    """From the camera, U of this."""
    card_depth: tuple[float, float] = (2.0, 50.0)
    """Log-uniform; a card is never behind a surface at its centre."""
    tilt_probability: float = 0.5
    """This part of the cards does not face the camera."""
    tilt: float = 0.577
    """Tangent of half the tilt, U(0, this); 0.577 for 60°. Less for large cards."""
    standing_probability: float = 0.6
    """This part of the cards stands upright on the ground, where there is one."""

    cameras: tuple[float, float, float] = (0.4, 0.3, 0.3)
    """Weights of cameras that move forward, sideways, and anywhere."""
    backward_probability: float = 0.15
    """This part of the forward cameras moves backward."""
    median_flow: float = 4.0
    """The camera's speed is such that the surfaces' median |flow| is this · e^N(0, median_sigma)."""
    median_sigma: float = 1.1
    """See `median_flow`."""
    median_range: tuple[float, float] = (0.1, 100.0)
    """The median is clipped to this."""
    sideways: tuple[float, float] = (0.02, 0.15)
    """Cameras that move sideways move the nearest plane by this share of the width, U of it."""
    approach: float = 0.14
    """No camera comes nearer to the nearest plane than by this share of its depth."""
    turn: float = 0.01
    """Cameras turn by N(0, this) radians about each axis; slow ones less."""
    large_turn_probability: float = 0.15
    """This part of them turns by U(−large_turn, large_turn) instead."""
    large_turn: float = 0.087
    """See `large_turn_probability`."""
    moving: tuple[int, int] = (1, 3)
    """This many cards move by themselves, too."""
    own_shift: float = 8.0
    """They move by this · e^N(0, 1) pixels; in slow scenes less."""
    own_turn: float = 0.02
    """And turn by N(0, this) radians about each axis through their centres."""

    def __post_init__(self) -> None:
        _check("Space", self)


@dataclass(frozen=True)
class Recipe:
    """What scenes look like and how they move; `generate` takes one."""

    layers: int = 8
    """Background and objects together, 1 to 32; in space 4 of them are surfaces."""
    objects: tuple[int, int] | None = None
    """How many objects a scene has, a whole number from this range; all that there are layers for."""
    space: Space | None = None
    """Planes in space and a camera in place of the shifts, turns, zooms and shears of flat layers."""

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
    shift_range: tuple[float, float] | None = None
    """Objects move by a length from this range, log-uniform, in place of `object_shift` and `fast_…`."""
    level: float = 1.0
    """With `shift_range`: to the left or right by that length, up or down by N(0, this) of it."""
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
    gentle: tuple[float, float] = (0.0, 0.0)
    """Turns, zooms and shears are multiplied by 10^U of this, drawn for every layer."""
    still_probability: float = 0.0
    """In this part of the scenes the background only shifts."""
    warp_probability: float = 0.35
    """This part of the layers bends: two crossed sine shears."""
    warp_shift: float = 5.0
    """Amplitude N(0, this)·min(s, 1) of each shear; less where the layer is too small for it."""
    relief_probability: float = 0.0
    """This part of the layers has relief in place of bends: three rough shears in any direction."""
    relief: tuple[float, float] = (-2.1, -0.9)
    """Its amplitude is 10^U of this, as a share of how far the layer moves, 20 pixels at most."""
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
    compound_probability: float = 0.0
    """This part of the blobs and polygons has up to six more parts, each added or taken away."""
    legs_probability: float = 0.0
    """This part of the blobs and polygons is a small body with two to six thin straight legs."""
    upright: bool = False
    """Objects are not turned in the first frame."""
    round_probability: float = 0.0
    """This part of the objects are upright cylinders that turn about their axes."""
    roll: float = 0.15
    """Tangent of half the angle that a cylinder turns, N(0, this)."""

    texture_scale: tuple[float, float] = (0.6, 1.0)
    """Texels a pixel, U of this; never more than the texture has room for."""
    flat_probability: float = 0.12
    """This part of the layers has its contrast reduced to 3 to 25 %."""
    flat_objects: float | None = None
    """The same for objects, where it differs."""
    negative_probability: float = 0.1
    """This part of the layers is a photographic negative."""
    contrast: tuple[float, float] = (0.7, 1.2)
    """Gain of a layer's texture about mid-grey, U of this, and a little more a channel."""
    camouflage_probability: float = 0.0
    """This part of the objects wears what the background wears, so that only motion gives them away."""
    trim_probability: float = 0.0
    """This part of the objects has its edge, and with it all that is thin, in a plain colour of its own."""
    trim: tuple[float, float] = (1.5, 6.0)
    """How wide that edge is, U of this."""
    tint: float = 25.0
    """Offset of a layer's texture, N(0, this) grey levels, half of it common to the channels."""

    shadow: float = 0.0
    """Probability that an object casts a soft shadow, below it, that moves along."""
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
        _check("Recipe", self)
        most = self.layers - SURFACES if self.space else self.layers - 1
        if most < 0 or (self.objects and not 0 <= self.objects[0] <= self.objects[1] <= most):
            raise ArgumentError(
                f"Recipe: objects is {self.objects} with {self.layers} layers, wanted (low, high) "
                f"from 0 to {most}" + (f"; space needs {SURFACES} layers" if self.space else "")
            )
        if self.trim_probability > 0 and self.round_probability > 0:
            raise ArgumentError(
                "Recipe: trim_probability and round_probability are both above 0, wanted one of them "
                "at most: a cylinder that turns has no edge that stays where it is"
            )
        if self.speed_range[0] <= 0 or self.object_size[0] <= 0 or self.texture_scale[0] <= 0:
            raise ArgumentError(
                "Recipe: speed_range, object_size and texture_scale must begin above 0; found "
                f"{self.speed_range}, {self.object_size}, {self.texture_scale}"
            )
        if not 0 < self.jpeg_quality[0] <= self.jpeg_quality[1] <= 100:
            raise ArgumentError(
                f"Recipe: jpeg_quality is {self.jpeg_quality}, wanted (low, high) from 1 to 100"
            )

    @property
    def parts(self) -> tuple[tuple[float, Recipe], ...]:
        """A recipe is a mixture of one kind."""
        return ((1.0, self),)

    def without_effects(self) -> Recipe:
        """The same scenes and motions with every effect switched off."""
        none: dict[str, Any] = dict.fromkeys(EFFECTS, 0.0)
        return replace(self, **none)


@dataclass(frozen=True)
class Mixture:
    """Kinds of scene by weight; which kind a pair is depends on the seed and its index alone."""

    parts: tuple[tuple[float, Recipe], ...]

    def __post_init__(self) -> None:
        weights = [weight for weight, _ in self.parts]
        if not weights or min(weights) < 0 or sum(weights) <= 0:
            raise ArgumentError(
                f"Mixture: the weights are {weights}, wanted one or more that are not negative, "
                "with a positive sum"
            )

    def without_effects(self) -> Mixture:
        """The same scenes and motions with every effect switched off."""
        return Mixture(tuple((w, kind.without_effects()) for w, kind in self.parts))


def _check(name: str, record: Recipe | Space) -> None:
    """Refuse probabilities beyond 0 … 1, ranges upside down, and lengths below 0."""
    for field in fields(record):
        value = getattr(record, field.name)
        chance = field.name.endswith("probability") or field.name in (*EFFECTS, "flat_objects")
        if chance and value is not None and not 0 <= value <= 1:
            raise ArgumentError(
                f"{name}: {field.name} is {value}, wanted a probability from 0 to 1"
            )
        if isinstance(value, tuple) and len(value) == 2 and not value[0] <= value[1]:
            raise ArgumentError(
                f"{name}: {field.name} is {value}, wanted (low, high) with low ≤ high"
            )
        if isinstance(value, float) and value < 0:
            raise ArgumentError(f"{name}: {field.name} is {value}, wanted 0 or more")
