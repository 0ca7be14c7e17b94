"""A whole run: build or resume, step, log, validate, save, leave in good order."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcv.errors import ArgumentError, LcvError
from lcv.models.cards import Card, save_weights
from lcv.train.batches import Source, TrainBatch, make_source
from lcv.train.checkpoint import Folder, Position, read
from lcv.train.config import TrainConfig
from lcv.train.distributed import Processes, check_device, join, leave
from lcv.train.interrupts import interrupts
from lcv.train.kept import Kept
from lcv.train.log import Listener, Log, read_log
from lcv.train.network import freeze_batch_norm, make_model, settled
from lcv.train.optim import Optimisers, rate_at
from lcv.train.origin import card_of, last_scores, start_of
from lcv.train.resume import check_passes, check_resumed, judged_alike
from lcv.train.step import DTYPES, NEVER, Step
from lcv.train.validate import Judged, Validation
from lcv.train.w_summary import w_summary
from lcv.train.writer import writer


class NotFinite(LcvError):
    """A loss or gradient was not finite; the message names the sample."""


def run(
    config: TrainConfig,
    resume: str | None = None,
    device: str | None = None,
    listeners: tuple[Listener, ...] = (),
    until: int | None = None,
    minutes: float | None = None,
) -> nn.Module:
    """Train as configured; returns the model, with averaged weights if `ema` is on.

    resume:  None (the folder must be new), "auto" (go on from the folder's newest checkpoint, or
             begin) or a checkpoint's path; what may change by then is said in `lcv.train.resume`
    until:   leave, with a checkpoint, after this step though more are configured
    minutes: leave likewise when so many have passed since the call
    Told to stop (SIGTERM, Ctrl-C), it saves and returns; a run that was at its last step anyway is
    completed, and then raises KeyboardInterrupt.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    processes = join(device)
    training: Run | None = None
    try:
        check_device(config, processes.device)
        with writer(config.folder, processes):
            training = Run(config, processes, resume, listeners)
            return training.go(until, deadline)
    finally:
        if training is not None:
            training.step.let_go()
        leave()


