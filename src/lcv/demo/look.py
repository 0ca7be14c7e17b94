"""How the page looks: words, colours, fonts, and where things stand in wide and narrow windows."""

from __future__ import annotations

import gradio as gr

from lcv.demo.work import ERROR_LIMIT

INTRO = """# Optical flow with a learnable cost volume
Networks beside each other, on frames that you choose and may spoil. Everything is computed on this
machine, and nothing leaves it."""
READING = f"""**How to read the pictures.** *Flow:* hue is direction, saturation is length, as on the wheel;
all networks share one scale. *Error:* black is none, white is {ERROR_LIMIT:g} px or more; what the patch
covers does not count. *Occlusion:* red is what frame 2 hides, judged by whether flow there and back
cancels. *Arrows:* drawn on frame 1, lengthened where the motion is small. Times are for flow in both
directions."""
FONT = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONO = ("ui-monospace", "Menlo", "Consolas", "monospace")
CSS = """
.gradio-container { max-width: 1500px !important; margin: 0 auto !important; }
#title h1 { margin: 0 0 2px 0; }
#title p, figcaption, .network p { color: var(--body-text-color); }
[role=tab][aria-selected=true] { color: var(--link-text-color) !important; }
#layout a, #about-w a { color: var(--link-text-color); text-decoration: underline; }
.toast-close { opacity: 1 !important; }
footer { display: none !important; }
.html-container { padding: 0 !important; }
.waiting { visibility: hidden; }
:focus-visible, label:has(input:focus-visible), .compare .box:has(:focus-visible) {
  outline: 3px solid var(--body-text-color) !important; outline-offset: 2px !important;
  transition: none !important; }

/* Wide windows have the controls in the first column, results in the second. */
#layout { display: grid; gap: 16px 24px; grid-template: auto auto 1fr / 290px minmax(0, 1fr); }
#layout > * { min-width: 0; }
#frames { grid-area: 1 / 1; }
#top { grid-area: 1 / 2 / span 2; }
#settings { grid-area: 2 / 1 / span 2; }
#rest { grid-area: 3 / 2; }
#networks { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); }

#status p { margin: 0; }
#status .now { height: 1.5em; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
#status progress { width: 100%; height: 8px; accent-color: var(--primary-700); }
figure { margin: 0; min-width: 0; }
figcaption { font-size: 14px; line-height: 1.4; overflow-wrap: anywhere; }
.box { display: block; position: relative; width: 100%; border-radius: 4px; overflow: hidden;
  background: var(--border-color-primary); }
.box img { display: block; width: 100%; height: 100%; object-fit: contain; }
.inputs { display: grid; gap: 12px; grid-template-columns: repeat(3, minmax(0, 240px)); }
.network h3 { margin: 8px 0 0 0; font-weight: 700; overflow-wrap: anywhere; }
.network p { margin: 0; line-height: 1.5; }
.network .figures { display: grid; gap: 8px; margin-top: 6px; }
.network figcaption { min-height: 2.8em; }

.compare { display: flex; flex-wrap: wrap; gap: 16px; }
.compare > .box { flex: 1 1 300px; align-self: start; --at: 50%; }
.compare .box img { position: absolute; inset: 0; }
.compare .right { clip-path: inset(0 0 0 var(--at)); }
.compare .box::after { content: ""; position: absolute; top: 0; bottom: 0; left: var(--at);
  width: 2px; background: white; box-shadow: 0 0 3px black; pointer-events: none; }
.compare input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0;
  cursor: ew-resize; touch-action: pan-y; }
.compare > div:last-child { display: flex; flex-direction: column; gap: 8px; flex: 1 1 160px; }
.compare label { display: block; font-size: 14px; }
.compare select { display: block; width: 100%; min-height: 34px; padding: 4px 8px; border-radius: 4px;
  color: var(--body-text-color); background: var(--input-background-fill);
  border: 1px solid var(--body-text-color-subdued); }
.key { width: 96px; height: 134px; object-fit: contain; object-position: top; }
.clips { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); }
.clips video { width: 100%; }

#table th, #table td { text-align: left; padding: 4px 16px 4px 0;
  border-bottom: 1px solid var(--border-color-primary); }
.charts { display: grid; gap: 16px; margin: 16px 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
.charts figure { max-width: 400px; }
.maps { display: grid; gap: 12px; grid-template-columns: repeat(3, minmax(0, 240px)); }

@media (max-width: 900px) {
  #networks { grid-template-columns: minmax(0, 1fr); }
  .network .figures { grid-template-columns: 1fr 1fr; }
}
@media (max-width: 640px) {
  .tabs, #title { margin: 0 -20px; width: auto; }
  #layout { display: flex; }
  .inputs { gap: 6px; }
  .compare > div:last-child { display: grid; grid-template-columns: 1fr 1fr; }
}
"""


def theme() -> gr.themes.Base:
    """Calm colours that can be read, and fonts that every system has: none is fetched."""
    soft = gr.themes.Soft(
        primary_hue="teal", secondary_hue="teal", neutral_hue="slate", font=FONT, font_mono=MONO
    )
    strong = {
        "button_primary_background_fill": "*primary_700",
        "button_primary_background_fill_hover": "*primary_800",
        "checkbox_label_background_fill_selected": "*primary_700",
        "checkbox_background_color_selected": "*primary_800",
    }
    return soft.set(
        **strong,
        **{f"{name}_dark": value for name, value in strong.items()},
        body_text_color_subdued="*neutral_600",
        block_info_text_color="*neutral_600",
        block_title_text_color="*primary_800",
        block_label_text_color="*primary_800",
        link_text_color="*primary_800",
        link_text_color_hover="*primary_900",
        link_text_color_visited="*primary_800",
        color_accent="*primary_700",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color_dark="*neutral_300",
        block_title_text_color_dark="*primary_200",
        block_label_text_color_dark="*primary_200",
        block_label_background_fill_dark="*primary_900",
        block_title_background_fill_dark="*primary_900",
        link_text_color_dark="*primary_300",
        link_text_color_visited_dark="*primary_300",
    )
