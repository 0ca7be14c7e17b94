"""What there is to read of one pair (Record), and the pair once it is read (Sample)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image
from lcv.data.formats.mask import read_mask
from lcv.errors import FileError


@dataclass(frozen=True)
class FrameRef:
    """Frame `index`, counted from 0, of a video."""

    video: Path
    index: int

    def __str__(self) -> str:
        return f"{self.video}#{self.index}"


Frame = Path | FrameRef


@dataclass(frozen=True)
class Record:
    """The files of one pair; nothing is opened before `read`.

    name: unique within its dataset, such as "clean/alley_1/frame_0001".
    flow: motion from image1 to image2, in pixels of image1; None where there is no truth.
    backward: motion from image2 to image1, if the dataset has it.
    occlusions: non-zero where image1 shows what image2 does not.
    noc: KITTI's second truth, of the pixels that stay in view; the pixels that `flow` has and
        `noc` lacks are the occluded ones.
    invalid: non-zero where Sintel calls its own flow undefined. It does not change `valid`:
        the published numbers are over all pixels.
    objects: 0 for the background, else the number of an object.
    sparse: the truth has holes, so it must not be interpolated.
    step: the truth lies on a grid this many times finer than the image (2 in Spring); every
        step-th row and column is kept.
    disparity: `flow` holds stereo disparities d, this many grey levels to a pixel: the flow is
        (−d, 0), and 0 means unknown.
    """

    name: str
    image1: Frame
    image2: Frame
    flow: Path | None = None
    occlusions: Path | None = None
    invalid: Path | None = None
    objects: Path | None = None
    backward: Path | None = None
    noc: Path | None = None
    dataset: str = ""
    scene: str = ""
    sparse: bool = False
    step: int = 1
    disparity: float | None = None

    def files(self) -> tuple[Path, ...]:
        """Every file that belongs to this pair, the frames first."""
        frames = [f.video if isinstance(f, FrameRef) else f for f in (self.image1, self.image2)]
        rest = (self.flow, self.backward, self.noc, self.occlusions, self.invalid, self.objects)
        return (*frames, *(path for path in rest if path is not None))

    def read(self, maps: bool = True) -> Sample:
        """Read the frames, the truth and, unless told otherwise, the maps that go with it."""
        image1, image2 = _read_frames(self.image1, self.image2)
        size = image1.shape[:2]
        _same_size(self.image2, image2.shape[:2], self.image1, size)
        flow = valid = occluded = invalid = objects = None
        if self.flow is not None:
            flow, valid = read_truth(self.flow, self.step, self.disparity)
            _same_size(self.flow, valid.shape, self.image1, size)
        if maps and self.noc is not None and valid is not None:
            _, visible = read_truth(self.noc, self.step)
            _same_size(self.noc, visible.shape, self.image1, size)
            occluded = valid & ~visible
        if maps and self.occlusions is not None:
            occluded = self._map(self.occlusions, size) != 0
        if maps and self.invalid is not None:
            invalid = self._map(self.invalid, size) != 0
        if maps and self.objects is not None:
            objects = self._map(self.objects, size)
        return Sample(self, image1, image2, flow, valid, occluded, invalid, objects)

    def read_backward(self) -> tuple[np.ndarray, np.ndarray]:
        """Flow (H, W, 2) from image2 to image1, and where it is known (H, W)."""
        if self.backward is None:
            raise FileError(f"{self.name}: this pair of {self.dataset} has no backward flow")
        return read_truth(self.backward, self.step)

    def _map(self, path: Path, size: tuple[int, ...]) -> np.ndarray:
        values = read_mask(path)
        _same_size(path, values.shape, self.image1, size)
        return values


@dataclass(frozen=True, eq=False)
class Sample:
    """A pair in memory: images (H, W, 3) uint8 RGB, flow (H, W, 2) float32, maps (H, W).

    `valid`, `occluded` and `invalid` are bool, `objects` uint8. None is what the dataset does
    not have. Where `valid` is False the flow is 0 and means nothing.
    """

    record: Record
    image1: np.ndarray
    image2: np.ndarray
    flow: np.ndarray | None = None
    valid: np.ndarray | None = None
    occluded: np.ndarray | None = None
    invalid: np.ndarray | None = None
    objects: np.ndarray | None = None


def read_frame(frame: Frame) -> np.ndarray:
    """A frame as (H, W, 3) uint8 RGB."""
    if isinstance(frame, Path):
        return read_image(frame)
    from lcv.data.formats.video_seek import frames_at

    return frames_at(frame.video, frame.index)[0]


def _read_frames(first: Frame, second: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Both frames of a pair; neighbours in a video are reached together."""
    if isinstance(first, FrameRef) and second == FrameRef(first.video, first.index + 1):
        from lcv.data.formats.video_seek import frames_at

        image1, image2 = frames_at(first.video, first.index, 2)
        return image1, image2
    return read_frame(first), read_frame(second)


def read_truth(
    path: Path, step: int = 1, disparity: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Flow (H, W, 2) float32 and valid (H, W) bool, as `Record` describes `step` and `disparity`."""
    if disparity is not None:
        levels = read_mask(path)
        flow = np.zeros((*levels.shape, 2), np.float32)
        flow[..., 0] = -levels.astype(np.float32) / np.float32(disparity)
        return flow, levels != 0
    flow, valid = read_flow(path)
    if step == 1:
        return flow, valid
    return np.ascontiguousarray(flow[::step, ::step]), np.ascontiguousarray(valid[::step, ::step])


def _same_size(path: Frame, found: tuple[int, ...], frame: Frame, wanted: tuple[int, ...]) -> None:
    if found != wanted:
        raise FileError(
            f"{path}: is {found[1]}×{found[0]} pixels, but {frame} is {wanted[1]}×{wanted[0]}; "
            f"frames and truth of a pair must have one size"
        )
