"""Which sizes a file takes, and with which it is checked."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.export.sizes import Sizes, cases, choose_sizes, traced_size
from lcv.models.ddflow import DDFlow
from lcv.models.raft import RAFT
from lcv.models.vcn import VCN

FILES = [
    (RAFT.export_rule, None),
    (RAFT.export_rule, (64, 72)),
    (VCN.export_rule, (128, 192)),
    (DDFlow.export_rule, (47, 63)),
]
IDS = ["raft, open", "raft", "vcn", "ddflow"]


@pytest.mark.parametrize(("network", "size"), FILES, ids=IDS)
def test_three_images_that_the_rule_brings_to_a_size_of_the_file(network, size):
    sizes = choose_sizes("it", network, size)
    three = cases(network, sizes)
    assert len(three) == 3
    for height, width, mode in three:
        fitted = network.fit(*torch.zeros(2, 1, 3, height, width), mode)
        assert sizes.take(*fitted.image1.shape[2:])
        assert fitted.image1.shape == fitted.image2.shape
        assert fitted.undo(torch.zeros_like(fitted.image1)[:, :2]).shape == (1, 2, height, width)
    if network.fits_any:
        assert len({case[:2] for case in three}) == 3
        assert {mode for _, _, mode in three} == set(network.modes)
    assert sizes.take(*traced_size(sizes))


def test_no_case_of_an_open_file_is_the_traced_size():
    sizes = choose_sizes("it", RAFT.export_rule, None)
    traced = traced_size(sizes)
    given = [
        RAFT.export_rule.fit(*torch.zeros(2, 1, 3, h, w), mode).image1.shape[2:]
        for h, w, mode in cases(RAFT.export_rule, sizes)
    ]
    assert traced not in [tuple(each) for each in given]
    assert len(set(traced)) == 2


@pytest.mark.parametrize(
    ("network", "size", "words"),
    [
        (
            RAFT.export_rule,
            (130, 160),
            "130×160, wanted for it sides of at least 64 that are multiples",
        ),
        (RAFT.export_rule, (56, 160), "the next is 64×160"),
        (VCN.export_rule, (128, 200), "multiples of 64; the next is 128×256"),
        (DDFlow.export_rule, (4, 64), "sides of at least 5; the next is 5×64"),
    ],
)
def test_a_size_that_is_none_is_refused_with_the_next(network, size, words):
    with pytest.raises(ArgumentError, match=words):
        choose_sizes("it", network, size)


def test_a_network_of_one_size_says_why():
    with pytest.raises(
        ArgumentError, match="vcn cannot be written with open sizes: it pools .*--size"
    ):
        choose_sizes("vcn", VCN.export_rule, None)


def test_what_a_file_takes():
    sizes = choose_sizes("it", RAFT.export_rule, None)
    assert sizes.take(128, 4096)
    assert not any(sizes.take(h, w) for h, w in ((120, 128), (128, 4104), (128, 132), (130, 136)))


def test_words():
    assert choose_sizes("it", RAFT.export_rule, (64, 72)).words() == "64×72"
    assert "heights 128 to 4096" in choose_sizes("it", RAFT.export_rule, None).words()


def test_the_cases_of_every_kind_of_file_by_hand():
    """Of an open file the least size, a wide and a tall one; each but the first lacks some pixels."""
    found = {
        name: cases(rule, choose_sizes("it", rule, size))
        for name, (rule, size) in zip(IDS, FILES, strict=True)
    }
    sintel, kitti = "sintel", "kitti"
    assert found["raft, open"] == [
        *((128, 128, sintel), (125, 128 + 32 - 5, sintel), (128 + 48 - 7, 128 + 8 - 2, kitti)),
    ]
    assert found["raft"] == [(64, 72, sintel), (61, 67, sintel), (57, 70, kitti)]
    assert [case[:2] for case in found["vcn"]] == [(128, 192), (125, 187), (65, 190)]
    assert [case[:2] for case in found["ddflow"]] == [(47, 63)] * 3


def test_an_open_file_is_traced_at_two_sides_above_the_least():
    assert traced_size(choose_sizes("it", RAFT.export_rule, None)) == (136, 144)
    assert traced_size(choose_sizes("it", RAFT.export_rule, (64, 72))) == (64, 72)


def test_words_and_values_of_sizes():
    some = Sizes(8, (128, 4096), (128, 128))
    assert some.is_open
    assert some.words() == "heights 128 to 4096, widths 128 to 128, multiples of 8"
    assert Sizes(1, (5, 5), (5, 9)).words() == "heights 5 to 5, widths 5 to 9"
    assert Sizes(1, (5, 5), (5, 9)).is_open
    assert not Sizes(1, (5, 5), (9, 9)).is_open
    assert some.as_dict() == {"stride": 8, "height": [128, 4096], "width": [128, 128]}
    assert not some.take(128, 136)
    for wrong in ((True, 64), (64.0, 64)):
        with pytest.raises(ArgumentError, match="wanted for it sides of at least"):
            choose_sizes("it", RAFT.export_rule, wrong)
