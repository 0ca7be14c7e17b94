"""The page's controls: which frames, which networks, and what is done to the frames."""

from __future__ import annotations

import gradio as gr

from lcv.demo import limits
from lcv.demo.frames import EXAMPLES, VIDEOS
from lcv.demo.networks import MODELS
from lcv.demo.stresses import Stresses
from lcv.demo.work import FEWEST, MOST, Settings

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm")
FIRST = next(iter(EXAMPLES))
PRIVACY = f"""{limits.IN_WORDS}

An uploaded file is deleted as soon as it is read, results when the next ones come or the page is closed,
and everything when the page's program ends. The page answers this machine only and asks no other for
anything."""


class Controls:
    """The controls by name."""

    def draw_frames(self) -> None:
        """Which frames, and the buttons that start the work."""
        with gr.Column(elem_id="frames"):
            self.example = gr.Radio(
                list(EXAMPLES), value=FIRST, label="Example pair, with truth", elem_id="example"
            )
            self.drop = gr.File(
                label="Or two images or one video",
                file_count="multiple",
                file_types=[*PICTURES, *VIDEOS],
                height=170,
                elem_id="drop",
            )
            self.position = gr.Slider(
                0, 1, 0, step=1, label="Frame of the video", visible=False, elem_id="position"
            )
            self.run = gr.Button("Run", variant="primary", elem_id="run")
            self.clip = gr.Button("Whole video as a clip", visible=False, elem_id="clip")

    def draw_settings(self, models: tuple[str, ...], iters: int) -> None:
        """Which networks, how they run, and what is done to the frames."""
        with gr.Column(elem_id="settings"):
            self.models = gr.CheckboxGroup(
                list(MODELS), value=list(models), label="Networks", elem_id="models"
            )
            self.iters = gr.Slider(FEWEST, MOST, iters, step=1, label="Iterations", elem_id="iters")
            self.side = gr.Radio(
                list(limits.SIDES),
                value=limits.SIDES[0],
                label="Longer side, at most (pixels)",
                info="more takes longer",
                elem_id="side",
            )
            with gr.Group():
                self.gamma = _stress(
                    "gamma", "Light (gamma)", "both frames; below 1 is darker", 0.2, 3.0, 1.0, 0.05
                )
                self.noise = _stress(
                    "noise", "Noise (grey levels)", "standard deviation", 0, 80, 0, 1
                )
                self.patch = _stress(
                    "patch", "Patch (size in %)", "diameter, of the shorter side", 0, 70, 0, 1
                )
            self.reset = gr.Button("No stress", size="sm", elem_id="reset")
            with gr.Accordion("Limits and privacy", open=False):
                gr.Markdown(PRIVACY)

    @property
    def stresses(self) -> list[gr.Slider]:
        return [self.gamma, self.noise, self.patch]

    @property
    def asked(self) -> list[gr.Component]:
        """What `settings_from` takes, in its order."""
        return [self.position, self.models, self.iters, self.side, *self.stresses]


def settings_from(
    position: float, models: list[str], iters: float, side: float, *stresses: float
) -> Settings:
    # In the page's order, whatever the order in which they were ticked.
    names = tuple(name for name in MODELS if name in (models or ()))
    return Settings(int(position), names, int(iters), Stresses(*map(float, stresses)), int(side))


def _stress(
    name: str, label: str, info: str, least: float, most: float, none: float, step: float
) -> gr.Slider:
    return gr.Slider(least, most, none, step=step, label=label, info=info, elem_id=name)
