"""VCN's Sintel stage: Sintel mixed with KITTI, HD1K, Chairs and Things, from vcn_things.

Command    torchrun --nproc-per-node 4 -m lcv.cli.main train vcn_sintel --data.root DATASETS
Hardware   the authors': four GPUs, four pairs each.
Result     not yet run.

The rate falls from 1e-3 to a sixteenth over 70,000 steps, jumps back, and falls once more; beyond
140,000 the authors' own is undefined. **Departures:** those of vcn_chairs; HD1K is scaled by its
augmentation, not halved beforehand.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import vcn_things
from lcv.train.config import DataConfig, PartConfig, TrainConfig

CYCLE = 70_000
DROPS = (30_000, 40_000, 50_000, 60_000)


def recipe() -> TrainConfig:
    before = vcn_things.recipe()
    parts = (
        PartConfig("kitti", "raft-sintel-kitti", 200),
        PartConfig("hd1k", "raft-sintel-hd1k", 40),
        PartConfig("sintel", "raft-sintel", 150, options={"passes": ["clean", "final"]}),
        PartConfig("chairs", "raft-chairs", 2, options={"split": "train"}),
        PartConfig("things", "raft-things", 1, options={"cameras": ["left", "right"]}),
    )
    options = {"md": [7, 4, 4, 4, 4], "fac": 1.4, "heads": True}
    return replace(
        before,
        model=replace(before.model, options=options, weights="runs/vcn_things/weights.safetensors"),
        data=DataConfig(source="files", parts=parts, size=(320, 576)),
        optim=replace(
            before.optim,
            lr=1e-3,
            drops=(*DROPS, *(CYCLE + drop for drop in DROPS)),
            restarts=(CYCLE,),
        ),
        steps=2 * CYCLE,
        batch=16,
        folder="runs/vcn_sintel",
    )
