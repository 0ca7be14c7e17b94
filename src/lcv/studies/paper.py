"""The numbers of the paper's tables, to compare with ours: "Learnable Cost Volume Using the Cayley
Representation", ECCV 2020.

Texts as printed: parentheses mean that the network was trained on what it is tested on. The tables
of the ablation and of robustness are headed "AEPE/Fl-all" in print and hold Fl-all (%) and then
AEPE (px): the first number of VCN's row is digit for digit what VCN's own README calls Fl. Here
every number has its name.
"""

from __future__ import annotations

NOT_GIVEN = "–"

# Method: Sintel clean train, test; final train, test; KITTI 2015 AEPE train, Fl-all train, test.
SUPERVISED_HEAD = (
    "Sintel clean, train, AEPE px",
    "clean, test, AEPE px",
    "Sintel final, train, AEPE px",
    "final, test, AEPE px",
    "KITTI 2015, train, AEPE px",
    "train, Fl-all %",
    "test, Fl-all %",
)
SUPERVISED: dict[str, tuple[str, ...]] = {
    "FlowNet2": ("2.02", "3.96", "3.14", "6.02", "10.06", "30.37", "–"),
    "FlowNet2-ft": ("(1.45)", "4.16", "(2.01)", "5.74", "(2.30)", "(8.61)", "10.41"),
    "DCFlow": ("–", "3.54", "–", "5.12", "–", "15.09", "14.83"),
    "MirrorFlow": ("–", "–", "–", "6.07", "–", "9.93", "10.29"),
    "SpyNet": ("4.12", "6.69", "5.57", "8.43", "–", "–", "–"),
    "SpyNet-ft": ("(3.17)", "6.64", "(4.32)", "8.36", "–", "–", "35.07"),
    "LiteFlowNet": ("2.52", "–", "4.05", "10.39", "–", "–", "–"),
    "LiteFlowNet-ft": ("(1.64)", "4.86", "(2.23)", "6.09", "(2.16)", "–", "10.24"),
    "PWC-Net": ("2.55", "–", "3.93", "–", "10.35", "33.67", "–"),
    "PWC-Net-ft": ("(2.02)", "4.39", "(2.08)", "5.04", "(2.16)", "(9.80)", "9.60"),
    "PWC-Net+-ft": ("(1.71)", "3.45", "(2.34)", "4.60", "(1.50)", "(5.30)", "7.72"),
    "IRR-PWC-ft": ("(1.92)", "3.84", "(2.51)", "4.58", "(1.63)", "(5.30)", "7.65"),
    "HD3": ("3.84", "–", "8.77", "–", "13.17", "23.99", "–"),
    "HD3-ft": ("(1.70)", "4.79", "(1.17)", "4.67", "(1.31)", "(4.10)", "6.55"),
    "VCN": ("2.21", "–", "3.62", "–", "8.36", "25.10", "8.73"),
    "VCN-ft": ("(1.66)", "2.81", "(2.24)", "4.40", "(1.16)", "(4.10)", "6.30"),
    "RAFT": ("1.09", "2.77", "1.53", "3.61", "(1.07)", "(3.92)", "6.30"),
    "RAFT, warm start": ("1.10", "2.42", "1.61", "3.39", "–", "–", "–"),
    "VCN+LCV": ("(1.62)", "2.83", "(2.22)", "4.20", "(1.13)", "(3.80)", "6.25"),
    "RAFT+LCV": ("(0.94)", "2.75", "(1.31)", "3.55", "(1.06)", "(3.77)", "6.26"),
    "RAFT+LCV, warm start": ("(0.99)", "2.49", "(1.47)", "3.37", "–", "–", "–"),
}
SUPERVISED_NOTES = (
    "Parentheses: trained on the pairs it is tested on.",
    "The paper's RAFT is that of RAFT's first preprint, not the published raft-*.pth: measure a gain "
    "of LCV against your own baseline.",
    "LiteFlowNet's 10.39 is in the paper's column “final, test”; it is probably a KITTI number.",
)

