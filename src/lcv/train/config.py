"""What a training run is: nested frozen records, one documented field a line.

A recipe returns a `TrainConfig`; the command line overrides fields by dotted name; the resolved
one is saved beside the checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lcv.errors import ArgumentError

OPTIMISERS = ("adamw", "sgd")
SCHEDULES = ("one_cycle", "linear", "constant", "steps")
PRECISIONS = ("bf16", "float32", "float64")
LOSSES = ("sequence", "multiscale", "unsupervised")
STAGES = ("photometric", "census", "distillation")


@dataclass(frozen=True)
class ModelConfig:
    """Which network, and where its weights begin."""

    name: str = "raft-small"
    """A network (`lcv models` lists them), or a factory of your own: file.py:factory."""
    inner_product: str = "elliptical"
    """A key of `lcv.inner_product.INNER_PRODUCTS`."""
    options: dict[str, Any] = field(default_factory=dict)
    """What else the network's builder takes: form, md, fac, heads."""
    weights: str | None = None
    """A checkpoint to start from, of any family; random weights if None. W starts at I."""
    source: str | None = None
    """The hash of the factory's source file, which the run itself puts here."""
    freeze_batch_norm: bool = False
    """Keep batch norms' statistics as they are: in every stage but the first."""


@dataclass(frozen=True)
class OptimConfig:
    """The optimiser, its schedule, and what is different for W."""

    optimiser: str = "adamw"
    """adamw, or sgd, plain and without momentum."""
    lr: float = 4e-4
    """The peak of the schedule."""
    schedule: str = "one_cycle"
    """one_cycle: linear up over `warmup`, linear down to nearly 0; linear: from lr to lr_end, after
    a rise over `warmup`; constant; steps."""
    warmup: float = 0.05
    """Share of the steps over which one_cycle and linear rise from a 25th."""
    lr_end: float = 0.0
    """Where the schedule `linear` ends: the rate at which the next stage begins."""
    tail: int = 0
    """Steps by which one_cycle is longer than the run, which so ends before it: RAFT's 100."""
    drops: tuple[int, ...] = ()
    """Steps at which the schedule `steps` halves the rate."""
    restarts: tuple[int, ...] = ()
    """Steps at which the schedule `steps` is back at lr, for the drops after them: VCN's 70,000."""
    weight_decay: float = 1e-4
    """Decay of all but W, not a part of the gradient."""
    beta2: float = 0.999
    """AdamW's: it remembers the size of gradients for about 1/(1 − beta2) steps."""
    eps: float = 1e-8
    """AdamW's."""
    clip: float = 1.0
    """Largest norm of the whole gradient."""
    w_lr_factor: float = 1.0
    """W's rate as a multiple of the others'."""
    w_weight_decay: float = 0.0
    """W's decay: it pulls W towards I."""
    w_from_step: int = 0
    """W stays at its start until this step."""
    w_alone: bool = False
    """Train W and nothing else."""


@dataclass(frozen=True)
class PartConfig:
    """One dataset of a mixture: which records of it, how often each, and what is done to them."""

    dataset: str
    """A key of `lcv.train.files.DATASETS`: chairs, things, sintel, kitti, hd1k, list, …; without
    supervision also frames, pairs and videos."""
    augmentation: str
    """A key of `lcv.data.augment.AUGMENTATIONS`; its crop is `data.size`."""
    weight: int = 1
    """How many times each record comes in an epoch: RAFT's 100 × Sintel."""
    root: str | None = None
    """The dataset's folder or list file, relative to `data.root`; found there by its usual name if
    None."""
    options: dict[str, Any] = field(default_factory=dict)
    """What else the dataset takes: split, passes, scenes, year."""


@dataclass(frozen=True)
class DataConfig:
    """Where pairs come from."""

    source: str = "procedural"
    """procedural, or files."""
    recipe: str = "training"
    """For procedural: a key of `lcv.data.synthetic.recipe.RECIPES`."""
    textures: str | None = None
    """For procedural: a folder of images; its held-out part is never trained on."""
    detailed: bool = False
    """For procedural with `textures`: give the smooth parts of photographs structure and grain."""
    occluded_weight: float = 1.0
    """For procedural: what a pixel counts in the sequence loss that shows something moving by
    itself and is hidden in frame 2."""
    out_of_frame_weight: float = 1.0
    """The same for one that is outside of frame 2."""
    root: str = "datasets"
    """For files: the folder that holds the datasets."""
    parts: tuple[PartConfig, ...] = ()
    """For files: the datasets of the mixture."""
    size: tuple[int, int] = (368, 496)
    """Height and width of what the network sees."""
    workers: int = 4
    """Processes that read files."""
    ahead: int = 4
    """Batches made at once (procedural) or held ready (files)."""
    exclude: tuple[str, ...] = ()
    """Samples to leave out, by the names that an error gave."""


@dataclass(frozen=True)
class SplitConfig:
    """Part of a dataset to validate on: whatever the dataset's own options can choose."""

    dataset: str
    """A key of `lcv.train.files.DATASETS` that has truth: chairs, sintel, kitti, …; without
    supervision also frames and videos, which are judged by the census loss."""
    root: str | None = None
    """The dataset's folder or list file, relative to `data.root`; found there by its usual name if
    None."""
    options: dict[str, Any] = field(default_factory=dict)
    """What else the dataset takes: split, passes, scenes, year; part (train, held-out)."""


