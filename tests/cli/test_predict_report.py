"""What `lcv predict` says when it is done, and which options it counts as given."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from lcv.cli import predict
from lcv.cli.main import main
from lcv.cli.predict_inputs import Inputs
from lcv.data.formats.decoder import Source
from lcv.errors import ArgumentError, LcvError
from lcv.predict.job import Summary
from lcv.predict.selection import Shard
from lcv.predict.sources import Live


def reported(capsys, summary, scale=None, shard=Shard(1, 1)):  # noqa: B008
    predict._report(Namespace(output="out", scale=scale, shard=shard), summary)
    return capsys.readouterr().out.splitlines()


FAILED = {("walk", 3), ("walk", 4)}


@pytest.mark.parametrize(
    ("summary", "lines"),
    [
        (Summary(done=1), ["1 pair done: out"]),
        (Summary(done=2, there=1234), ["2 pairs done, 1,234 done before: out"]),
        (Summary(there=1), ["nothing left to do: the pair was done before: out"]),
        (Summary(there=3), ["nothing left to do: all 3 pairs were done before: out"]),
        (
            Summary(there=3, clips=[Path("a.mp4")]),
            ["0 pairs done, 3 done before: out", "clip: a.mp4"],
        ),
        (
            Summary(there=3, failed=FAILED, failures={"x": LcvError("x")}),
            ["0 pairs done, 3 done before, 2 failed: out"],
        ),
        (
            Summary(done=3, notes=Counter({"a cut": 1, "tiles": 2}), clips=[Path("a.mp4")]),
            ["a cut", "tiles (2 pairs)", "3 pairs done: out", "clip: a.mp4"],
        ),
        (
            Summary(done=3, scales={5.0}),
            [
                "3 pairs done: out",
                "full colour is 5 px; --scale 5 draws others in the same colours",
            ],
        ),
        (
            Summary(done=3, scales={5.0, 2.5}),
            [
                "3 pairs done: out",
                "full colour is 2.5 to 5 px; --scale 5 --overwrite draws all in the same colours",
            ],
        ),
    ],
)
def test_what_is_said_at_the_end(summary, lines, capsys):
    assert reported(capsys, summary) == lines
    if summary.scales:
        assert reported(capsys, summary, scale=5.0) == lines[:1], "who gave the scale knows it"


def test_a_shard_says_which_it_is(capsys):
    assert reported(capsys, Summary(done=1), shard=Shard(2, 3)) == ["shard 2/3: 1 pair done: out"]


@pytest.mark.parametrize("count", [1, 20, 21, 25])
def test_twenty_failures_are_named_and_the_others_counted(count):
    reasons = {f"reason {n}": LcvError("x") for n in range(count)}
    shown = [f"  reason {n}" for n in range(min(count, 20))]
    shown += [f"  and {count - 20} more"] * (count > 20)
    files, camera = Inputs(()), Inputs((Live("room", Source("camera", "0")),))

    def told(summary, output="out", overwrite=False, inputs=files):
        chosen = Namespace(output=output, overwrite=overwrite)
        return predict._failures(chosen, inputs, summary).splitlines()

    assert told(Summary(failures=reasons)) == ["nothing could be done:", *shown]
    hint = "Fix this, then run the same command; finished pairs are kept."
    for some in (Summary(done=1, failures=reasons), Summary(there=1, failures=reasons)):
        assert told(some) == ["these could not be done:", *shown, hint]
        again = told(some, overwrite=True)[-1]
        assert "run the same command without --overwrite;" in again, "it would start over"
        for lost in (told(some, "flow.mp4"), told(some, inputs=camera)):
            assert lost == ["these could not be done:", *shown], "this cannot be resumed"


def test_several_failures_are_told_a_line_each(tmp_path, capsys):
    for shot in ("one", "two"):
        (tmp_path / shot).mkdir()
        for name in ("1.png", "2.png"):
            (tmp_path / shot / name).write_bytes(b"no picture")
    words = ["predict", str(tmp_path), "-o", str(tmp_path / "out"), "--model", "raft-small"]
    assert main(words) == 2
    first, *lines = capsys.readouterr().err.splitlines()[-3:]
    assert first == "lcv: nothing could be done:"
    for line, shot in zip(lines, ("one", "two"), strict=True):
        assert line.startswith(f"  {tmp_path / shot / '1.png'}: ")


def test_only_what_was_said_counts_as_given():
    names = ["every", "shard", "warm_start", "frames", "start"]
    unsaid = Namespace(every=1, shard=Shard(1, 1), warm_start=False, frames=None, start=0)
    assert [*predict._given(unsaid, names)] == []
    said = Namespace(every=2, shard=Shard(1, 2), warm_start=True, frames=3, start=1)
    assert [*predict._given(said, names)] == [
        "--every",
        "--shard",
        "--warm-start",
        "--frames",
        "--start",
    ]


def test_without_an_option_nothing_special_is_asked_for():
    chosen = predict._parser().parse_args(["a.png", "b.png", "-o", "out"])
    switches = ("look", "overlay", "backward", "occlusion", "warp_error", "clip", "overwrite")
    assert not any(getattr(chosen, name) for name in (*switches, "warm_start", "strict", "quiet"))
    assert (chosen.ray, chosen.start, chosen.every) == (None, 0, 1)
    assert predict._parser().parse_args(["a", "-o", "o", "--ray"]).ray == "local"
    for words in (["-o", "out"], ["a.png"]):
        with pytest.raises(ArgumentError, match="missing: "):
            predict._parser().parse_args(words)
