# ruff: noqa: E402
"""What the page's controls do, without a browser: what is asked for, shown, kept and forgotten."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest

from testing.extras import needs

needs("gradio")

import gradio as gr

from lcv.demo import clips, look, page, work
from lcv.demo.controls import PRIVACY, settings_from
from lcv.demo.frames import Chosen
from lcv.demo.gate import FILE
from lcv.demo.learned import MEANING, Learned
from lcv.demo.sentences import said
from lcv.demo.stresses import Stresses
from lcv.demo.work import Settings
from lcv.errors import FileError
from lcv.predict.result import FlowResult
from testing.footage import SIZE, moving

ASKED = (0, ["raft-large", "raft-small"], 5, 640, 1.0, 0, 0)
ME = SimpleNamespace(session_hash="me")


class Fixed:
    """A network that moves everything by 3 to the right."""

    def plan(self, *_, **__):
        pass

    def __call__(self, first, second, *, occlusion):
        size = tuple(first.shape[2:])
        return FlowResult(
            np.tile(np.float32([3.0, 0.0]), (*size, 1)), occluded=np.zeros(size, bool)
        )


@pytest.fixture
def made(tmp_path, monkeypatch):
    truth = np.tile(np.float32([3.0, 4.0]), (*SIZE, 1))
    pair = Chosen(tuple(moving(2)), "pair", truth=truth)
    monkeypatch.setattr(page, "example", lambda name: pair)
    monkeypatch.setattr(page, "has_w", lambda name: name != "raft-small-vanilla")
    monkeypatch.setattr(work, "network", lambda name, iters: Fixed())
    return page.Page(tmp_path, Settings(models=("raft-small",), iters=7))


def film(count=4):
    return Chosen(tuple(moving(count)), "<film>", "A note.")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_controls_become_settings():
    assert settings_from(3.0, ["raft-large", "raft-small"], 5.0, 1024.0, 0.5, 10, 20) == Settings(
        3, ("raft-small", "raft-large"), 5, Stresses(0.5, 10.0, 20.0), 1024
    )


def test_what_stands_on_the_page_when_it_opens(made):
    controls = made.controls
    sliders = {
        each.elem_id: (each.minimum, each.maximum, each.value, each.step, each.visible)
        for each in (controls.position, controls.iters, *controls.stresses)
    }
    assert sliders == {
        "position": (0, 1, 0, 1, False),
        "iters": (1, 32, 7, 1, True),
        "gamma": (0.2, 3.0, 1.0, 0.05, True),
        "noise": (0, 80, 0, 1, True),
        "patch": (0, 70, 0, 1, True),
    }
    assert controls.models.value == ["raft-small"]
    assert controls.side.value == 640
    assert [value for _, value in controls.side.choices] == [640, 1024, 1920]
    assert controls.run.visible
    assert not controls.clip.visible
    assert made.of.value == "raft-small"
    assert [value for _, value in made.of.choices] == ["raft-small", "raft-large"]
    assert [place.visible for place in made.results.values()] == [True, False, False]
    assert "7 iterations." in made.status.value
    assert controls.asked[0] is controls.position
    assert len(controls.asked) == 7
    assert made.blocks.analytics_enabled is False
    assert made.blocks.delete_cache == (600, 3600)
    assert page.build_page(made.store.folder, ("raft-large",), 3).title == "lcv: optical flow"


def test_how_the_page_is_laid_out(made):
    """Two columns in the second tab, the words that explain it all, and nothing folded out."""
    blocks = list(made.blocks.blocks.values())
    texts = [each.value for each in blocks if isinstance(each, gr.Markdown)]
    wanted = [look.INTRO, PRIVACY, look.READING, MEANING]
    assert texts == [inspect.cleandoc(text) for text in wanted]
    (folded,) = (each for each in blocks if isinstance(each, gr.Accordion))
    assert (folded.label, folded.open) == ("Limits and privacy", False)
    columns = [
        (each.scale, each.min_width)
        for each in blocks
        if isinstance(each, gr.Column) and each.elem_id is None
    ]
    assert columns == [(3, 320), (2, 320)]
    assert made.controls.drop.height == 170
    assert made.blocks.fill_width is True
    pieces = [each for each in blocks if isinstance(each, gr.HTML)]
    assert not any(each.apply_default_css for each in pieces)
    assert 'role="status">Starting …<' in made.status.value
    assert made.inputs.value.count("<figure") == 3, "with the truth"
    assert {place.value.count("<figure") for place in made.results.values()} == {4}
    opened = page.build_page(made.store.folder)
    (iters,) = (each for each in opened.blocks.values() if each.elem_id == "iters")
    assert iters.value == 12


def test_every_control_is_wired(made):
    """By the names of what they call; nothing is offered to programs, and networks work one by one."""
    wired = {}
    for each in made.blocks.fns.values():
        name = getattr(each.fn, "__name__", "")
        wired.setdefault(name, []).append(each)
        assert each.api_visibility == "private" or name == "leave"
    counts = {name: len(each) for name, each in wired.items()}
    assert counts == {
        "take_example": 2,
        "compute": 4,
        "take_files": 1,
        "preview": 1,
        "<lambda>": 2,
        "ask": 1,
        "follow": 1,
        "make_clips": 1,
        "show_learned": 1,
        "leave": 1,
    }
    assert not wired["ask"][0].queue
    for name in ("compute", "follow", "make_clips", "show_learned"):
        for each in wired[name]:
            assert (each.concurrency_limit, each.concurrency_id) == (1, "networks")
    assert len(wired["follow"][0].targets) == len(wired["ask"][0].targets) == 7
    controls, asked = made.controls, made.controls.asked
    chosen = [made.chosen, made.scale, controls.position, controls.clip, controls.drop]
    places = [made.status, made.inputs, made.compare, *made.results.values(), made.clips]
    given = [made.chosen, made.scale, *asked]
    between = {
        "take_example": ([controls.example], chosen),
        "compute": (given, [made.scale, *places]),
        "follow": (given, [made.scale, *places]),
        "take_files": ([controls.drop], [*chosen, controls.example]),
        "preview": ([made.chosen, *asked], places),
        "ask": (asked, []),
        "make_clips": (given, [made.status, made.clips]),
        "show_learned": ([made.of, made.chosen], [made.about_w]),
    }
    for name, (inputs, outputs) in between.items():
        for each in wired[name]:
            assert (each.inputs, each.outputs) == (inputs, outputs), name
    to = [(each.inputs, each.outputs) for each in wired["<lambda>"]]
    assert sorted(to, key=lambda pair: len(pair[1])) == [
        ([], [controls.drop]),
        ([], controls.stresses),
    ]
    reset = [each.fn() for each in wired["<lambda>"]]
    assert sorted(reset, key=str) == [(1.0, 0, 0), None], "no stress; no refused file"


def test_frames_that_come_are_taken_and_their_files_deleted(made, tmp_path, monkeypatch):
    uploads = [tmp_path / name for name in ("a.png", "b.png")]
    for path in uploads:
        path.touch()
    monkeypatch.setattr(page, "from_files", lambda paths: film(2 + paths.index(uploads[0])))
    chosen, scale, position, clip, drop, example = made.take_files(ME, [str(p) for p in uploads])
    assert len(chosen.frames) == 2
    assert (scale, drop, example) == (None, None, None)
    assert (position.maximum, position.visible, clip.visible) == (1, False, False)
    assert not any(path.exists() for path in uploads)
    monkeypatch.setattr(page, "from_files", lambda paths: film(4))
    _, _, position, clip, *_ = made.take_files(ME, None)
    assert (position.value, position.maximum, position.visible) == (0, 2, True)
    assert clip.visible
    three, _, position, clip, drop = made.take_example(ME, "pair")
    assert three is page.example("pair")
    assert (position.visible, clip.visible, drop) == (False, False, None)
    monkeypatch.setattr(page, "example", lambda name: film(3))
    _, _, position, clip, _ = made.take_example(ME, "film")
    assert (position.maximum, position.visible, clip.visible) == (1, True, True)
    assert not made.latest.wants("me", Settings()), "nothing is asked for yet"
    uploads[0].touch()
    uploads[1].unlink(missing_ok=True)

    def refuse(paths):
        raise FileError("no")

    monkeypatch.setattr(page, "from_files", refuse)
    with pytest.raises(FileError):
        made.take_files(ME, [str(path) for path in uploads])
    assert not uploads[0].exists(), "though another was gone already"


def test_a_preview_shows_frames_and_empty_places(made, tmp_path):
    shown = made.preview(ME, film(), *ASKED)
    assert "Press Run." in shown[made.status]
    assert "<strong>&lt;film&gt;</strong> A note. 5 iterations." in shown[made.status]
    assert shown[made.inputs].count("<img") == 2
    assert "<img" not in shown[made.compare]
    assert shown[made.clips] == ""
    assert [shown[place].visible for place in made.results.values()] == [True, False, True]
    assert files(tmp_path) == ["first.png", "second.png"]


def test_a_run_shows_results_one_by_one(made, tmp_path):
    start, one, two = made.compute(ME, None, None, *ASKED)
    assert "1 of 2: raft-small is at work …" in start[made.status]
    assert 'value="0" max="2"' in start[made.status]
    assert start[made.inputs].count("<img") == 3, "with the truth"
    assert "2 of 2: raft-large is at work …" in one[made.status]
    assert one[made.scale] == two[made.scale] == work.flow_scale(page.example("").truth)
    small, large = made.results["raft-small"], made.results["raft-large"]
    assert {*one} == {made.status, made.scale, made.compare, small}
    assert {*two} == {made.status, made.scale, made.compare, large}
    assert "Done." in two[made.status]
    assert 'value="2" max="2"' in two[made.status]
    assert "EPE 4.00 px" in one[small]
    options = re.findall(r"<option[^>]*>([^<]*)<", two[made.compare])
    kinds = ("flow", "error", "occlusion", "arrows")
    names = [f"{name}: {kind}" for name in ("raft-small", "raft-large") for kind in kinds]
    assert options == 2 * ["frame 1", "frame 2", "true flow", *names]
    for url in re.findall(r'(?:src|href)="([^"]*)"', one[small] + two[made.compare]):
        assert url.startswith(FILE)
        assert Path(unquote(url.removeprefix(FILE))).is_file()
    names = [f"{kind}-{name}.png" for kind in kinds for name in ("raft-small", "raft-large")]
    names += [
        "raft-small.flo",
        "raft-large.flo",
        "first.png",
        "second.png",
        "truth.png",
        "wheel.png",
    ]
    assert files(tmp_path) == sorted(names)
    assert made.latest.shows("me", settings_from(*ASKED))


def test_a_slider_that_did_not_move_starts_nothing(made):
    assert len([*made.follow(ME, film(), 2.5, *ASKED)]) == 3
    (nothing,) = made.follow(ME, film(), 2.5, *ASKED)
    assert {*nothing} == {made.status}
    other = (*ASKED[:2], 6, *ASKED[3:])
    _, first, _ = made.follow(ME, film(), 2.5, *other)
    assert first[made.scale] == 2.5
    assert not made.latest.shows("me", settings_from(*ASKED))


def test_a_run_that_nobody_waits_for_ends(made):
    steps = made.compute(ME, film(), None, *ASKED)
    next(steps)
    next(steps)
    made.ask(ME, *ASKED[:2], 9, *ASKED[3:])
    assert [*steps] == []
    assert not made.latest.shows("me", settings_from(*ASKED))
    assert len([*made.compute(ME, film(), None, *ASKED)]) == 3
    assert made.latest.shows("me", settings_from(*ASKED))
    again = made.compute(ME, film(), None, *ASKED)
    next(again)
    assert not made.latest.shows("me", settings_from(*ASKED)), "its places are empty again"
    assert made.latest.wants("me", settings_from(*ASKED))


def test_who_leaves_is_forgotten(made, tmp_path):
    assert [*made.compute(ME, film(), None, *ASKED)]
    assert files(tmp_path)
    made.leave(ME)
    assert files(tmp_path) == []
    assert not made.latest.shows("me", settings_from(*ASKED))
    assert made.latest.wants("me", Settings())
    made.preview(ME, film(), *ASKED)
    assert files(tmp_path)
    made.leave(ME)
    assert files(tmp_path) == []


def test_clips_come_one_by_one(made, tmp_path, monkeypatch):
    def make_clips(chosen, settings, scale, path_for, wanted):
        assert scale == 2.5
        assert wanted()
        for name in settings.models:
            yield name, 1, None
            path_for(name).touch()
            yield name, 3, path_for(name)

    monkeypatch.setattr(page, "make_clips", make_clips)
    steps = [*made.make_clips(ME, film(), 2.5, *ASKED)]
    told = [re.search(r'role="status">([^<]*)<.*value="(\d)" max="(\d)"', s[made.status]).groups()
            for s in steps]  # fmt: skip
    assert told == [
        ("Clip by raft-small: 1 of 3 pairs.", "1", "6"),
        ("Clip by raft-small: 3 of 3 pairs.", "3", "6"),
        ("Clip by raft-large: 1 of 3 pairs.", "4", "6"),
        ("Clip by raft-large: 3 of 3 pairs.", "6", "6"),
    ]
    assert [str(step[made.clips]).count("<video") for step in steps] == [0, 1, 0, 2]
    assert "raft-large.mp4" in steps[-1][made.clips]
    assert clips.make_clips is not make_clips
    assert made.latest.wants("me", settings_from(*ASKED))
    assert not made.latest.wants("me", Settings()), "the clips are what is asked for"
    assert files(tmp_path) == ["raft-large.mp4", "raft-small.mp4"]
    made.leave(ME)
    assert files(tmp_path) == []


def test_a_learned_w_is_drawn_for_the_frame_that_is_chosen(made, tmp_path, monkeypatch):
    seen = []
    picture = np.zeros((4, 6, 3), np.uint8)

    def learned(name, frame):
        seen.append((name, frame))
        return Learned({"channels": "3"}, {"Spectrum": picture}, {"Most 1": picture})

    monkeypatch.setattr(page, "learned", learned)
    html = made.show_learned(ME, "raft-large", film())
    made.show_learned(ME, "raft-small", None)
    assert [name for name, _ in seen] == ["raft-large", "raft-small"]
    assert all(np.array_equal(frame, moving(2)[0]) for _, frame in seen)
    assert html.count("<img") == 2
    assert '<th scope="row">channels</th><td>3</td>' in html
    assert files(tmp_path) == ["Most-1.png", "Spectrum.png"], "of the last one only"
    made.leave(ME)
    assert files(tmp_path) == []


def test_what_goes_wrong_is_a_sentence_on_the_page(caplog):
    def wrong(kind):
        raise kind

    def steps(kind):
        yield 1
        raise kind

    for function in (wrong, steps):

        def call(kind, function=function):
            found = said(function)(kind)
            return [*found] if function is steps else found

        with pytest.raises(gr.Error) as caught:
            call(FileError("a.png: is bad"))
        error = caught.value
        assert (error.message, error.duration, error.title) == ("a.png: is bad", 15, "Sorry")
        assert error.print_exception is False
        assert not caplog.records
        with pytest.raises(gr.Error) as caught:
            call(KeyError("x"))
        error = caught.value
        wanted = "This is a fault of the page (KeyError); its terminal says more."
        assert (error.message, error.duration, error.title) == (wanted, 15, "Sorry")
        assert error.print_exception is False
        assert "the page could not do what it was asked for" in caplog.text
        caplog.clear()
        own = gr.Error("mine")
        with pytest.raises(gr.Error) as caught:
            call(own)
        assert caught.value is own
        assert not caplog.records
    assert said(lambda: 7)() == 7
