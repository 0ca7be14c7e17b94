"""Writers of small fake datasets, in the layouts of the real ones.

The frames of a fake show a random texture in motion, and its flow is that motion exactly, so that
`lcv data check` can judge it as it judges the real dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.data.formats.mask import write_mask

SIZE = (72, 96)
Corrupt = Callable[[np.ndarray], np.ndarray]


class Film:
    """Frames of a texture that moves by another shift and turn at every step; exact flow.

    Frame t shows at p the texture at A_t p + c_t, so the flow from t to s takes p to
    A_s⁻¹ (A_t p + c_t − c_s).
    """

    def __init__(self, seed: int, size: tuple[int, int] = SIZE, frames: int = 6) -> None:
        generator = np.random.default_rng(seed)
        self.size = size
        noise = generator.standard_normal((3, 256, 256))
        texture = sum(gaussian_filter(noise, (0, s, s), mode="wrap") * s for s in (1.5, 4, 10))
        self.texture = 128 + 100 * texture / np.abs(texture).max()
        # u and v differ in size and sign, and no two steps are alike.
        steps = generator.uniform((2.0, 0.8), (5.0, 2.5), (frames, 2))
        steps *= generator.choice((-1, 1), (frames, 2))
        self.shifts = np.cumsum(steps, axis=0) + 100
        self.angles = np.cumsum(generator.uniform(-0.03, 0.03, frames))

    def _matrix(self, t: int) -> np.ndarray:
        c, s = np.cos(self.angles[t]), np.sin(self.angles[t])
        return np.array([[c, -s], [s, c]])

    def _grid(self) -> np.ndarray:
        h, w = self.size
        return np.stack(np.meshgrid(np.arange(w), np.arange(h)), axis=-1).astype(float)

    def frame(self, t: int) -> np.ndarray:
        """(H, W, 3) uint8."""
        x, y = np.moveaxis(self._grid() @ self._matrix(t).T + self.shifts[t], -1, 0)
        channels = [map_coordinates(c, (y, x), order=3, mode="grid-wrap") for c in self.texture]
        return np.clip(np.rint(np.stack(channels, axis=-1)), 0, 255).astype(np.uint8)

    def flow(self, t: int, s: int) -> np.ndarray:
        """(H, W, 2) float32, from frame t to frame s."""
        place = self._grid() @ self._matrix(t).T + self.shifts[t] - self.shifts[s]
        return (place @ np.linalg.inv(self._matrix(s)).T - self._grid()).astype(np.float32)


def unchanged(flow: np.ndarray) -> np.ndarray:
    """No corruption."""
    return flow


def chairs(
    folder: Path, count: int = 3, split: str | None = None, corrupt: Corrupt = unchanged
) -> Path:
    """`folder/data/00001_img1.ppm` and so on; `split` is the text of the split file."""
    data = _made(folder / "data")
    for number in range(1, count + 1):
        film = Film(number)
        write_image(data / f"{number:05d}_img1.ppm", film.frame(0))
        write_image(data / f"{number:05d}_img2.ppm", film.frame(1))
        write_flow(data / f"{number:05d}_flow.flo", corrupt(film.flow(0, 1)))
    if split is not None:
        (folder / "FlyingChairs_train_val.txt").write_text(split)
    return folder


def sintel(
    folder: Path,
    scenes: Mapping[str, int],
    test: Mapping[str, int] | None = None,
    maps: bool = True,
) -> Path:
    """Both passes of training scenes with so many frames each, and of test scenes."""
    for split, numbers in (("training", scenes), ("test", test or {})):
        for seed, (scene, count) in enumerate(numbers.items()):
            film = Film(seed if split == "training" else 100 + seed, frames=count)
            for t in range(count):
                name = f"frame_{t + 1:04d}"
                image = film.frame(t)
                write_image(_made(folder / split / "clean" / scene) / f"{name}.png", image)
                write_image(_made(folder / split / "final" / scene) / f"{name}.png", image // 2)
                if split == "test":
                    continue
                if maps:
                    hidden = np.zeros(SIZE, np.uint8)
                    hidden[: t + 1] = 255
                    write_mask(_made(folder / split / "invalid" / scene) / f"{name}.png", hidden)
                if t + 1 < count:
                    flow = film.flow(t, t + 1)
                    write_flow(_made(folder / split / "flow" / scene) / f"{name}.flo", flow)
                    if maps:
                        where = _made(folder / split / "occlusions" / scene)
                        write_mask(where / f"{name}.png", hidden[::-1].copy())
    return folder


def kitti(
    folder: Path, scenes: Sequence[int], testing: Sequence[int] = (), year: int = 2015
) -> Path:
    """One pair a scene, its truth known but for the left edge, half of it occluded."""
    frames = "image_2" if year == 2015 else "colored_0"
    for split, numbers in (("training", scenes), ("testing", testing)):
        top = folder / split
        for number in numbers:
            film = Film(number if split == "training" else 1000 + number)
            for t in (0, 1):
                path = _made(top / frames) / f"{number:06d}_1{t}.png"
                write_image(path, film.frame(t))
            if split == "testing":
                continue
            valid = np.ones(SIZE, bool)
            valid[:, :5] = False
            visible = valid.copy()
            visible[: SIZE[0] // 2] = False
            flow, name = film.flow(0, 1), f"{number:06d}_10.png"
            write_flow(_made(top / "flow_occ") / name, flow, valid)
            write_flow(_made(top / "flow_noc") / name, flow, visible)
            objects = np.zeros(SIZE, np.uint8)
            objects[10:20, 30:40] = 3
            if year == 2015:
                write_mask(_made(top / "obj_map") / name, objects)
    return folder


def hd1k(folder: Path, sequences: Mapping[int, int], testing: int = 0) -> Path:
    """So many frames a sequence, a flow for every frame, the last one too."""
    for number, count in sequences.items():
        film = Film(number, frames=count + 1)
        for t in range(count):
            name = f"{number:06d}_{t:04d}.png"
            write_image(_made(folder / "hd1k_input/image_2") / name, film.frame(t))
            write_flow(_made(folder / "hd1k_flow_gt/flow_occ") / name, film.flow(t, t + 1))
    for t in range(testing):
        where = _made(folder / "hd1k_challenge/image_2")
        write_image(where / f"000000_{t:04d}.png", Film(99, frames=testing).frame(t))
    return folder


def things(folder: Path, sequences: Sequence[str] = ("TRAIN/A/0000",), frames: int = 3) -> Path:
    """The full set: a flow for every frame in both directions, frames from number 6 on."""
    for seed, sequence in enumerate(sequences):
        for camera in ("left", "right"):
            film = Film(2 * seed + (camera == "right"), frames=frames + 2)
            for t in range(frames):
                image, number = film.frame(t + 1), t + 6
                for name in ("clean", "final"):
                    where = _made(folder / f"frames_{name}pass" / sequence / camera)
                    write_image(where / f"{number:04d}.png", image)
                for word, step in (("Future", 1), ("Past", -1)):
                    where = _made(
                        folder / "optical_flow" / sequence / f"into_{word.lower()}" / camera
                    )
                    name = f"OpticalFlowInto{word}_{number:04d}_{camera[0].upper()}.pfm"
                    write_flow(where / name, film.flow(t + 1, t + 1 + step))
    return folder


def things_subset(folder: Path, splits: Sequence[str] = ("train", "val"), frames: int = 3) -> Path:
    """The subset: numbered frames, flows where there is a second frame, occlusions."""
    for seed, split in enumerate(splits):
        top = folder / split
        for camera in ("left", "right"):
            film = Film(10 * seed + (camera == "right"), frames=frames)
            for t in range(frames):
                where = _made(top / "image_clean" / camera)
                write_image(where / f"{t:07d}.png", film.frame(t))
                for word, step in (("future", 1), ("past", -1)):
                    if 0 <= t + step < frames:
                        flows = _made(top / "flow" / camera / f"into_{word}")
                        write_flow(flows / f"{t:07d}.flo", film.flow(t, t + step))
                        hidden = _made(top / "flow_occlusions" / camera / f"into_{word}")
                        write_mask(hidden / f"{t:07d}.png", np.zeros(SIZE, np.uint8))
    return folder


def middlebury(folder: Path, scenes: Sequence[str], official: bool = False) -> Path:
    """Frames and flow in one folder a scene, or in the official two."""
    for seed, scene in enumerate(scenes):
        film = Film(seed)
        frames = _made(folder / "other-data" / scene if official else folder / scene)
        flows = _made(folder / "other-gt-flow" / scene if official else folder / scene)
        write_image(frames / "frame10.png", film.frame(0))
        write_image(frames / "frame11.png", film.frame(1))
        write_flow(flows / "flow10.flo", film.flow(0, 1))
    return folder


def spring(folder: Path, scenes: Mapping[str, int], test: Mapping[str, int] | None = None) -> Path:
    """Names only: the files are empty, since a real flow needs h5py to be written."""
    for split, numbers in (("train", scenes), ("test", test or {})):
        for scene, count in numbers.items():
            top = folder / split / scene
            for camera in ("left", "right"):
                for t in range(1, count + 1):
                    (_made(top / f"frame_{camera}") / f"frame_{camera}_{t:04d}.png").touch()
                    for way, exists in (("FW", t < count), ("BW", t > 1)):
                        if exists and split == "train":
                            where = _made(top / f"flow_{way}_{camera}")
                            (where / f"flow_{way}_{camera}_{t:04d}.flo5").touch()
    return folder


def sequence_list(
    folder: Path, frames: int = 6, shift: int = 0, seed: int = 0, name: str = "train.txt"
) -> Path:
    """A list file over a film; `shift` = 1 writes the truth of the pair after into each flow."""
    film = Film(seed, frames=frames + abs(shift) + 1)
    _made(folder)
    stem = Path(name).stem
    for t in range(frames):
        write_image(folder / f"{stem}_{t:03d}.png", film.frame(t))
    lines = ["# image1 image2 flow"]
    for t in range(frames - 1):
        write_flow(folder / f"{stem}_{t:03d}.flo", film.flow(t + shift, t + 1 + shift))
        lines.append(f"{stem}_{t:03d}.png {stem}_{t + 1:03d}.png {stem}_{t:03d}.flo")
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