# Method: AEPE train; Fl-bg, Fl-fg, Fl-all test. All on KITTI 2015.
UNSUPERVISED_HEAD = ("train, AEPE px", "test, Fl-bg %", "test, Fl-fg %", "test, Fl-all %")
UNSUPERVISED: dict[str, tuple[str, ...]] = {
    "DSTFlow": ("16.79", "–", "–", "39"),
    "GeoNet": ("10.81", "–", "–", "–"),
    "UnFlow": ("8.88", "–", "–", "28.95"),
    "DF-Net": ("7.45", "–", "–", "22.82"),
    "OccAwareFlow": ("8.88", "–", "–", "31.20"),
    "Back2FutureFlow": ("6.59", "22.67", "24.27", "22.94"),
    "SelFlow": ("4.84", "12.68", "21.74", "14.19"),
    "DDFlow": ("5.72", "13.08", "20.40", "14.29"),
    "DDFlow+LCV": ("5.15", "12.98", "19.83", "14.12"),
}

# By the names of `lcv.studies.columns`: Fl-all %, AEPE px.
ABLATION: dict[str, tuple[float, float]] = {
    "original": (3.9, 1.144),
    "continued": (4.2, 1.204),
    "free": (4.1, 1.193),
    "diagonal": (3.8, 1.136),
    "rotation": (3.9, 1.129),
    "gram": (3.9, 1.163),
    "lcv": (3.8, 1.132),
}
ABLATION_NOTES = (
    "The paper: VCN on 40 pairs of KITTI 2015, one run, no interval, “a small learning rate for "
    "more epochs”; neither rate nor steps are given.",
    "Its VCN row is the released model, which was trained on these 40 pairs too, and “continued” is "
    "worse than not training on.",
    "“P only” is a null control wherever channels are summed (RAFT, DDFlow): PᵀP = I. In VCN's "
    "factor form, where they are kept apart, it is not.",
)

# By the names of the stresses: level → (VCN Fl-all %, AEPE px), (VCN+LCV Fl-all %, AEPE px).
Both = tuple[tuple[float, float], tuple[float, float]]
ROBUSTNESS: dict[str, dict[float, Both]] = {
    "gamma": {
        0.2: ((16.8, 3.240), (17.1, 3.232)),
        0.3: ((9.9, 1.891), (9.8, 1.866)),
        0.4: ((5.9, 1.306), (5.9, 1.273)),
        0.5: ((3.8, 0.995), (3.7, 0.967)),
        0.7: ((2.7, 0.834), (2.6, 0.804)),
        1.0: ((2.5, 0.805), (2.4, 0.775)),
        2.0: ((2.6, 0.819), (2.4, 0.790)),
        3.0: ((2.6, 0.826), (2.5, 0.804)),
    },
    "noise": {
        0.0001: ((2.6, 0.816), (2.4, 0.785)),
        0.001: ((2.9, 0.868), (2.7, 0.838)),
        0.01: ((5.0, 1.157), (4.7, 1.107)),
        0.1: ((19.6, 3.213), (18.9, 3.043)),
    },
    "patch": {
        50.0: ((3.5, 0.981), (3.4, 0.949)),
        100.0: ((5.6, 1.419), (5.5, 1.384)),
        150.0: ((8.5, 2.048), (8.3, 2.004)),
        200.0: ((11.9, 2.880), (11.6, 2.801)),
    },
}
ROBUSTNESS_NOTES = {
    "gamma": "both frames by 255·(x/255)^(1/γ), inferred from “below 1 darker”",
    "noise": "the paper says deviation; read as such, its smallest level is 0.03 grey levels and "
    "could not raise the error, so they were probably variances of images in 0 … 1",
    "patch": "a published universal patch, resized; the paper does not say whether the size is a "
    "diameter, where the patch lies, or what it does with the truth under it",
}
ROBUSTNESS_PROTOCOL = (
    "The paper: VCN and VCN+LCV trained on KITTI 2015, tested on the 194 training pairs of KITTI "
    "2012, over all pixels."
)
