"""The procedural source: how fast it is, how exact, and what its motion is like.

    python benchmarks/procedural.py [JOB …] [--device cuda] [--kinds mixed space …]

time        milliseconds for 12 pairs of 368×496, made 96 at a time (one at a time on a CPU), with
            the bound that the mixture must keep on an H200: 15 ms, or exit code 1. The fastest of
            several rounds counts: whatever else the machine does only adds to a time.
agree       the GPU kernels against the renderer in torch, kind by kind, or exit code 1
exact       there and back, the warped second frame, and occlusion at 8 times the resolution, kind
            by kind, with the bounds they must keep, or exit code 1
statistics  |flow|, slope of affine fits and what they leave over in windows of 32×32 without
            boundaries, hidden and departed pixels; and the same for the pairs in --real FOLDER

Without a job: time. Textures are procedural, or photographs with --textures FOLDER.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic import RECIPES, Mixture, Recipe, generate, load_bank, procedural_bank
from lcv.data.synthetic import render as torch_render
from lcv.data.synthetic.backend import choose_backend, renderer
from lcv.data.synthetic.development import DEVELOPMENT
from lcv.data.synthetic.draws import SceneDraws, plan_of
from lcv.data.synthetic.effects import apply_effects
from lcv.data.synthetic.mixing import split, together
from lcv.data.synthetic.scene import Scene, draw_scene

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from testing.exactness import agreement, exactness

BOUND = 15.0
KINDS = ("training", "gentle", "space", "street", "mixed")
WINDOW, STRIDE, JUMP = 32, 16, 0.5


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"{', '.join(JOBS)} (time)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--backend", default="auto", help="auto, torch or triton (auto)")
    parser.add_argument("--kinds", nargs="+", help="recipes or development sets")
    parser.add_argument("--size", type=int, nargs=2, default=(368, 496), metavar=("H", "W"))
    parser.add_argument("--group", type=int, help="pairs made at a time (96; 1 on a CPU)")
    parser.add_argument("--pairs", type=int, default=16, help="of each kind, to judge by (16)")
    parser.add_argument("--factor", type=int, default=8, help="exact: the fine render's (8)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument(
        "--tiles", action="store_true", help="time: other tiles of the kernels, too"
    )
    parser.add_argument("--textures", help="a folder of photographs")
    parser.add_argument("--real", help="statistics: a folder with datasets")
    chosen = parser.parse_args()
    unknown = set(chosen.jobs) - set(JOBS)
    if unknown:
        parser.error(f"no job {', '.join(sorted(unknown))}; there are {', '.join(JOBS)}")
    torch.set_num_threads(chosen.threads)
    torch.set_grad_enabled(False)
    chosen.device = str(torch.empty(0, device=chosen.device).device)
    chosen.size = tuple(chosen.size)
    if chosen.textures:
        chosen.bank = load_bank(chosen.textures, device=chosen.device)
    else:
        chosen.bank = procedural_bank(device=chosen.device)
    print(f"{chosen.device}, torch {torch.__version__}, {chosen.size[0]}×{chosen.size[1]}")
    return max([JOBS[job](chosen) for job in chosen.jobs or ("time",)])


def kind(name: str) -> Recipe | Mixture:
    return RECIPES[name] if name in RECIPES else DEVELOPMENT[name]


def fastest(chosen: argparse.Namespace, job, rounds: int | None = None) -> float:
    """Seconds of the fastest round after two that do not count."""
    wait = torch.cuda.synchronize if chosen.device.startswith("cuda") else (lambda: None)
    times = []
    for number in range((rounds or chosen.rounds) + 2):
        wait()
        start = time.perf_counter()
        job(number)
        wait()
        times.append(time.perf_counter() - start)
    return min(times[2:])


def time_it(chosen: argparse.Namespace) -> int:
    on_cuda = chosen.device.startswith("cuda")
    group = chosen.group or (96 if on_cuda else 1)
    backend = choose_backend(chosen.backend, torch.device(chosen.device))
    print(f"time: ms for 12 pairs, made {group} at a time, rendered by {backend}")
    rates = {}
    for name in chosen.kinds or KINDS:
        recipe = kind(name)

        def whole(number: int, recipe: Recipe | Mixture = recipe) -> None:
            indices = range(number * group, (number + 1) * group)
            generate(
                *(recipe, 1, indices, chosen.size, chosen.device),
                textures=chosen.bank,
                backend=chosen.backend,
            )

        def per_12(job) -> float:
            return 1e3 * fastest(chosen, job) * 12 / group

        scene = mixed_scene(chosen, recipe, group)
        painter = renderer(scene, chosen.backend)
        views = [painter.render(0), painter.render(1)]
        path = [painter.follow(views[t], 1 - t)[0] for t in (0, 1)]
        effects = recipe.parts[0][1]
        rates[name] = per_12(whole)
        parts = {
            "parameters": per_12(lambda _, r=recipe: mixed_scene(chosen, r, group)),
            "frames": per_12(lambda _, p=painter: [p.render(0), p.render(1)]),
            "truth": per_12(lambda _, p=painter, v=views: [p.follow(v[t], 1 - t) for t in (0, 1)]),
            "effects": per_12(
                lambda _, e=effects, v=views, p=path: apply_effects(
                    e,
                    SceneDraws(1, range(group), chosen.device, plan_of("effects", e, 2)),
                    [view.image for view in v],
                    p,
                    backend,
                )
            ),
        }
        detail = ", ".join(f"{part} {value:.2f}" for part, value in parts.items())
        print(f"  {name:12s} {rates[name]:7.2f}   ({detail})", flush=True)
    if on_cuda:
        print(f"  peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    if chosen.tiles and backend == "triton":
        _other_tiles(chosen, group)
    if not on_cuda or "mixed" not in rates or chosen.size != (368, 496):
        return 0
    kept = rates["mixed"] <= BOUND
    print(f"  bound {BOUND:.0f} ms for the mixture: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1


def _other_tiles(chosen: argparse.Namespace, group: int) -> None:
    from lcv.data.synthetic import render_triton

    scene = mixed_scene(chosen, RECIPES["mixed"], group)
    before = render_triton.BLOCK_X, render_triton.BLOCK_Y, render_triton.WARPS
    for tile in (before, (32, 4, 4), (16, 8, 4), (32, 8, 8)):
        render_triton.BLOCK_X, render_triton.BLOCK_Y, render_triton.WARPS = tile
        painter = renderer(scene, "triton")
        views = [painter.render(0), painter.render(1)]
        frames = fastest(chosen, lambda _, p=painter: [p.render(0), p.render(1)], 5)
        truth = fastest(
            chosen, lambda _, p=painter, v=views: [p.follow(v[t], 1 - t) for t in (0, 1)], 5
        )
        each = 12e3 / group
        print(f"  tile {tile}: frames {frames * each:.2f}, truth {truth * each:.2f}", flush=True)
    render_triton.BLOCK_X, render_triton.BLOCK_Y, render_triton.WARPS = before


def mixed_scene(
    chosen: argparse.Namespace,
    recipe: Recipe | Mixture,
    count: int,
    size: tuple[int, int] | None = None,
) -> Scene:
    """The parameters of `count` pairs, kind by kind."""
    scenes = []
    for one, places in split(recipe, 1, range(count)):
        draws = SceneDraws(1, places, chosen.device, plan_of("scene", one, 2))
        scenes.append(draw_scene(one, draws, size or chosen.size, 2, chosen.bank))
    return together(scenes)


def agree(chosen: argparse.Namespace) -> int:
    """With a few scenes of the mixture beside each kind, the kernels are compiled only twice."""
    from lcv.data.synthetic import render_triton

    size = (128, 160)
    print(f"agree: Triton against torch, {chosen.pairs} pairs a kind at {size[0]}×{size[1]}")
    bad = 0
    for name in chosen.kinds or (*KINDS[:-1], "cylinders"):
        recipe = kind(name)
        others = [mixed_scene(chosen, one, 2, size) for _, one in RECIPES["mixed"].parts]
        scene = together([mixed_scene(chosen, recipe, chosen.pairs, size), *others])
        pair = (torch_render.Renderer(scene), render_triton.Renderer(scene))
        for here, there in ((0, 1), (1, 0)):
            found = agreement(*pair, here, there)
            fine = found.image < 0.5 and found.flow < 1e-3
            fine = fine and max(found.layer, found.hidden, found.gone) < 1e-4
            bad += not fine
            print(
                f"  {name:12s} {here} → {there}  {found}  {'fine' if fine else 'WRONG'}", flush=True
            )
    return int(bad > 0)


def exact(chosen: argparse.Namespace) -> int:
    print(f"exact: {chosen.pairs} pairs a kind without effects, occlusion at {chosen.factor} times")
    print("  kind         back px  grey levels  away from outlines  occlusion  compared")
    bad = 0
    for name in chosen.kinds or (*KINDS[:-1], "cylinders"):
        found = []
        for index in range(chosen.pairs):
            (_, one), *_ = kind(name).without_effects().parts
            draws = Draws(2, [index], chosen.device)
            scene = draw_scene(one, draws, chosen.size, 2, chosen.bank)
            found.append(exactness(scene, chosen.factor))
        back = max(one.back for one in found)
        grey, apart, hidden, away = (
            sum(getattr(one, part) for one in found) / len(found)
            for part in ("grey", "grey_away", "hidden", "away")
        )
        fine = back < 1e-3 and grey <= 1 and hidden >= 0.995
        bad += not fine
        print(
            f"  {name:12s} {back:.1e}  {grey:11.2f}  {apart:18.2f}  {hidden:9.5f}  {away:8.2f}  "
            f"{'fine' if fine else 'WRONG'}",
            flush=True,
        )
    return int(bad > 0)


def statistics(chosen: argparse.Namespace) -> int:
    print(f"statistics: {chosen.pairs} pairs a kind; windows {WINDOW}×{WINDOW} without boundaries")
    print(
        f"  {'':30s} |flow| p5/25/50/75/95          > 40   slope p50/90   left over p50/90/97   "
        "hidden  out"
    )
    if chosen.real:
        _real(chosen.real)
    for name in chosen.kinds or (*KINDS, *DEVELOPMENT):
        flows, hidden, out = [], 0.0, 0.0
        step = chosen.group or 4
        for first in range(0, chosen.pairs, step):
            indices = range(first, min(first + step, chosen.pairs))
            made = generate(
                *(kind(name).without_effects(), 7, indices, chosen.size, chosen.device),
                textures=chosen.bank,
                backend=chosen.backend,
            )
            flows += list(made.flow.cpu())
            hidden += made.occluded.float().mean((1, 2, 3)).sum().item() / chosen.pairs
            out += made.out_of_frame.float().mean((1, 2, 3)).sum().item() / chosen.pairs
        known = [torch.ones(chosen.size, dtype=torch.bool)] * len(flows)
        print(f"  {name:30s} {describe(flows, known)}   {hidden:.3f}  {out:.3f}", flush=True)
    return 0


def _real(folder: str) -> None:
    import numpy as np

    from lcv.errors import LcvError
    from lcv.evaluate.sources import records_in

    for place in sorted(Path(folder).iterdir()):
        try:
            records = list(records_in([str(place)]))
        except LcvError:
            continue  # films and the like have no truth
        for record in records:
            sample = record.read()
            if sample.flow is None:
                continue
            flow = torch.from_numpy(np.array(sample.flow)).movedim(2, 0).float()
            known = torch.from_numpy(np.array(sample.valid))
            name = "/".join(Path(record.image1).parts[-2:])
            print(f"  {name[-30:]:30s} {describe([flow], [known])}", flush=True)


def describe(flows: list[Tensor], known: list[Tensor]) -> str:
    """|flow|, the slope of affine fits and what they leave over; each flow (2, h, w)."""
    length = torch.cat([flow.norm(dim=0)[at] for flow, at in zip(flows, known, strict=True)])
    fits = [affine_fits(flow, at) for flow, at in zip(flows, known, strict=True)]
    slope, left = (torch.cat(parts) for parts in zip(*fits, strict=True))

    def at(values: Tensor, *shares: float) -> str:
        if not len(values):
            return "–"
        ranked = values.sort().values
        return "/".join(f"{ranked[int(share * (len(ranked) - 1))]:.3f}" for share in shares)

    return (
        f"{at(length, 0.05, 0.25, 0.5, 0.75, 0.95):30s} {(length > 40).float().mean():.3f}  "
        f"{at(slope, 0.5, 0.9):14s} {at(left, 0.5, 0.9, 0.97):20s}"
    )


def affine_fits(flow: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Of every window that is half known and has no jump above half a pixel between neighbours:
    the length of the 2×2 slope of its affine fit, and the root mean square left over in pixels."""
    flow = torch.where(known, flow, 0.0)
    jump = torch.zeros(known.shape)
    across = (flow[:, :, 1:] - flow[:, :, :-1]).abs().amax(0) * (known[:, 1:] & known[:, :-1])
    down = (flow[:, 1:] - flow[:, :-1]).abs().amax(0) * (known[1:] & known[:-1])
    jump[:, 1:] = across
    jump[1:] = torch.maximum(jump[1:], down)

    def windows(values: Tensor) -> Tensor:
        tiles = values.unfold(0, WINDOW, STRIDE).unfold(1, WINDOW, STRIDE)
        return tiles.reshape(-1, WINDOW * WINDOW).double()

    weight, edge = windows(known.float()), windows(jump).amax(1)
    kept = (edge < JUMP) & (weight.mean(1) > 0.5)
    weight, values = weight[kept], torch.stack([windows(part)[kept] for part in flow], -1)
    line = torch.arange(WINDOW).double() - (WINDOW - 1) / 2
    ones = torch.ones(WINDOW * WINDOW).double()
    basis = torch.stack((line.repeat(WINDOW), line.repeat_interleave(WINDOW), ones), 1)
    weighted = weight[..., None] * basis  # (windows, 1024, 3)
    normal = weighted.mT @ basis + 1e-9 * torch.eye(3)
    solution = torch.linalg.solve(normal, weighted.mT @ values)  # (windows, 3, 2)
    rest = ((values - basis @ solution) ** 2).sum(-1) * weight
    left = (rest.sum(1) / weight.sum(1)).sqrt()
    return solution[:, :2].flatten(1).norm(dim=1).float(), left.float()


JOBS = {"time": time_it, "agree": agree, "exact": exact, "statistics": statistics}

if __name__ == "__main__":
    sys.exit(main())
