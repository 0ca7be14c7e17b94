"""A whole video through the networks: a clip of frame and flow side by side from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from lcv.demo.frames import Chosen
from lcv.demo.networks import network
from lcv.demo.work import Settings, flow_scale, picture_of
from lcv.predict.predictor import Stream
from lcv.visual.panel import panel
from lcv.visual.video import clip


def make_clips(
    chosen: Chosen,
    settings: Settings,
    scale: float | None,
    path_for: Callable[[str], Path],
    wanted: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[str, int, Path | None]]:
    """(network, pairs done, None) after each pair, and (network, pairs, its clip) at its end.

    scale:    the motion in full colour; by default that of the first flow. All clips share it
    path_for: the file of a network's clip
    """
    for name in settings.models:
        path, stream = path_for(name), Stream(network(name, settings.iters))
        with clip(path, chosen.rate) as write:
            before = None
            for number in range(len(chosen.frames)):
                frame = settings.stresses.frame(chosen.frame(number, settings.side), number)
                result = stream.push(frame)
                if result is not None and before is not None:
                    scale = flow_scale(result.flow) if scale is None else scale
                    write(panel(picture_of(before), result.flow, scale, arrows=False))
                    yield name, number, None
                    if not wanted():
                        return
                before = frame
        yield name, len(chosen.frames) - 1, path