class Run:
    """A run that can go to its end by itself (`go`), or step by step as somebody else says.

    source, kept: batches and validation pairs to share with runs of the same data
    """

    def __init__(
        self,
        config: TrainConfig,
        processes: Processes,
        resume: str | None,
        listeners: tuple[Listener, ...] = (),
        source: Source | None = None,
        kept: Kept | None = None,
    ) -> None:
        torch.manual_seed(config.seed)
        self.model, notes = make_model(config)
        config, more = settled(config, self.model)
        notes += more
        self.config, self.processes = config, processes
        self.folder = Folder(config.folder)
        path, found, self.notes = self._checkpoint_to_resume(resume)
        dtype = DTYPES[config.precision]
        self.validation = Validation(config, processes, kept)
        self.validation.check_best()
        self.source = make_source(config, processes, dtype) if source is None else source
        self.model.to(device=processes.device, dtype=dtype).train()
        if config.model.freeze_batch_norm:
            freeze_batch_norm(self.model)
        if found is not None:
            self.notes += check_passes(found, config, processes.world, self.model, path)
        self.optimisers = Optimisers(
            self.model, config.optim, config.steps, config.graph, config.first_step
        )
        self.position = Position(config.first_step)
        if config.first_step:
            notes.append(
                f"begins after step {config.first_step}, which was taken elsewhere; the moments of the "
                f"optimiser{' and the average' * bool(config.ema)} begin anew"
            )
        self.start: Card | None = None
        if found is not None:
            self._restore(found)
        if processes.is_first and self.start is None:
            self.start = start_of(config, notes)
        self.step = Step(self.model, self.optimisers, config, processes)
        if found is not None and self.step.average is not None:
            self.step.average.model.load_state_dict(found.get("average", found["model"]))
        if processes.is_first:
            self.folder.prepare(config.as_dict())
            path = self.folder.run / "log.jsonl"
            self.log = Log(path, self.position.step, listeners)
            for note in notes if found is None else self.notes:
                self.log.write("note", self.position.step, text=note)
        if found is not None:
            self.notes = [*found.get("notes", []), *self.notes]
        self._since, self._began = self.position.step, time.perf_counter()
        processes.wait()

    @property
    def result(self) -> nn.Module:
        """The network to validate and to keep: the average of the weights, if there is one."""
        return self.model if self.step.average is None else self.step.average.model

    def _checkpoint_to_resume(
        self, resume: str | None
    ) -> tuple[Path, dict[str, Any] | None, list[str]]:
        """Where it is, its content, and what there is to note of settings that differ from its own."""
        nothing = Path(), None, list[str]()
        own = resume is not None and (resume == "auto" or self.folder.has(resume))
        if not own and self.folder.newest() is not None:
            other = "" if resume is None else f", and {resume} is none of its checkpoints"
            raise ArgumentError(
                f"{self.folder.run}: holds a run already{other}; resume it (--resume auto) or choose "
                f"another --folder"
            )
        if resume is None:
            return nothing
        found = self.folder.newest() if resume == "auto" else (Path(resume), read(resume))
        if found is None:
            return nothing
        path, content = found
        return path, content, check_resumed(content, self.config, path)

    def _restore(self, content: dict[str, Any]) -> None:
        self.model.load_state_dict(content["model"])
        self.optimisers.load(content["optimisers"])
        best = content["best"] if judged_alike(content, self.config) else None
        self.position = Position(content["step"], best)
        if content.get("start") is not None:
            self.start = Card(**content["start"])

    def go(self, until: int | None = None, deadline: float = math.inf) -> nn.Module:
        last = min(until or self.config.steps, self.config.steps)
        with interrupts() as interrupted:

            def told_to_stop() -> bool:
                return self.processes.any(bool(interrupted) or time.monotonic() > deadline)

            batches = self.source.batches(self.position.step)
            self.begin()
            while self.position.step < last and not told_to_stop():
                self.take(self._next(batches))
                self.attend(last)
            self.finish()
        if interrupted and self.position.step == self.config.steps:
            raise KeyboardInterrupt  # the run is done, but whoever called it must not go on
        return self.result

    def begin(self) -> None:
        """The clock by which speed is shown starts."""
        self._since, self._began = self.position.step, time.perf_counter()

    def take(self, batch: TrainBatch) -> None:
        """One step, without waiting for the device."""
        self.step(batch, self.position.step)
        self.position.step += 1

    def is_due(self, last: int) -> bool:
        """Whether `attend` has anything to do after the step just taken."""
        now, config = self.position.step, self.config
        every = [config.log_every, config.save_every, config.validate_every]
        return now == last or any(each and now % each == 0 for each in every)

    def attend(self, last: int) -> None:
        """Log, validate and save, if it is time for any of them; `last` is the last step to take."""
        now = self.position.step
        if now % self.config.log_every == 0 or now == last:
            self._report()
            self.begin()
        steps_end = time.perf_counter()
        if self.config.validate_every and now % self.config.validate_every == 0:
            self._validate()
        if now % self.config.save_every == 0 and now < last:
            self.save()
        self._began += time.perf_counter() - steps_end  # the speed shown is that of steps

    def finish(self) -> None:
        """After the last step, or when told to stop: save, and write the weights.

        Those of a run that is not done go into stopped.safetensors, in half precision, for whoever
        goes on without the checkpoint (`first_step`); the card tells the step.
        """
        self._check_finite()
        every = self.config.validate_every
        done = self.position.step == self.config.steps
        if done and every and self.config.steps % every:
            self._validate()
        self.save()
        if self.processes.is_first:
            self._write_weights(done)
        # Leave together: a group is torn down in good order while all of its processes live.
        self.processes.wait()

    def _next(self, batches: Iterator[TrainBatch]) -> TrainBatch:
        """The next batch; a file that cannot be read ends the run, but not what was learned."""
        try:
            return next(batches)
        except LcvError:
            self.save()
            raise

    def _report(self) -> None:
        """Log the steps since the last report."""
        self._check_finite()
        values: dict[str, Any] = {**self.step.read()}
        if not self.processes.is_first:
            return
        seconds = time.perf_counter() - self._began
        done = self.position.step
        values["pairs_per_second"] = (done - self._since) * self.config.batch / seconds
        values["lr"] = rate_at(
            self.config.optim, done - 1, self.config.steps, self.config.first_step
        )
        if self.processes.device.type == "cuda":
            values["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
        values |= w_summary(self.model)
        self.log.write("train", done, **values)

    def _validate(self) -> None:
        if not self.config.validation:
            return
        show = self._show if self.processes.is_first and self.log.viewers else None
        results = self.validation(self.result, show)
        if self.processes.is_first:
            self.log.write("validation", self.position.step, **results)
            if self.validation.per_pair is not None:
                path = self.folder.run / "development.json"
                self.validation.per_pair.write(path, self.position.step)
        score = results.get(self.config.best)
        if score is not None and (self.position.best is None or score < self.position.best):
            self.position.best = score
            self.save("best")
        self.processes.wait()

    def _show(self, name: str, pair: Judged) -> None:
        from lcv.train.pictures import judged_picture  # few runs are watched

        self.log.picture(name, self.position.step, judged_picture(pair))

    def save(self, *names: str) -> None:
        """Save what is known to be good: waits for the device and for its verdict."""
        self._check_finite()
        if not self.processes.is_first:
            return
        keep = self.config.keep_every
        if keep and self.position.step % keep == 0:
            names = (*names, f"step-{self.position.step}")
        self.folder.save(self._content(), *names)

    def _content(self) -> dict[str, Any]:
        average = self.step.average
        return {
            "format": "lcv training 1",
            "step": self.position.step,
            "best": self.position.best,
            "model": self.model.state_dict(),
            **({} if average is None else {"average": average.model.state_dict()}),
            "optimisers": self.optimisers.state(),
            "config": self.config.as_dict(),
            "processes": self.processes.world,
            "start": None if self.start is None else asdict(self.start),
            "notes": self.notes,
            "random": torch.get_rng_state(),
        }

    def _check_finite(self) -> None:
        """Stop if a step was not finite, naming the samples that made it so.

        No update has been made since, so the weights are those that met the samples.
        """
        failed = int(self.step.failed_at)
        if failed == NEVER:
            return
        guilty = self._find_guilty(failed)
        self.position.step = failed
        if self.processes.is_first:
            self.folder.save(self._content())
            self.log.write("failure", failed, samples=guilty)
        together = self.processes.gather(self.source.names(failed))
        named = ", ".join(guilty) if guilty else "none alone; together: " + ", ".join(together)
        raise NotFinite(
            f"step {failed}: the loss or its gradient is not finite. Samples: {named}. The "
            f"weights before that step are saved; leave the sample out (data.exclude) and resume, "
            f"or go on at a lower rate: --resume {self.folder.path('last')} and another --folder."
        )

    def _find_guilty(self, step: int) -> list[str]:
        """The samples, of all processes, that fail alone."""
        guilty = []
        self.step.number.fill_(step)  # what is drawn for a step is drawn again
        for name, batch in self.source.one_by_one(step):
            self.optimisers.zero_grad()
            with self.step.alone():  # else one's gradient would be everybody's
                loss, _ = self.step._forward(batch)
                loss.backward()
            gradients = [p.grad for p in self.optimisers.parameters if p.grad is not None]
            fine = torch.isfinite(loss) & torch.isfinite(nn.utils.get_total_norm(gradients))
            if not bool(fine):
                guilty.append(name)
        return self.processes.gather(guilty)

    def _write_weights(self, done: bool) -> None:
        scores = last_scores(read_log(self.log.path) if self.log.path.exists() else [], self.config)
        card = card_of(self.config, self.start, self.position.step, scores, self.notes)
        files = {"weights" if done else "stopped": (self.result, card)}
        if done and self.step.average is not None:
            raw = replace(card, scores={}, notes=[*card.notes, "of the last step, not averaged"])
            files["last-step"] = self.model, raw
        for name, (model, said) in files.items():
            path = self.folder.run / f"{name}.safetensors"
            save_weights(model, path, said, half=self.config.half or not done, overwrite=True)
        if done:
            for leftover in self.folder.run.glob("stopped.*"):
                leftover.unlink()
