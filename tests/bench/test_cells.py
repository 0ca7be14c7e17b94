"""What is measured: every setting once, the reference first, and twins that differ in LCV alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lcv.bench.cells import Cell, Point, known_peers, offer_of, table_jobs
from lcv.errors import ArgumentError

POINT = Point(128, 136, 1, 3)


@pytest.fixture(scope="module")
def raft():
    return replace(offer_of("raft-small"), peers=("torchvision",), missing=())


@pytest.mark.parametrize("gpu", [False, True])
def test_every_cell_is_there_once_and_the_reference_comes_first(raft, gpu):
    jobs = table_jobs(raft, POINT, gpu=gpu)
    every = [cell for job in jobs for cell in job]
    assert len(every) == len({*every}) == len({cell.label for cell in every})
    assert [cell.reference for cell in every] == [True] + [False] * (len(every) - 1)
    assert every[0].label == "lcv, all-pairs, float32"
    assert {cell.point for cell in every} == {POINT}
    assert {cell.engine for cell in every} == ({"plain", "prepared"} if gpu else {"plain"})
    assert ("torchvision, tf32" in {cell.label for cell in every}) == gpu
    assert {cell.volume for cell in every if cell.peer is None} == {"all-pairs", "on-demand"}


def test_a_job_has_cells_that_differ_in_lcv_alone(raft):
    for job in table_jobs(raft, POINT, gpu=True):
        assert len({replace(c, lcv="", compared=True, reference=False) for c in job}) == 1
    kinds = [cell.lcv for cell in table_jobs(raft, POINT, gpu=True)[0]]
    assert kinds == ["unfolded", "none", "folded", "authors"]


def test_without_w_is_another_function_and_not_compared(raft):
    cells = table_jobs(raft, POINT, gpu=False)[0]
    assert {cell.lcv: cell.compared for cell in cells} == {
        "unfolded": True,
        "none": False,
        "folded": True,
        "authors": True,
    }


def test_compiled_peers_are_measured_if_asked_for(raft):
    labels = [c.label for job in table_jobs(raft, POINT, gpu=True, compiled=True) for c in job]
    assert labels[-1] == "torchvision, compiled bf16"


def test_a_network_is_asked_what_it_has():
    state = torch.get_rng_state()
    vcn = offer_of("vcn-small")
    assert torch.equal(torch.get_rng_state(), state)
    assert (vcn.lcv, vcn.volumes, vcn.iterates) == (("unfolded", "none"), ("local",), False)
    assert (vcn.peers, vcn.missing) == ((), ())
    (job,) = table_jobs(vcn, POINT, gpu=False)
    assert {cell.point.iters for cell in job} == {None}
    assert known_peers() == ["torchvision", "ptlflow"]


def test_a_factory_is_named_and_measured_as_it_is_first(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import lcv, torch\n"
        "def net():\n    return lcv.wrap(torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1)), after='0')\n"
    )
    (job,) = table_jobs(offer_of(f"{file}:net"), POINT, gpu=False)
    assert [cell.label for cell in job] == [
        "mine.py:net, float32",
        "mine.py:net, with LCV, float32",
        "mine.py:net, LCV folded, float32",
    ]
    assert all(cell.compared for cell in job)  # W = I


def test_a_peer_that_is_not_installed_is_missing(monkeypatch):
    monkeypatch.setattr("lcv.bench.cells.importlib.util.find_spec", lambda name: None)
    assert offer_of("raft-small").missing == ("torchvision", "ptlflow")
    assert offer_of("raft-small", ["ptlflow"]).missing == ("ptlflow",)
    assert offer_of("raft-small", []).missing == ()


def test_a_size_below_what_the_network_takes_is_refused(raft):
    with pytest.raises(ArgumentError, match="size is 40x60, but raft-small needs at least 57x57"):
        table_jobs(raft, Point(40, 60), gpu=False)


def test_all_jobs_on_a_gpu_in_their_order(raft):
    jobs = table_jobs(raft, POINT, gpu=True, compiled=True)
    assert [[cell.label for cell in job] for job in jobs] == [
        [
            "lcv, all-pairs, float32",
            "lcv, all-pairs, without LCV, float32",
            "lcv, all-pairs, LCV folded, float32",
            "lcv, all-pairs, LCV, authors' way, float32",
        ],
        ["lcv, all-pairs, tf32"],
        ["lcv, all-pairs, prepared fp16", "lcv, all-pairs, without LCV, prepared fp16"],
        ["lcv, all-pairs, prepared bf16"],
        ["lcv, on-demand, float32"],
        ["lcv, on-demand, prepared fp16"],
        ["torchvision, float32"],
        ["torchvision, tf32"],
        ["torchvision, bf16"],
        ["torchvision, compiled bf16"],
    ]
    theirs = jobs[-1][0]
    assert (theirs.lcv, theirs.volume, theirs.compared) == ("none", "", True)
    assert [cell.compared for cell in jobs[2]] == [True, False]
    on_cpu = table_jobs(raft, POINT, gpu=False, compiled=True)
    assert [cell.label for job in on_cpu[-2:] for cell in job] == [
        *("torchvision, float32", "torchvision, compiled float32"),
    ]


def test_what_is_not_said_of_a_point_and_a_cell():
    """One pair and 12 iterations, as RAFT is trained with."""
    assert Point(64, 72) == Point(64, 72, 1, 12)
    cell = Cell("raft-small", POINT, "none", "local")
    assert (cell.compared, cell.reference, cell.peer) == (True, False, None)


def test_an_offer_of_raft(raft):
    assert (raft.prepared, raft.least, raft.iterates) == (("fp16", "bf16"), 57, True)
    assert raft.volumes == ("all-pairs", "on-demand")
    assert offer_of("ddflow", []).prepared == ("float32", "bf16")
