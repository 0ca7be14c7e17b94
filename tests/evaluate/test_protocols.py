"""Protocols are data: complete, stored and read back without loss, and right about the facts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lcv.errors import ArgumentError
from lcv.evaluate.metrics import METRICS
from lcv.evaluate.protocols import PROTOCOLS, Protocol, Setting, call_words, find_protocol
from lcv.evaluate.tables import protocol_text


def test_those_that_were_asked_for_are_there():
    assert list(PROTOCOLS) == ["raft", "torchvision", "vcn", "ddflow", "kitti", "sintel"]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_each_is_complete_and_survives_json(protocol):
    assert Protocol.from_dict(json.loads(json.dumps(protocol.as_dict()))) == protocol
    assert "*" in protocol.settings, "a dataset that nobody thought of has a setting too"
    for setting in protocol.settings.values():
        assert set(setting.headline) <= set(METRICS)
    assert protocol.source
    assert protocol.averaging
    assert f"{protocol.name}: {protocol.source}" in protocol_text()


@pytest.mark.parametrize(
    ("protocol", "dataset", "iters", "pad", "first"),
    [
        ("raft", "chairs", 24, "sintel", "epe"),
        ("raft", "sintel-clean", 32, "sintel", "epe"),
        ("raft", "sintel-final", 32, "sintel", "epe"),
        ("raft", "kitti2015", 24, "kitti", "epe_image"),
        ("raft", "kitti2012", 24, "kitti", "epe_image"),
        ("raft", "middlebury", 20, "sintel", "epe"),
        ("torchvision", "kitti2015", 24, "kitti", "epe_image"),
        ("torchvision", "sintel-final", 32, "sintel", "epe"),
        ("torchvision", "hd1k", 12, "sintel", "epe"),
        ("vcn", "kitti2015", None, None, "fl"),
        ("ddflow", "kitti2012", None, None, "epe"),
        ("kitti", "kitti2015", 24, "kitti", "fl"),
        ("sintel", "sintel-clean", 32, "sintel", "epe"),
    ],
)
def test_how_a_dataset_is_called(protocol, dataset, iters, pad, first):
    setting = PROTOCOLS[protocol].setting(dataset)
    assert (setting.iters, setting.pad, setting.headline[0]) == (iters, pad, first)


def test_the_longest_name_wins():
    settings = {"*": Setting(1), "kitti": Setting(2), "kitti2012": Setting(3)}
    protocol = Protocol("mine", "here", "over pixels", settings)
    iters = [protocol.setting(name).iters for name in ("sintel", "kitti2015", "kitti2012")]
    assert iters == [1, 2, 3]


def test_a_change_is_seen_in_what_is_stored():
    changed = PROTOCOLS["raft"].changed(iters=12, precision="bfloat16", warm_start=True)
    assert {s.iters for s in changed.settings.values()} == {12}
    assert changed.setting("kitti2015").pad == "kitti"
    assert (changed.precision, changed.warm_start) == ("bfloat16", True)
    assert changed != PROTOCOLS["raft"]
    assert PROTOCOLS["raft"].changed() == PROTOCOLS["raft"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: find_protocol("ptlflow"), "no protocol 'ptlflow'; there are raft, torchvision"),
        (lambda: PROTOCOLS["raft"].changed(precision="half"), "precision is 'half', wanted one of"),
        (lambda: PROTOCOLS["raft"].changed(validity="all"), "validity is 'all', wanted one of"),
        (lambda: PROTOCOLS["raft"].changed(storage="jpeg"), "storage is 'jpeg', wanted one of"),
        (
            lambda: PROTOCOLS["raft"].changed(pad="zero"),
            "pad is 'zero', wanted one of sintel, kitti",
        ),
    ],
)
def test_unknown_words_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_the_page_quotes_what_each_protocol_does():
    page = Path(__file__).resolve().parents[2] / "docs" / "evaluate.md"
    rows = [line.split(" | ") for line in page.read_text(encoding="utf-8").splitlines()]
    quotes = {row[0].split("`")[1]: row[2] for row in rows if len(row) == 5 and "`" in row[0]}
    for name, protocol in PROTOCOLS.items():
        said = set(re.findall(r"`(\w+)`", quotes[name]))
        assert said == {each for s in protocol.settings.values() for each in s.headline}, name


def test_settings_of_another_program_are_put_in_words_too():
    assert call_words({"iters": 12, "pad": "sintel", "more": 1}) == "12 iterations, sintel padding"
    assert call_words({}) == "the network's own sizes"


def test_what_a_protocol_is_where_nothing_is_said():
    mine = Protocol("mine", "here", "over pixels")
    assert mine.settings == {"*": Setting(None, None, ("epe", "fl"))}
    assert (mine.precision, mine.validity, mine.limit) == ("float32", "known", None)
    assert (mine.storage, mine.warm_start) == ("exact", False)


def test_each_protocol_counts_and_stores_as_its_source_does():
    """VCN and RAFT write KITTI's PNGs cut down, KITTI's kit rounded; VCN leaves out 1000 px and more."""
    storage = {"vcn": "kitti-truncated", "kitti": "kitti-rounded"}
    for name, protocol in PROTOCOLS.items():
        assert protocol.storage == storage.get(name, "exact")
        assert protocol.limit == (1000 if name == "vcn" else None)
        assert (protocol.precision, protocol.validity) == ("float32", "known")
        assert not protocol.warm_start
    quoted = [*PROTOCOLS["torchvision"].settings.values()]
    assert [s.headline for s in quoted] == [
        ("epe", "epe_image", "px1", "px3", "px5"),
        ("epe_image", "epe", "px1", "px3", "px5", "fl"),
        ("epe", "epe_image", "px1", "px3", "px5"),
    ]
