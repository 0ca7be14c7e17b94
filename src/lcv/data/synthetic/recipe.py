"""The ready recipes of the procedural source, by name; what their fields mean is in `settings.py`."""

from __future__ import annotations

from dataclasses import replace

from lcv.data.synthetic.settings import Mixture, Recipe, Space

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

SPACE = replace(
    FINE,
    layers=14,
    objects=(3, 10),
    space=Space(),
    relief_probability=0.75,
    compound_probability=0.2,
    texture_scale=(0.3, 1.4),
    camouflage_probability=0.15,
)
"""Planes in space seen by a moving camera: ground, walls, cards, a few that move by themselves."""

GENTLE = replace(
    FINE,
    layers=14,
    objects=(3, 13),
    gentle=(-1.4, 0.0),
    still_probability=0.3,
    relief_probability=0.75,
    compound_probability=0.2,
    camouflage_probability=0.3,
    texture_scale=(0.3, 1.4),
)
"""Flat layers that turn, zoom and shear little, with relief; a drawn number of objects."""

STREET = replace(
    GENTLE,
    layers=4,
    objects=(1, 3),
    speed_sigma=0.0,
    background_shift=2.5,
    shift_range=(8.0, 80.0),
    level=0.15,
    upright=True,
    object_size=(0.12, 0.4),
    kinds=(0.6, 0.4, 0.0, 0.0, 0.0),
    cut_probability=0.1,
    hole_probability=0.1,
    camouflage_probability=0.5,
    flat_objects=0.4,
    shadow=0.5,
)
"""A street from a resting camera: few small things that go far, mostly sideways, and look alike."""

FURNITURE = replace(
    GENTLE,
    objects=(5, 13),
    speed_sigma=0.8,
    speed_range=(0.02, 4.0),
    background_shift=8.0,
    object_shift=12.0,
    fast_probability=0.1,
    fast_factor=3.0,
    object_size=(0.12, 0.6),
    kinds=(0.5, 0.5, 0.0, 0.0, 0.0),
    legs_probability=0.7,
    camouflage_probability=0.1,
    flat_objects=0.6,
    tint=50.0,
)
"""Flat layers, most of them small plain bodies with thin legs, which move with them, often far."""

FRAMED = replace(FURNITURE, trim_probability=0.7)
"""FURNITURE of two colours: legs and rims often have another one than the rest."""

MIXED = Mixture(((0.35, GENTLE), (0.45, SPACE), (0.2, STREET)))
"""Flat, in space and streets: what weights for real pairs are trained on first."""

MIXED_FURNITURE = Mixture(((0.25, GENTLE), (0.35, SPACE), (0.15, STREET), (0.25, FURNITURE)))
"""MIXED with a quarter of furniture: what our `raft-large` was trained on last."""

RECIPES: dict[str, Recipe | Mixture] = {
    "training": TRAINING,
    "pretraining": PRETRAINING,
    "fine": FINE,
    "hidden": HIDDEN,
    "moderate": MODERATE,
    "quick": QUICK,
    "benchmark": BENCHMARK,
    "gentle": GENTLE,
    "space": SPACE,
    "street": STREET,
    "furniture": FURNITURE,
    "framed": FRAMED,
    "mixed": MIXED,
    "mixed_furniture": MIXED_FURNITURE,
}
"""The ready recipes by name."""
