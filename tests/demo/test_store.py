"""Files of results: the latest of each page and purpose, and none of a page that is closed."""

from __future__ import annotations

from urllib.parse import unquote

import numpy as np

from lcv.demo.gate import FILE
from lcv.demo.store import Store, save_picture


def test_only_what_is_shown_is_kept(tmp_path):
    store = Store(tmp_path)
    black = np.zeros((2, 3, 3), np.uint8)
    old, other = store.fresh("a", "flow"), store.fresh("b", "flow")
    save_picture(old, "x", black)
    new, w = store.fresh("a", "flow"), store.fresh("a", "W")
    assert {*tmp_path.iterdir()} == {other, new, w}
    # A page's name comes from the browser: it leads nowhere else.
    assert store.fresh("../../etc", "flow").parent == tmp_path
    store.forget("../../etc")
    store.forget("a")
    store.forget("a")
    assert {*tmp_path.iterdir()} == {other}


def test_an_address_leads_to_the_file(tmp_path):
    url = save_picture(tmp_path, "a b#1", np.zeros((2, 3, 3), np.uint8))
    assert "#" not in url
    assert unquote(url.removeprefix(FILE)) == str(tmp_path / "a b#1.png")
