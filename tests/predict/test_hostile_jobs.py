"""Job folders that a stranger prepared: refused in a sentence, or what they say is ignored."""

from __future__ import annotations

import os
import shutil

import pytest

from lcv.errors import FileError
from lcv.predict.done_log import DoneLog
from predict.small_jobs import FLOW, made, run
from testing.peak import costs

MOST_BYTES, MOST_SECONDS = 200 * 10**6, 5.0
LINE = '{"run": 1, "sequence": "walk", "pair": "frame_1", "made_from": [], "outputs": {%s}}\n'


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)


def test_no_hostile_job_costs_200_mb_or_5_s(tmp_path):
    for name in ("brackets", "sparse", "log", "line", "endless", "short"):
        (tmp_path / name / "done").mkdir(parents=True)
        (tmp_path / name / "job.json").write_text('{"lcv": "0", "warm_start": false}')
    (tmp_path / "brackets" / "job.json").write_text("[" + "[]," * 20_000_000 + "1]")
    sparse(tmp_path / "sparse" / "job.json", 3 * 10**9)
    sparse(tmp_path / "log" / "done" / "x.jsonl", 3 * 10**9)
    many = ",".join(f'"{n}": 1' for n in range(1_500_000))
    (tmp_path / "line" / "done" / "x.jsonl").write_text(LINE % many)
    (tmp_path / "short" / "done" / "x.jsonl").write_text("{\n" * 3_000_000)
    (tmp_path / "endless" / "done" / "x.jsonl").write_text(LINE.replace("1,", "9" * 900_000 + ","))
    jobs = [("job", path) for path in sorted(tmp_path.iterdir())]
    for (_, path), (outcome, growth, seconds) in zip(jobs, costs(jobs), strict=True):
        assert outcome.startswith(f"{path}") or outcome == "read", f"{path.name}: {outcome[:200]}"
        assert len(outcome) < 500
        assert growth < MOST_BYTES, f"{path.name}: {growth / 10**6:.0f} MB"
        assert seconds < MOST_SECONDS, f"{path.name}: {seconds:.1f} s"


def test_a_log_of_other_lines_is_read_no_further_than_a_thousand(tmp_path):
    for strange, known in ((999, 1), (1000, 0)):
        folder = tmp_path / str(strange)
        folder.mkdir()
        (folder / "x.jsonl").write_text("{\n" * strange + LINE % '"flow/a.flo": 3')
        log = DoneLog(folder)
        for _ in range(2):
            log.read()
            assert len(log.entries) == known


def test_a_run_of_a_great_number_is_not_believed(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "plain", outputs=FLOW)
    out = tmp_path / "out"
    shutil.copytree(tmp_path / "plain", out)
    (log,) = (out / "done").iterdir()
    log.write_text(log.read_text().replace('"run": 1', '"run": ' + "9" * 4300))
    (out / "flow" / "walk" / "frame_2.flo").unlink()
    assert run(predictor, walk, out, outputs=FLOW).done == 1
    assert made(out) == made(tmp_path / "plain")


@pytest.mark.parametrize("name", ["job.json", "strategy/72x64.json"])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(predictor, walk, tmp_path, name):
    run(predictor, walk, tmp_path / "out", outputs=FLOW)
    (tmp_path / "out" / "flow" / "walk" / "frame_2.flo").unlink()
    (tmp_path / "out" / name).unlink()
    os.mkfifo(tmp_path / "out" / name)
    with pytest.raises(
        FileError, match=rf"{name}: cannot be read: it is not an ordinary file\. Choose"
    ):
        run(predictor, walk, tmp_path / "out", outputs=FLOW)
