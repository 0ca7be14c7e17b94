"""VCN's second stage: FlyingThings3D's subset, both cameras, from the weights of vcn_chairs.

Command    torchrun --nproc-per-node 2 -m lcv.cli.main train vcn_things --data.root DATASETS
Hardware   the authors': two GPUs, four pairs each.
Result     not yet run.

The authors count on from the first stage: steps 140,000 to 220,000 of one schedule, hence a quarter
of the first rate, and an eighth after 50,000 steps. **Departures:** those of vcn_chairs; the
optimiser's moments begin anew; the authors leave out some 54 flows by name, which
`options={"exclude": [...]}` of the part can do.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import vcn_chairs
from lcv.train.config import DataConfig, PartConfig, TrainConfig


def recipe() -> TrainConfig:
    before = vcn_chairs.recipe()
    things = PartConfig("things", "raft-things", options={"cameras": ["left", "right"]})
    return replace(
        before,
        model=replace(before.model, weights="runs/vcn_chairs/weights.safetensors"),
        data=DataConfig(source="files", parts=(things,), size=(320, 448)),
        optim=replace(before.optim, lr=1e-3 / 4, drops=(50_000,)),
        steps=80_000,
        folder="runs/vcn_things",
    )
