"""The HTML page around the blocks: one file with its style inside.

Its content policy forbids every request, whatever a label in a result may hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lcv.studies.blocks import Block, Heading

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
:root{color-scheme:light dark;--ink:#1d2730;--soft:#5b6875;--line:#dde3e8;--paper:#ffffff;
--page:#f4f6f8;--here:#e8f1fa;--link:#0b62a4}
@media (prefers-color-scheme:dark){:root{--ink:#e6ebf0;--soft:#9fabb7;--line:#39434d;
--paper:#1a2027;--page:#12171c;--here:#1c3347;--link:#6cb4f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,'Segoe UI',Helvetica,Arial,sans-serif}
main{max-width:1160px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px}
h2{font-size:21px;margin:44px 0 10px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:17px;margin:28px 0 8px}
p{margin:8px 0;max-width:78ch}
a{color:var(--link)}
nav ul{list-style:none;margin:14px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:4px 18px}
figure{margin:16px 0}
figcaption,summary,.lead{color:var(--soft);font-size:14px}
.table figcaption{margin-bottom:6px;color:var(--ink);font-weight:600;font-size:15px}
.wide{overflow-x:auto;background:var(--paper);border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
thead th{vertical-align:bottom;white-space:normal;min-width:72px;color:var(--soft);
font-weight:600}
tbody tr:last-child>*{border-bottom:0}
th:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}
tbody th{font-weight:500}
td.words{white-space:normal;text-align:left;min-width:200px}
tr.here>*{background:var(--here);font-weight:600}
tr.paper>*,tr.muted>*{color:var(--soft)}
.picture{background:var(--paper);border:1px solid var(--line);border-radius:8px;
padding:12px;overflow-x:auto}
.picture img{display:block;max-width:100%;height:auto;margin:0 auto 8px}
.points{margin:10px 0;padding:8px 14px;border-left:3px solid var(--line)}
.points ul{margin:4px 0;padding-left:20px;font-size:14px;max-width:84ch}
.lead{margin:0;font-weight:600}
details{margin:14px 0}
summary{cursor:pointer}
@media print{body{background:#fff}.wide,.picture{break-inside:avoid}}
"""


def page(title: str, subtitle: str, blocks: Sequence[Block]) -> str:
    """The whole HTML file."""
    heads = [block for block in blocks if isinstance(block, Heading) and block.level == 2]
    links = "".join(f'<li><a href="#{h.anchor}">{escape(h.text)}</a></li>' for h in heads)
    body = "\n".join(block.html() for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # An empty icon, or a browser would ask for one.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p>"
        f"<nav><ul>{links}</ul></nav></header>\n{body}\n</main>\n</body>\n</html>\n"
    )
