"""Pictures as in the paper's figure: the stressed frame, the flow of two networks, their difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lcv.errors import ArgumentError
from lcv.evaluate.calling import call_options, evaluating
from lcv.evaluate.protocols import Protocol
from lcv.studies.robustness.pairs import Source, read_pair
from lcv.studies.robustness.registry import Stress
from lcv.studies.robustness.run import PLAIN, Network
from lcv.visual.colours import flow_scale, flow_to_colour, picture_scale
from lcv.visual.layout import side_by_side


def stress_picture(
    networks: Sequence[Network],
    source: Source,
    stresses: Sequence[Stress],
    protocol: Protocol,
    *,
    index: int = 0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> np.ndarray:
    """A row for the frames as they are and one for each stress at its `shown` level: (H, W, 3) uint8.

    Columns: the first frame, the flow of each network, and the flow of the second network less that
    of the first. All flows have the scale of the truth; a difference has its own.
    """
    if not 0 <= index < len(source):
        raise ArgumentError(
            f"pictures: pair {index} of {len(source)}, wanted 0 to {len(source) - 1}"
        )
    device = torch.device(device)
    record = source.records[index]
    pair = read_pair(record, index, device, protocol)
    setting = protocol.setting(record.dataset)
    truth, known = _array(pair.flow), pair.valid[0, 0].cpu().numpy()
    scale = picture_scale(truth, known)
    cells = [_frame(pair.image1), flow_to_colour(truth, scale, known)]
    words = [f"{source.label} {record.name}", f"truth, up to {scale:.1f} px"]
    columns = 1 + len(networks) + (len(networks) > 1)
    blank = np.full_like(cells[0], 255)
    cells += [blank] * (columns - 2)
    words += [""] * (columns - 2)
    for stress in (PLAIN, *stresses):
        seen = stress.function(pair, stress.shown, seed)
        flows = []
        for network in networks:
            options = call_options(network.model, setting)
            with evaluating(network.model, protocol.precision) as model:
                flows.append(_array(model(seen.image1, seen.image2, **options).flow))
        cells.append(_frame(seen.image1))
        words.append("as it is" if stress is PLAIN else f"{stress.name} {stress.shown:g}")
        for network, flow in zip(networks, flows, strict=True):
            cells.append(flow_to_colour(flow, scale))
            words.append(network.label)
        if len(flows) > 1:
            apart = flows[1] - flows[0]
            most = flow_scale(apart)
            cells.append(flow_to_colour(apart, most))
            words.append(f"second less first, up to {most:.1f} px")
    return side_by_side(cells, words, columns=columns)


def _frame(image: Tensor) -> np.ndarray:
    return np.ascontiguousarray(
        image[0].clamp(0, 255).round().byte().permute(1, 2, 0).cpu().numpy()
    )


def _array(flow: Tensor) -> np.ndarray:
    return np.ascontiguousarray(flow[0].float().permute(1, 2, 0).cpu().numpy())
