"""Make the example pair anew: `python examples/pair/make.py`. Everything in it is computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PIL import Image

from lcv.data.formats.flow import write_flow
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate

RECIPE = replace(
    TRAINING,
    layers=7,
    speed_sigma=0.2,
    speed_range=(0.5, 1.0),
    fast_probability=0.15,
    thin=(1.5, 5.0),
    object_size=(0.15, 0.55),
    texture_scale=(0.5, 0.9),
    flat_probability=0.05,
    illumination_change=0.2,
    fog=0.0,
    motion_blur=0.0,
    jpeg=0.0,
    noise_sigma=3.0,
    sharpen=1.0,
    sharpen_amount=(0.5, 1.0),
)


def main() -> None:
    here = Path(__file__).parent
    made = generate(RECIPE, 3, range(1), (384, 512))
    for name, image in (("frame1", made.image1), ("frame2", made.image2)):
        pixels = image[0].movedim(0, 2).round().byte().numpy()
        Image.fromarray(pixels).save(here / f"{name}.png", optimize=True)
    # KITTI's format: lossless PNG in steps of 1/64 px.
    write_flow(here / "truth" / "flow.png", made.flow[0].movedim(0, 2).numpy(), overwrite=True)


if __name__ == "__main__":
    main()
