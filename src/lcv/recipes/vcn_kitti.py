"""VCN's KITTI stage: KITTI 2015 and 2012 in equal repetitions, from vcn_things.

Command    torchrun --nproc-per-node 4 -m lcv.cli.main train vcn_kitti --data.root DATASETS
Hardware   the authors': four GPUs, four pairs each.
Result     not yet run.

All 200 + 194 pairs, as in the released model; the paper's ablation needs the pairs held out:
`options={"scenes": "vcn-train"}` of the first part. Departures as in vcn_chairs and vcn_sintel.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import vcn_sintel
from lcv.train.config import DataConfig, PartConfig, TrainConfig


def recipe() -> TrainConfig:
    same = vcn_sintel.recipe()
    parts = (
        PartConfig("kitti", "raft-kitti", 50),
        PartConfig("kitti", "raft-kitti", 50, options={"year": 2012}),
    )
    options = {"md": [8, 4, 4, 4, 4], "fac": 2.0, "heads": True}
    return replace(
        same,
        model=replace(same.model, options=options),
        data=DataConfig(source="files", parts=parts, size=(256, 768)),
        folder="runs/vcn_kitti",
    )
