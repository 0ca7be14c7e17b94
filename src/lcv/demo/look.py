"""How the page looks: words, colours, fonts, and the few forms that are used again and again."""

from __future__ import annotations

import gradio as gr

from lcv.demo.work import ERROR_LIMIT, MODELS, Shown

INTRO = """# Optical flow with a learnable cost volume
Three networks beside each other, on frames that you choose and may spoil. Everything is computed on
this machine, and nothing leaves it."""
ROWS = {
    "flow": "**Flow.** Hue is direction, saturation is length, as on the wheel above.",
    "error": f"**Error.** Black is none, white is {ERROR_LIMIT:g} px or more; what the patch covers does "
    f"not count.",
    "occlusion": "**Occlusion.** Red is what frame 2 hides: there and back does not lead home.",
    "arrows": "**Arrows** on frame 1, lengthened where the motion is small.",
}
FONT = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONO = ("ui-monospace", "Menlo", "Consolas", "monospace")
CSS = """
.gradio-container { max-width: 1500px !important; margin: 0 auto !important; }
#title h1 { margin: 0 0 2px 0; }
#title p { color: var(--body-text-color-subdued); }
.caption { margin-top: 6px; }
.caption p { margin: 0; font-size: 14px; color: var(--body-text-color-subdued); }
.caption strong { color: var(--body-text-color); }
.model h3 { margin: 8px 0 0 0; }
.model p { margin: 0; }
.model strong { font-size: 17px; }
.picture .image-frame { width: 100%; }
.picture img { width: 100% !important; height: auto !important; object-fit: contain !important; }
#matrix { max-width: 400px; }
#key { margin-top: 24px; }
#table table { font-size: 14px; }
footer { display: none !important; }
"""


def theme() -> gr.themes.Base:
    """Calm colours, and fonts that every system has: none is fetched."""
    return gr.themes.Soft(
        primary_hue="teal", secondary_hue="teal", neutral_hue="slate", font=FONT, font_mono=MONO
    )


def heading(name: str, shown: Shown | None = None) -> str:
    """A network's name, what it is, and how it did."""
    words = f"### {name}\n{MODELS[name]}"
    if shown is None:
        return f"{words}\n\n…"
    epe = "" if shown.epe is None else f"**EPE {shown.epe:.2f} px** · "
    longer = "" if shown.stretch == 1 else f" · arrows {shown.stretch:g} times as long"
    return f"{words}\n\n{epe}{shown.seconds:.2f} s{longer}"


def picture(label: str, name: str) -> gr.Image:
    return gr.Image(
        label=label,
        show_label=bool(label),
        format="png",
        interactive=False,
        buttons=["fullscreen", "download"],
        elem_id=name,
        elem_classes="picture",
        min_width=160,
    )


def plain(name: str) -> str:
    """A file's name among Markdown, as nothing but letters."""
    return "".join(each if each.isalnum() or each in " .-" else f"&#{ord(each)};" for each in name)
