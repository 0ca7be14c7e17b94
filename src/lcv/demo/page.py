"""The page: what stands where, and which control asks for which work."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from lcv.demo import limits
from lcv.demo.frames import EXAMPLES, FILMS, Chosen, example, from_files
from lcv.demo.learned import MEANING, WITH_W, learned
from lcv.demo.look import INTRO, ROWS, heading, picture, plain
from lcv.demo.sentences import said
from lcv.demo.stresses import Stresses
from lcv.demo.work import (
    FEWEST,
    MODELS,
    MOST,
    Latest,
    Settings,
    Shown,
    show_flows,
    show_inputs,
)
from lcv.visual.legend import wheel_key

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm")
FIRST = next(iter(EXAMPLES))


def build_page(models: tuple[str, ...] = tuple(MODELS), iters: int = 12) -> gr.Blocks:
    """The whole page. models, iters: what is chosen when it opens"""
    Settings(models=models, iters=iters)
    page = Page(models, iters)
    return page.blocks


class Page:
    """The controls and pictures by name, and what happens between them."""

    def __init__(self, models: tuple[str, ...], iters: int) -> None:
        self.latest = Latest()
        with gr.Blocks(
            title="lcv: optical flow",
            analytics_enabled=False,
            fill_width=True,
            delete_cache=(600, limits.KEPT_SECONDS),
        ) as self.blocks:
            self.chosen = gr.State(None, time_to_live=limits.KEPT_SECONDS)
            self.scale = gr.State(None)
            gr.Markdown(INTRO, elem_id="title")
            with gr.Tabs():
                with gr.Tab("Flow"), gr.Row(equal_height=False):
                    with gr.Column(scale=1, min_width=290):
                        self._controls(models, iters)
                    with gr.Column(scale=4):
                        self._pictures()
                with gr.Tab("The learned W") as tab:
                    self._learned()
        with self.blocks:
            self._wire(tab)

    def _controls(self, models: tuple[str, ...], iters: int) -> None:
        self.example = gr.Radio(
            list(EXAMPLES), value=FIRST, label="Example pair, with truth", elem_id="example"
        )
        self.drop = gr.File(
            label="or two frames, or one film",
            file_count="multiple",
            file_types=[*PICTURES, *FILMS],
            height=170,
            elem_id="drop",
        )
        self.position = gr.Slider(
            0, 1, 0, step=1, label="Frame of the film", visible=False, elem_id="position"
        )
        self.models = gr.CheckboxGroup(
            list(MODELS), value=list(models), label="Networks", elem_id="models"
        )
        self.iters = gr.Slider(FEWEST, MOST, iters, step=1, label="Iterations", elem_id="iters")
        self.run = gr.Button("Run", variant="primary", elem_id="run")
        with gr.Group():
            self.gamma = gr.Slider(
                0.2,
                3.0,
                1.0,
                step=0.05,
                label="Light (gamma)",
                info="of both frames; below 1 darker",
                elem_id="gamma",
            )
            self.noise = gr.Slider(
                0,
                80,
                0,
                step=1,
                label="Noise (grey levels)",
                info="its deviation; each frame has its own",
                elem_id="noise",
            )
            self.patch = gr.Slider(
                0,
                70,
                0,
                step=1,
                label="Patch (size in %)",
                info="its diameter, of the shorter side",
                elem_id="patch",
            )
        self.reset = gr.Button("No stress", size="sm", elem_id="reset")
        with gr.Accordion("Limits and privacy", open=False):
            gr.Markdown(
                f"{limits.IN_WORDS}\n\nAn uploaded file is deleted as soon as it is read, "
                f"pictures shown here within an hour or two, and everything when the page's program ends. "
                f"The page answers this machine only and asks no other for anything."
            )

    def _pictures(self) -> None:
        self.status = gr.Markdown("", elem_id="status")
        with gr.Row(equal_height=False):
            self.first = picture("frame 1", "first")
            self.second = picture("frame 2", "second")
            self.truth = picture("true flow", "truth")
            with gr.Column(min_width=120, scale=0):
                self.key = gr.Image(
                    show_label=False,
                    container=False,
                    buttons=[],
                    format="png",
                    interactive=False,
                    elem_id="key",
                    height=150,
                    width=100,
                )
        self.headings: dict[str, gr.Markdown] = {}
        self.captions: dict[str, gr.Markdown] = {}
        self.grid: dict[tuple[str, str], gr.Image] = {}
        with gr.Row(equal_height=False):
            for name in MODELS:
                with gr.Column(min_width=160):
                    self.headings[name] = gr.Markdown(
                        heading(name), elem_id=f"numbers-{name}", elem_classes="model"
                    )
        for row, words in ROWS.items():
            self.captions[row] = gr.Markdown(words, elem_classes="caption")
            with gr.Row(equal_height=False):
                for name in MODELS:
                    self.grid[name, row] = picture("", f"{row}-{name}")

    def _learned(self) -> None:
        with gr.Row(equal_height=False):
            with gr.Column(scale=3, min_width=420):
                self.of = gr.Radio(list(WITH_W), value=WITH_W[0], label="Network", elem_id="of")
                self.table = gr.Markdown(elem_id="table")
                with gr.Row(equal_height=False):
                    self.spectrum = picture("", "spectrum")
                    self.angles = picture("", "angles")
                gr.Markdown(
                    "**Features of frame 1** along the directions that W weighs most and least.",
                    elem_classes="caption",
                )
                self.features = picture("", "features")
            with gr.Column(scale=2, min_width=320):
                gr.Markdown(MEANING)
                gr.Markdown("**W − I**, an entry a square.", elem_classes="caption")
                self.matrix = picture("", "matrix")

    def _wire(self, tab: gr.Tab) -> None:
        settings = [self.position, self.models, self.iters, self.gamma, self.noise, self.patch]
        results = [*self.captions.values(), *self.headings.values(), *self.grid.values()]
        pair = [self.first, self.second, self.truth, self.key]
        compute: dict[str, Any] = {
            "fn": said(self.compute),
            "inputs": [self.chosen, self.scale, *settings],
            "outputs": [self.status, self.scale, *pair, *results],
            "show_progress": "minimal",
            "show_progress_on": self.status,
            "concurrency_limit": 1,
            "concurrency_id": "networks",
            "trigger_mode": "always_last",
            "api_visibility": "private",
        }
        quick: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
        chosen = [self.chosen, self.scale, self.position, self.drop]
        previews = [self.status, *pair, *results]
        choose = {"inputs": [self.example], "outputs": chosen, **quick}
        self.blocks.load(said(self.take_example), **choose).success(**compute)
        self.example.input(said(self.take_example), **choose).success(**compute)
        took = self.drop.upload(
            said(self.take_files), [self.drop], [*chosen, self.example], **quick
        )
        took.success(said(self.preview), [self.chosen, *settings], previews, **quick)
        # Files that were refused go too: the next ones would come on top of them.
        took.failure(lambda: None, None, self.drop, **quick)
        live = [
            *(slider.release for slider in (self.gamma, self.noise, self.patch)),
            *(slider.release for slider in (self.position, self.iters)),
            self.models.input,
        ]
        # At once, past the queue: whoever is at work learns that nobody waits for it any more.
        gr.on(live, said(self.ask), settings, None, queue=False, **quick)
        gr.on([*live, self.run.click], **compute)
        self.reset.click(
            lambda: (1.0, 0, 0), None, [self.gamma, self.noise, self.patch], **quick
        ).success(**compute)
        w = [self.table, self.spectrum, self.angles, self.matrix, self.features]
        gr.on(
            [tab.select, self.of.input],
            said(self.show_learned),
            [self.of, self.chosen],
            w,
            concurrency_id="networks",
            api_visibility="private",
            show_progress="minimal",
            show_progress_on=self.table,
        )
        self.blocks.unload(self.leave)

    def take_example(self, name: str) -> tuple[Any, ...]:
        return example(name), None, gr.Slider(value=0, visible=False), None

    def take_files(self, names: list[str] | None) -> tuple[Any, ...]:
        paths = [Path(name) for name in names or []]
        try:
            chosen = from_files(paths)
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        last = len(chosen.frames) - 2
        position = gr.Slider(value=0, maximum=max(1, last), visible=last > 0)
        return chosen, None, position, None, None

    def preview(self, chosen: Chosen, *asked: Any) -> dict[Any, Any]:
        """Frames that came, before any network has seen them."""
        settings = _settings(*asked)
        inputs = show_inputs(chosen, settings)
        words = f"**{plain(chosen.name)}** {chosen.note} Press *Run*."
        results = [*self.captions.values(), *self.headings.values(), *self.grid.values()]
        return {
            self.status: words,
            self.first: inputs.first,
            self.second: inputs.second,
            self.truth: gr.Image(None, visible=False),
            self.key: gr.Image(None),
            **{each: type(each)(visible=False) for each in results},
        }

    def ask(self, request: gr.Request, *asked: Any) -> None:
        self.latest.ask(str(request.session_hash), _settings(*asked))

    def leave(self, request: gr.Request) -> None:
        self.latest.forget(str(request.session_hash))

    def compute(
        self, request: gr.Request, chosen: Chosen | None, scale: float | None, *asked: Any
    ) -> Iterator[dict[Any, Any]]:
        """The frames under stress at once, then each network's pictures as they are done."""
        settings, session = _settings(*asked), str(request.session_hash)
        self.latest.ask(session, settings)
        chosen = example(FIRST) if chosen is None else chosen
        inputs = show_inputs(chosen, settings)
        about = (
            f"**{plain(chosen.name)}** {chosen.note} {settings.iters} iterations; times are for flow "
            f"there and back."
        )
        known = inputs.truth is not None
        yield {
            self.status: about,
            self.first: inputs.first,
            self.second: inputs.second,
            self.truth: gr.Image(inputs.truth, visible=known),
            self.key: gr.Image(None),
            **self._visible(settings.models, known),
        }
        wanted = functools.partial(self.latest.wants, session, settings)
        for shown in show_flows(chosen, settings, scale, wanted):
            yield {
                self.status: about,
                self.scale: shown.scale,
                self.key: wheel_key(shown.scale),
                **self._results(shown),
            }

    def _visible(self, models: tuple[str, ...], truth: bool) -> dict[Any, Any]:
        """Which places the results will have, empty until they come: a run may fail."""
        rows = {row: truth or row != "error" for row in ROWS}
        return {
            **{self.captions[row]: gr.Markdown(visible=there) for row, there in rows.items()},
            **{
                place: gr.Markdown(heading(name), visible=name in models)
                for name, place in self.headings.items()
            },
            **{
                place: gr.Image(None, visible=name in models and rows[row])
                for (name, row), place in self.grid.items()
            },
        }

    def _results(self, shown: Shown) -> dict[Any, Any]:
        name = shown.name
        return {
            self.headings[name]: heading(name, shown),
            self.grid[name, "flow"]: shown.flow,
            self.grid[name, "error"]: gr.Image(shown.error, visible=shown.error is not None),
            self.grid[name, "occlusion"]: shown.occlusion,
            self.grid[name, "arrows"]: shown.arrows,
        }

    def show_learned(self, name: str, chosen: Chosen | None) -> tuple[Any, ...]:
        frame = (example(FIRST) if chosen is None else chosen).frames[0]
        w = learned(name, frame)
        angles = gr.Image(w.angles, visible=w.angles is not None)
        return w.table, w.spectrum, angles, w.matrix, w.features


def _settings(
    position: float, models: list[str], iters: float, gamma: float, noise: float, patch: float
) -> Settings:
    # In the page's order, whatever the order in which they were ticked.
    names = tuple(name for name in MODELS if name in models) if models else ()
    stresses = Stresses(float(gamma), float(noise), float(patch))
    return Settings(int(position), names, int(iters), stresses)
