"""Pieces of the page as HTML: pictures with names and links, a network's results, the slider, progress.

A piece without its result has the same size as with it, so that nothing moves when results come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from lcv.demo.learned import Learned
from lcv.demo.networks import MODELS
from lcv.demo.work import Shown

KINDS = ("flow", "error", "occlusion", "arrows")
"""The pictures of a network's results, in the page's order."""
Size = tuple[int, int]  # height and width


def place(*words: str) -> str:
    """A name for an HTML element, or for a file."""
    return re.sub(r"[^\w.-]+", "-", "-".join(words))


def figure(where: str, caption: str, size: Size, url: str = "") -> str:
    """A picture with its name under it, a link to look at it alone, and one to download it."""
    height, width = size
    box = f'class="box" style="aspect-ratio: {width} / {height}"'
    if url:
        image = f'<img src="{url}" alt="{escape(caption)}" width="{width}" height="{height}">'
        shown = f'<a {box} href="{url}" target="_blank">{image}</a>'
        link = f'<a href="{url}" download="{escape(where)}.png" aria-label="Download {escape(caption)}">PNG</a>'
    else:
        shown, link = f"<div {box}></div>", '<span class="waiting">PNG</span>'
    return (
        f'<figure class="picture" id="{escape(where)}">{shown}'
        f"<figcaption>{escape(caption)} {link}</figcaption></figure>"
    )


def inputs(size: Size, truth: bool, urls: Mapping[str, str] | None = None) -> str:
    """The two frames, and the true flow where it is known."""
    urls = urls or {}
    names = {"first": "frame 1", "second": "frame 2", **({"truth": "true flow"} if truth else {})}
    figures = [figure(where, name, size, urls.get(where, "")) for where, name in names.items()]
    return f'<div class="inputs">{"".join(figures)}</div>'


def results(
    name: str,
    size: Size,
    truth: bool,
    shown: Shown | None = None,
    urls: Mapping[str, str] | None = None,
) -> str:
    """A network's name, how it did, and its pictures. urls: of the pictures, and of the `.flo`"""
    urls = urls or {}
    numbers, download = "…", '<span class="waiting">Download</span>'
    notes = {}
    if shown is not None:
        epe = "" if shown.epe is None else f"<strong>EPE {shown.epe:.2f} px</strong> · "
        numbers = f"{epe}{shown.seconds:.2f} s"
        download = (
            f'<a href="{urls["flo"]}" download="{place(name)}.flo">Download the flow (.flo)</a>'
        )
        if shown.stretch != 1:
            notes["arrows"] = f" ×{shown.stretch:g}"
    figures = [
        figure(place(kind, name), f"{name}: {kind}{notes.get(kind, '')}", size, urls.get(kind, ""))
        for kind in KINDS
        if truth or kind != "error"
    ]
    return (
        f'<section class="network"><h3>{escape(name)}</h3><p>{escape(MODELS[name])}</p>'
        f'<p id="{place("numbers", name)}">{numbers}</p><p>{download}</p>'
        f'<div class="figures">{"".join(figures)}</div></section>'
    )


def compare(size: Size, pictures: Mapping[str, str] | None = None, wheel: str = "") -> str:
    """Two pictures in one place, with a slider between them. pictures: addresses by name"""
    height, width = size
    style = f"aspect-ratio: {width} / {height}; max-width: {round(480 * min(1, width / height))}px"
    if not pictures:
        key = '<div class="key"></div>'
        return f'<div class="compare"><div class="box" style="{style}"></div><div>{_chooser()}{key}</div></div>'
    names = list(pictures)
    first, second = names[0], next((name for name in names if name.endswith(": flow")), names[-1])
    images = "".join(
        f'<img class="{side}" src="{pictures[name]}" alt="{escape(name)}" width="{width}" height="{height}">'
        for side, name in (("left", first), ("right", second))
    )
    move = "this.parentNode.style.setProperty('--at', this.value + '%')"
    slider = (
        f'<input type="range" min="0" max="100" value="50" oninput="{move}" '
        f'aria-label="How much of the left picture is shown, in percent">'
    )
    key = f'<img class="key" src="{wheel}" alt="The colour of each direction, and the motion in full colour">'
    choosers = _chooser("left", first, pictures) + _chooser("right", second, pictures)
    return (
        f'<div class="compare"><div class="box" style="{style}">{images}{slider}</div>'
        f"<div>{choosers}{key}</div></div>"
    )


def _chooser(side: str = "", chosen: str = "", pictures: Mapping[str, str] | None = None) -> str:
    if not side:
        return "".join('<label class="waiting">Left<select></select></label>' for _ in range(2))
    options = "".join(
        f'<option value="{url}"{" selected" if name == chosen else ""}>{escape(name)}</option>'
        for name, url in (pictures or {}).items()
    )
    change = (
        f"const i = this.closest('.compare').querySelector('.{side}'); i.src = this.value; "
        f"i.alt = this.selectedOptions[0].text"
    )
    return f'<label>{side.capitalize()}<select onchange="{change}">{options}</select></label>'


def status(about: str, now: str, done: int = 0, of: int = 0) -> str:
    """A line about the frames, what the page is doing, and a progress bar.

    about: HTML;  of: 0 if nothing is running
    """
    bar = f'<progress value="{done}" max="{of or 1}" aria-label="How much is done"'
    return (
        f'<p>{about}</p><p class="now" role="status">{escape(now)}</p>'
        f"{bar}{'' if of else ' class=waiting'}></progress>"
    )


def clips(urls: Mapping[str, str]) -> str:
    """Players of clips by networks, each with a link."""
    players = "".join(
        f'<figure><video controls loop src="{url}" aria-label="Clip by {escape(name)}"></video>'
        f"<figcaption>{escape(name)}: whole video "
        f'<a href="{url}" download="{place(name)}.mp4">MP4</a></figcaption></figure>'
        for name, url in urls.items()
    )
    return f'<div class="clips">{players}</div>'


def about_w(w: Learned, urls: Mapping[str, str]) -> str:
    """A learned W: numbers, charts, and a frame's features along its directions."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in w.numbers.items()
    )
    charts, maps = (
        "".join(
            figure(place(name), name, (picture.shape[0], picture.shape[1]), urls[name])
            for name, picture in pictures.items()
        )
        for pictures in (w.charts, w.maps)
    )
    return (
        f'<table id="table">{rows}</table><div class="charts">{charts}</div>'
        f"<p><strong>Features of frame 1</strong> along the directions that W weighs most and "
        f"least, with their eigenvalues. Red and blue are the two signs.</p>"
        f'<div class="maps" id="features">{maps}</div>'
    )
