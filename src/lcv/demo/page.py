"""The page: what stands where, and which control asks for which work."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from lcv.demo import limits, pieces
from lcv.demo.clips import make_clips
from lcv.demo.controls import FIRST, Controls, settings_from
from lcv.demo.frames import EXAMPLE_SIZE, Chosen, example, from_files
from lcv.demo.learned import MEANING, learned
from lcv.demo.look import INTRO, READING
from lcv.demo.networks import MODELS, has_w
from lcv.demo.sentences import said
from lcv.demo.store import Store, address, save_picture
from lcv.demo.work import Latest, Settings, Shown, show_flows, show_inputs
from lcv.visual.legend import wheel_key
from lcv.words import counted


def build_page(folder: Path, models: tuple[str, ...] = tuple(MODELS), iters: int = 12) -> gr.Blocks:
    """The whole page. folder: for files that it shows;  models, iters: what is chosen when it opens"""
    return Page(folder, Settings(models=models, iters=iters)).blocks


class Page:
    """The controls and results by name, and what happens between them."""

    def __init__(self, folder: Path, first: Settings) -> None:
        self.latest, self.store, self.controls = Latest(), Store(folder), Controls()
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
                # In the order in which a narrow window shows them; a wide one has two columns.
                with gr.Tab("Flow"), gr.Column(elem_id="layout"):
                    self.controls.draw_frames()
                    with gr.Column(elem_id="top"):
                        self.status = _html(
                            pieces.status(_about(example(FIRST), first), "Starting …"),
                            elem_id="status",
                        )
                        self.inputs = _html(pieces.inputs(EXAMPLE_SIZE, truth=True))
                        self.compare = _html(pieces.compare(EXAMPLE_SIZE))
                    self.controls.draw_settings(first.models, first.iters)
                    with gr.Column(elem_id="rest"):
                        self._draw_results(first.models)
                with gr.Tab("The learned W") as tab:
                    self._draw_learned()
            self._wire(tab)

    def _draw_results(self, models: tuple[str, ...]) -> None:
        self.results = {}
        with gr.Row(elem_id="networks"):
            for name in MODELS:
                empty = pieces.results(name, EXAMPLE_SIZE, truth=True)
                self.results[name] = _html(empty, visible=name in models)
        gr.Markdown(READING)
        self.clips = _html("", elem_id="clips")

    def _draw_learned(self) -> None:
        names = [name for name in MODELS if has_w(name)]
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                self.of = gr.Radio(names, value=names[0], label="Network", elem_id="of")
                self.about_w = _html("", elem_id="about-w")
            with gr.Column(scale=2, min_width=320):
                gr.Markdown(MEANING)

    def _wire(self, tab: gr.Tab) -> None:
        controls, asked = self.controls, self.controls.asked
        shown = [self.status, self.inputs, self.compare, *self.results.values(), self.clips]
        quick: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
        work: dict[str, Any] = {**quick, "concurrency_limit": 1, "concurrency_id": "networks"}
        compute: dict[str, Any] = {
            "fn": said(self.compute),
            "inputs": [self.chosen, self.scale, *asked],
            "outputs": [self.scale, *shown],
            "trigger_mode": "always_last",
            **work,
        }
        chosen = [self.chosen, self.scale, controls.position, controls.clip, controls.drop]
        choose = {"inputs": [controls.example], "outputs": chosen, **quick}
        self.blocks.load(said(self.take_example), **choose).success(**compute)
        controls.example.input(said(self.take_example), **choose).success(**compute)
        took = controls.drop.upload(
            said(self.take_files), [controls.drop], [*chosen, controls.example], **quick
        )
        took.success(said(self.preview), [self.chosen, *asked], shown, **quick)
        # Files that were refused go too: the next ones would come on top of them.
        took.failure(lambda: None, None, controls.drop, **quick)
        live = [
            *(slider.release for slider in (*controls.stresses, controls.position, controls.iters)),
            *(each.input for each in (controls.models, controls.side)),
        ]
        # At once, past the queue: whoever is at work learns that nobody waits for it any more.
        gr.on(live, said(self.ask), asked, None, queue=False, **quick)
        gr.on(live, **{**compute, "fn": said(self.follow)})
        controls.run.click(**compute)
        controls.clip.click(
            said(self.make_clips),
            [self.chosen, self.scale, *asked],
            [self.status, self.clips],
            trigger_mode="once",
            **work,
        )
        controls.reset.click(lambda: (1.0, 0, 0), None, controls.stresses, **quick).success(
            **compute
        )
        gr.on(
            [tab.select, self.of.input],
            said(self.show_learned),
            [self.of, self.chosen],
            self.about_w,
            **{**work, "show_progress": "minimal"},
        )
        self.blocks.unload(self.leave)

    def take_example(self, request: gr.Request, name: str) -> tuple[Any, ...]:
        return self._take(request, example(name))

    def take_files(self, request: gr.Request, names: list[str] | None) -> tuple[Any, ...]:
        paths = [Path(name) for name in names or []]
        try:
            chosen = from_files(paths)
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        return *self._take(request, chosen), None

    def _take(self, request: gr.Request, chosen: Chosen) -> tuple[Any, ...]:
        self.latest.ask(str(request.session_hash), None)
        last = len(chosen.frames) - 2
        position = gr.Slider(value=0, maximum=max(1, last), visible=last > 0)
        return chosen, None, position, gr.Button(visible=last > 0), None

    def preview(self, request: gr.Request, chosen: Chosen, *asked: Any) -> dict[Any, Any]:
        """Frames that came, before any network has seen them."""
        settings = settings_from(*asked)
        folder = self.store.fresh(str(request.session_hash), "flow")
        status = pieces.status(_about(chosen, settings), "Press Run.")
        return {self.status: status, **self._empty(chosen, settings, folder)[0]}

    def ask(self, request: gr.Request, *asked: Any) -> None:
        self.latest.ask(str(request.session_hash), settings_from(*asked))

    def leave(self, request: gr.Request) -> None:
        self.latest.forget(str(request.session_hash))
        self.store.forget(str(request.session_hash))

    def compute(
        self, request: gr.Request, chosen: Chosen | None, scale: float | None, *asked: Any
    ) -> Iterator[dict[Any, Any]]:
        """The frames under stress at once, then each network's results as they are done."""
        settings, session = settings_from(*asked), str(request.session_hash)
        self.latest.ask(session, settings)
        self.latest.shown(session, None)
        chosen = example(FIRST) if chosen is None else chosen
        folder = self.store.fresh(session, "flow")
        about, names = _about(chosen, settings), settings.models

        def progress(done: int) -> str:
            now = "Done."
            if done < len(names):
                now = f"{done + 1} of {len(names)}: {names[done]} is at work …"
            return pieces.status(about, now, done, len(names))

        empty, pictures = self._empty(chosen, settings, folder)
        yield {self.status: progress(0), **empty}
        wanted = functools.partial(self.latest.wants, session, settings)
        wheel = ""
        for done, shown in enumerate(show_flows(chosen, settings, scale, wanted), 1):
            wheel = wheel or save_picture(folder, "wheel", wheel_key(shown.scale))
            urls = _save(folder, shown)
            size, truth = chosen.size(settings.side), chosen.truth is not None
            pictures |= {f"{shown.name}: {kind}": urls[kind] for kind in shown.pictures}
            results = pieces.results(shown.name, size, truth, shown, urls)
            update = {self.status: progress(done), self.results[shown.name]: results}
            # Once more at the end, with all pictures: in between a choice would be lost.
            if done in (1, len(names)):
                update[self.compare] = pieces.compare(size, pictures, wheel)
                self.latest.shown(session, settings if done == len(names) else None)
            yield {self.scale: shown.scale, **update}

    def follow(
        self, request: gr.Request, chosen: Chosen | None, scale: float | None, *asked: Any
    ) -> Iterator[dict[Any, Any]]:
        """The same unless it is shown already: a slider that loses the focus asks without a change."""
        if self.latest.shows(str(request.session_hash), settings_from(*asked)):
            yield {self.status: gr.skip()}
        else:
            yield from self.compute(request, chosen, scale, *asked)

    def _empty(
        self, chosen: Chosen, settings: Settings, folder: Path
    ) -> tuple[dict[Any, Any], dict[str, str]]:
        """The frames and empty places for results, as the run may fail; and the frames' addresses."""
        seen, size, truth = (
            show_inputs(chosen, settings),
            chosen.size(settings.side),
            chosen.truth is not None,
        )
        frames = {"first": seen.first, "second": seen.second, "truth": seen.truth}
        urls = {
            where: save_picture(folder, where, picture)
            for where, picture in frames.items()
            if picture is not None
        }
        places = {
            self.inputs: pieces.inputs(size, truth, urls),
            self.compare: pieces.compare(size),
            self.clips: "",
            **{
                place: _html(pieces.results(name, size, truth), visible=name in settings.models)
                for name, place in self.results.items()
            },
        }
        names = {"first": "frame 1", "second": "frame 2", "truth": "true flow"}
        return places, {names[where]: url for where, url in urls.items()}

    def make_clips(
        self, request: gr.Request, chosen: Chosen, scale: float | None, *asked: Any
    ) -> Iterator[dict[Any, Any]]:
        """A clip of the whole video by each network."""
        settings, session = settings_from(*asked), str(request.session_hash)
        self.latest.ask(session, settings)
        folder = self.store.fresh(session, "clips")
        wanted = functools.partial(self.latest.wants, session, settings)
        about, pairs = _about(chosen, settings), len(chosen.frames) - 1
        urls: dict[str, str] = {}

        def path_for(name: str) -> Path:
            return folder / f"{pieces.place(name)}.mp4"

        for name, done, path in make_clips(chosen, settings, scale, path_for, wanted):
            if path is not None:
                urls[name] = address(path)
            now = f"Clip by {name}: {done} of {pairs} pairs."
            before = pairs * settings.models.index(name)
            status = pieces.status(about, now, before + done, pairs * len(settings.models))
            yield {self.status: status, self.clips: pieces.clips(urls) if path else gr.skip()}

    def show_learned(self, request: gr.Request, name: str, chosen: Chosen | None) -> str:
        frame = (example(FIRST) if chosen is None else chosen).frame(0)
        w, folder = learned(name, frame), self.store.fresh(str(request.session_hash), "W")
        pictures = {**w.charts, **w.maps}
        urls = {
            title: save_picture(folder, pieces.place(title), picture)
            for title, picture in pictures.items()
        }
        return pieces.about_w(w, urls)


def _html(value: str, **options: Any) -> gr.HTML:
    return gr.HTML(value, apply_default_css=False, **options)


def _about(chosen: Chosen, settings: Settings) -> str:
    return (
        f"<strong>{escape(chosen.name)}</strong> {escape(chosen.about(settings.side))} "
        f"{counted(settings.iters, 'iteration')}."
    )


def _save(folder: Path, shown: Shown) -> dict[str, str]:
    """Write a network's pictures and its flow; their addresses, by kind and `flo`."""
    flow = folder / f"{pieces.place(shown.name)}.flo"
    shown.result.save(flow)
    return {
        "flo": address(flow),
        **{
            kind: save_picture(folder, pieces.place(kind, shown.name), picture)
            for kind, picture in shown.pictures.items()
        },
    }
