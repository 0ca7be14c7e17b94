"""Protocols: how a number was measured, as data that is stored with it.

The same network and pairs give other numbers under other padding, iterations or averaging:
torchvision's RAFT, not yet trained on it, has an EPE of 4.80 over KITTI 2015's pixels and of 4.51
over its images. So no number travels without these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lcv.errors import ArgumentError
from lcv.layers.padding import MODES
from lcv.words import counted

PRECISIONS = ("float64", "float32", "tf32", "bfloat16", "float16")
VALIDITY = {
    "known": "every pixel whose truth is known",
    "not-invalid": "every pixel whose truth is known and that Sintel's `invalid` map does not mark",
}
STORAGE = {
    "exact": "flow as the network gives it",
    "kitti-rounded": "flow rounded to 1/64 px and clipped to −512 … 511.98, as a KITTI PNG holds it",
    "kitti-truncated": "flow cut down to 1/64 px and clipped, as RAFT and VCN write a KITTI PNG",
}


@dataclass(frozen=True)
class Setting:
    """How a network is called on one family of datasets, and which means are the headline.

    iters, pad: as for the network; None is the network's own choice. Networks that have their own
        rule (VCN resizes, DDFlow takes any size, both have fixed levels) take neither.
    headline: names of metrics, the first of them the number that the protocol's authors quote.
    """

    iters: int | None = None
    pad: str | None = None
    headline: tuple[str, ...] = ("epe", "fl")


@dataclass(frozen=True)
class Protocol:
    """Everything that changes a number besides network, weights and pairs.

    settings: by the beginning of a dataset's name ("kitti" is both years), "*" for all others
    averaging: how each quoted metric is averaged, in words; both means are always computed
    validity: a key of VALIDITY
    limit: true components beyond this many px are out of range, and such pixels do not count
    storage: a key of STORAGE: what becomes of the flow before it is measured
    warm_start: within a scene, start from the flow of the pair before, as RAFT's submissions do
    """

    name: str
    source: str
    averaging: str
    settings: Mapping[str, Setting] = field(default_factory=lambda: {"*": Setting()})
    precision: str = "float32"
    validity: str = "known"
    limit: float | None = None
    storage: str = "exact"
    warm_start: bool = False

    def __post_init__(self) -> None:
        for argument, known in (
            ("precision", PRECISIONS),
            ("validity", VALIDITY),
            ("storage", STORAGE),
        ):
            value = getattr(self, argument)
            if value not in known:
                raise ArgumentError(
                    f"protocol {self.name}: {argument} is {value!r}, wanted one of "
                    f"{', '.join(known)}"
                )
        for each in self.settings.values():
            if each.pad not in (None, *MODES):
                raise ArgumentError(
                    f"protocol {self.name}: pad is {each.pad!r}, wanted one of {', '.join(MODES)}"
                )

    def setting(self, dataset: str) -> Setting:
        """The setting for a dataset: that of the longest name it begins with, else of "*"."""
        known = [name for name in self.settings if dataset.startswith(name)]
        return self.settings[max(known, key=len) if known else "*"]

    def changed(self, iters: int | None = None, pad: str | None = None, **own: Any) -> Protocol:
        """The protocol with iterations or padding set for every dataset, or fields of its own."""
        change = {"iters": iters, "pad": pad}
        change = {name: value for name, value in change.items() if value is not None}
        own = {name: value for name, value in own.items() if value is not None}
        settings = {name: replace(s, **change) for name, s in self.settings.items()}  # type: ignore[arg-type]
        return replace(self, settings=settings, **own)

    def as_dict(self) -> dict[str, Any]:
        settings = {n: {**asdict(s), "headline": [*s.headline]} for n, s in self.settings.items()}
        return {**asdict(replace(self, settings={})), "settings": settings}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Protocol:
        settings = {
            name: Setting(s["iters"], s["pad"], tuple(s["headline"]))
            for name, s in said["settings"].items()
        }
        return cls(**{**said, "settings": settings})


def call_words(settings: Mapping[str, Any]) -> str:
    """How a network is called, for people; settings: `iters` and `pad`, where it has them."""
    iters, pad = settings.get("iters"), settings.get("pad")
    return f"{counted(iters, 'iteration')}, {pad} padding" if iters else "the network's own sizes"


_SINTEL = ("epe", "px1", "px3", "px5")
_KITTI = ("epe_image", "fl")
_RAFT_SETTINGS = {
    "chairs": Setting(24, "sintel", ("epe",)),
    "sintel": Setting(32, "sintel", _SINTEL),
    "kitti": Setting(24, "kitti", _KITTI),
    "*": Setting(20, "sintel", ("epe", "px1", "px3", "px5")),
}

PROTOCOLS = {
    p.name: p
    for p in (
        Protocol(
            "raft",
            "RAFT's evaluate.py; what it does not evaluate is called as in its demo.py",
            "EPE over all pixels, on KITTI within each image first; Fl over all pixels",
            _RAFT_SETTINGS,
        ),
        Protocol(
            "torchvision",
            "torchvision's references/optical_flow/train.py; its default elsewhere, 12 iterations",
            "EPE over all pixels and within each image first, the latter quoted on KITTI; "
            "Fl over all pixels",
            {
                "sintel": Setting(32, "sintel", ("epe", "epe_image", "px1", "px3", "px5")),
                "kitti": Setting(24, "kitti", ("epe_image", "epe", "px1", "px3", "px5", "fl")),
                "*": Setting(12, "sintel", ("epe", "epe_image", "px1", "px3", "px5")),
            },
        ),
        Protocol(
            "vcn",
            "VCN's submission.py and eval_tmp.py, which reads the flow back from KITTI PNGs",
            "Fl and EPE over all pixels, in this order",
            {"*": Setting(headline=("fl", "epe"))},
            limit=1000.0,
            storage="kitti-truncated",
        ),
        Protocol(
            "ddflow",
            "DDFlow's released test mode, which resizes nothing; it has no metrics, so their "
            "averaging is ours",
            "EPE over all pixels, all and by occlusion; Fl over all pixels",
            {"*": Setting(headline=("epe", "epe_noc", "epe_occ", "fl"))},
        ),
        Protocol(
            "kitti",
            "KITTI's development kit: flow as its PNG holds it; called as RAFT calls KITTI",
            "Fl over all pixels of all images, by background, foreground and visibility",
            {"*": Setting(24, "kitti", ("fl", "fl_bg", "fl_fg", "fl_noc"))},
            storage="kitti-rounded",
        ),
        Protocol(
            "sintel",
            "Sintel's leaderboard columns, except those by distance to an occlusion boundary; "
            "called as RAFT calls Sintel",
            "EPE over all pixels of all images, by visibility and true speed",
            {
                "*": Setting(
                    32,
                    "sintel",
                    ("epe", "epe_matched", "epe_unmatched", "epe_s0_10", "epe_s10_40", "epe_s40"),
                )
            },
        ),
    )
}


def find_protocol(name: str) -> Protocol:
    """The protocol of this name."""
    if name not in PROTOCOLS:
        raise ArgumentError(f"there is no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