@dataclass(frozen=True)
class LossConfig:
    """What is minimised."""

    name: str = "sequence"
    """sequence (RAFT's), multiscale (VCN's) or unsupervised (DDFlow's, which reads no truth)."""
    gamma: float = 0.8
    """Weight of earlier predictions, sequence only."""
    max_flow: float = 400.0
    """Longer truth is not counted, sequence only."""
    iters: int | None = 12
    """Iterations of a recurrent network."""
    stage: str = "census"
    """Unsupervised only: photometric, then census, then distillation."""
    teacher: str | None = None
    """Distillation's teacher: weights of the stage before; if None, those of `model.weights`."""
    patch: tuple[float, float] = (0.7, 5 / 7)
    """Distillation's patch as shares of `data.size`; DDFlow's is 224×640 of 320×896."""


@dataclass(frozen=True)
class TrainConfig:
    """One run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    steps: int = 10_000
    """Optimiser steps in all."""
    name: str = ""
    """What it is called among the stages of a run."""
    first_step: int = 0
    """Begin after so many steps, which somebody else has taken: `model.weights` are from there."""
    batch: int = 8
    """Pairs a step, over all processes and accumulated parts."""
    accumulate: int = 1
    """Parts into which a process takes its share of a batch, to save memory. Batch norms that learn
    see one part at a time, so with them (raft-large, vcn) it changes the result."""
    ema: float = 0.0
    """Decay of a moving average of the weights, 0.999 say; it is validated and written as the run's
    result, with the weights of the last step beside it. 0: none."""
    precision: str = "bf16"
    """bf16: autocast, with W, volume and loss in float32; float32; float64."""
    graph: bool = False
    """Capture the whole step in a CUDA graph (one process, CUDA)."""
    compile: bool = False
    """Compile encoders, update block, upsampling and loss (RAFT): a minute first for a faster step."""
    seed: int = 0
    """Of weights and data. Every draw is a function of (seed, index, name)."""
    folder: str = "runs/run"
    """Checkpoints, log and configuration go here."""
    half: bool = False
    """Write the result in half precision."""
    log_every: int = 50
    """Steps between two lines of the log; the host waits for the device only then."""
    save_every: int = 500
    """Steps between two checkpoints."""
    keep_every: int = 0
    """Besides the last and the best, keep every such step's; 0: none."""
    validate_every: int = 1000
    """Steps between two validations; 0: none."""
    validate_iters: int | None = None
    """Iterations of a recurrent network at validation; if None, as many as it takes by itself."""
    validation: dict[str, str | SplitConfig] = field(default_factory=dict)
    """Datasets by a name for the log: the word procedural (held-out scenes and textures) or
    development (sets of one kind of scene each); a folder, all of whose pairs with truth count; or
    a split: dataset, root, options."""
    goal: float | None = None
    """Share of the error of zero flow that the run wants to get below; a line in its curve."""
    best: str = "procedural/epe"
    """The number by which the best checkpoint is chosen, lower being better."""

    def __post_init__(self) -> None:
        faults = [
            f"{name} is {value!r}, wanted one of {', '.join(known)}"
            for name, value, known in (
                ("optim.optimiser", self.optim.optimiser, OPTIMISERS),
                ("optim.schedule", self.optim.schedule, SCHEDULES),
                ("precision", self.precision, PRECISIONS),
                ("loss.name", self.loss.name, LOSSES),
                ("loss.stage", self.loss.stage, STAGES),
            )
            if value not in known
        ]
        faults += [
            f"{name} is {getattr(self, name)}, wanted at least 1"
            for name in ("steps", "batch", "accumulate", "log_every", "save_every")
            if getattr(self, name) < 1
        ]
        if not 0 <= self.first_step <= self.steps:
            faults.append(
                f"first_step is {self.first_step}, wanted from 0 to the {self.steps} steps there are"
            )
        if not 0 <= self.ema < 1:
            faults.append(f"ema is {self.ema}, wanted 0 (none) or a decay below 1")
        weighted = (self.data.occluded_weight, self.data.out_of_frame_weight) != (1, 1)
        if weighted and (self.data.source, self.loss.name) != ("procedural", "sequence"):
            faults.append(
                f"data.occluded_weight and data.out_of_frame_weight are for procedural pairs and the "
                f"sequence loss; data.source is {self.data.source} and loss.name {self.loss.name}"
            )
        if not all(0 < share <= 1 for share in self.loss.patch):
            faults.append(
                f"loss.patch is {self.loss.patch}, wanted shares above 0, up to 1, of the crop"
            )
        if faults:
            raise ArgumentError("; ".join(faults))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def changed(config: TrainConfig, settings: Mapping[str, Any]) -> TrainConfig:
    """The configuration with other values of these settings, by dotted name."""
    for name, value in settings.items():
        group, _, field_ = name.rpartition(".")
        if group:
            field_, value = group, replace(getattr(config, group), **{field_: value})
        config = replace(config, **{field_: value})
    return config


def by_dotted_name(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `as_dict` by dotted name, as JSON has them, which knows no tuples."""
    flat: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(config)).items():
        if name in ("model", "data", "optim", "loss"):
            flat |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            flat[name] = value
    return flat


Stages = dict[str, TrainConfig]
"""A run of several stages, in order, by name; a run of one has the name ""."""


def one_decay(stages: Stages, lr: float) -> Stages:
    """The stages with rates that fall on one line, from `lr` at the first step to 0 after the last."""
    total, done, decaying = sum(config.steps for config in stages.values()), 0, {}
    for name, config in stages.items():
        begin, end = (lr * (1 - step / total) for step in (done, done + config.steps))
        optim = replace(config.optim, schedule="linear", lr=begin, lr_end=end)
        decaying[name] = replace(config, optim=optim)
        done += config.steps
    return decaying
