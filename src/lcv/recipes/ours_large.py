"""Our own RAFT-large with LCV, as it comes with the package: five stages from random weights.

Command    lcv train ours_large --data.textures PHOTOGRAPHS
           In slices, wherever there is a GPU: --minutes 10, and then --start FILE with what the
           slice before has left.
Hardware   one H200: 28 minutes for A to C, of which loading, compiling, saving and validation took
           seven, and 13 for D and E.
Result     mean EPE on Middlebury's Grove2, RubberWhale, Urban2 and Venus, 20 iterations: 0.286 px;
           KITTI 2015's pair 000010: 2.08.

The photographs are those that weights/textures.json lists by SHA-256.

A has many steps of few iterations, and lets the network guess nothing: what moves by itself and is
not seen again does not count. B has more iterations and counts every pixel, C also larger frames, for
large motion and what leaves the frame. One decay over all three. D and E, with a decay of their own, do
the same once more with thin things that move with a body, and E iterates for longer.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.train.config import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    Stages,
    TrainConfig,
    one_decay,
)


def recipe() -> Stages:
    A = TrainConfig(
        model=ModelConfig("raft-large", inner_product="elliptical"),
        data=DataConfig(
            source="procedural",
            recipe="mixed",
            textures="textures",
            detailed=True,
            occluded_weight=0.0,
            out_of_frame_weight=0.0,
            size=(320, 448),
            ahead=8,
        ),
        optim=OptimConfig(warmup=0.02, weight_decay=1e-4),
        loss=LossConfig("sequence", gamma=0.8, iters=6),
        steps=18_000,
        batch=12,
        ema=0.999,
        precision="bf16",
        graph=True,
        compile=True,
        folder="runs/ours_large",
        save_every=3000,
        validate_every=6000,
        validate_iters=20,
        validation={"development": "development"},
        best="development/epe",
    )
    B = replace(
        A,
        data=replace(A.data, occluded_weight=1.0, out_of_frame_weight=1.0),
        optim=replace(A.optim, warmup=0.01),
        loss=replace(A.loss, gamma=0.85, iters=12),
        steps=9_000,
        seed=1,
    )
    C = replace(
        B,
        model=replace(B.model, freeze_batch_norm=True),
        data=replace(B.data, size=(384, 768)),
        loss=replace(B.loss, iters=16),
        steps=5_000,
        batch=6,
        seed=2,
    )
    D = replace(
        B,
        model=C.model,
        data=replace(B.data, recipe="mixed_furniture", ahead=16),
        optim=replace(B.optim, warmup=0.02),
        steps=9_000,
        seed=3,
    )
    E = replace(
        C,
        data=replace(C.data, recipe="mixed_furniture", ahead=16),
        loss=replace(C.loss, iters=24),
        steps=2_500,
        seed=4,
    )
    return one_decay({"A": A, "B": B, "C": C}, lr=4e-4) | one_decay({"D": D, "E": E}, lr=1.5e-4)
