"""What a job is made of, and what came of its parts counted together."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

from lcv.errors import LcvError
from lcv.predict.job import Job, Listener, Summary
from lcv.predict.matching import Wanted
from lcv.predict.selection import Selection, Shard
from lcv.provenance import state_sha256
from lcv.version import __version__


def test_what_workers_did_adds_up():
    bad, worse = LcvError("bad"), LcvError("worse")
    one = Summary(2, 3, {("a", 1)}, {"bad": bad}, {2.0}, [Path("a.mp4")], Counter(cut=1))
    one.add(Summary(10, 20, {("b", 0)}, {"worse": worse}, {4.0}, [], Counter(cut=2, tiles=1)))
    assert one == Summary(
        12,
        23,
        {("a", 1), ("b", 0)},
        {"bad": bad, "worse": worse},
        {2.0, 4.0},
        [Path("a.mp4")],
        Counter(cut=3, tiles=1),
    )


def test_a_job_asks_for_nothing_by_itself():
    job = Job((), None, ())
    assert (job.wanted, job.scale, job.truth) == (Wanted(False, False, False), None, None)
    assert not any((job.clip, job.arrows, job.warm_start, job.strict, job.overwrite))
    assert job.selection == Selection(Fraction(0), None, 1, None)
    assert job.shard == Shard(1, 1)
    assert Summary() == Summary(0, 0, set(), {}, set(), [], Counter())


def test_the_settings_are_all_that_decides_numbers(make):
    predictor = make(iters=3, pad="kitti", max_side=90)
    job = Job((), None, (), scale=5.0, warm_start=True, selection=Selection(every=4))
    wanted = {
        "lcv": __version__,
        "model": "raft-small",
        "source": predictor.model.spec.source,
        "weights": state_sha256(predictor.model),
        "iters": 3,
        "pad": "kitti",
        "precision": "float32",
        "max_side": 90,
        "every": 4,
        "warm_start": True,
        "scale": 5.0,
    }
    assert job.settings(predictor) == wanted
    assert Job((), None, ()).settings(predictor)["scale"] == "auto"


def test_one_who_does_not_listen_hears_nothing():
    listener = Listener()
    listener.say("a")
    listener.begin("a", None)
    listener.advance()
