"""The registry of stresses: the paper's points, the same frames for everyone, rules under a patch."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.studies import paper
from lcv.studies.patch_file import Patch
from lcv.studies.robustness.pasted import PATCH_SIZES, RULES, with_patches
from lcv.studies.robustness.registry import STRESSES, Pairs, choose, seed_of
from testing.painted import texture

PATCH = Patch("p", (torch.arange(3 * 24 * 24) % 256).float().view(3, 24, 24))
H, W = 120, 150


@pytest.fixture
def pairs():
    first = torch.cat([texture(H, W, seed) for seed in (0, 1)]).clamp(0, 255)
    second = torch.cat([texture(H, W, seed) for seed in (2, 3)]).clamp(0, 255)
    valid = torch.ones(2, 1, H, W, dtype=torch.bool)
    valid[:, :, :, :10] = False
    return Pairs(first, second, torch.full((2, 2, H, W), 3.0), valid, (4, 9))


def one(pairs, k):
    parts = (pairs.image1, pairs.image2, pairs.flow, pairs.valid)
    return Pairs(*(part[k : k + 1] for part in parts), (pairs.indices[k],))


def test_the_papers_points_are_there():
    known = with_patches([PATCH])
    assert known["gamma"].levels == (0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 2.0, 3.0)
    for name in ("noise-variance", "noise-deviation"):
        assert known[name].levels == (0.0001, 0.001, 0.01, 0.1)
    assert known["patch:p"].levels == (50, 100, 150, 200)
    for stress in known.values():
        assert stress.label
        assert stress.unit


@pytest.mark.parametrize("name", [*STRESSES, "patch:p", "random:p", "matched:p"])
def test_a_pair_is_stressed_alike_in_any_batch_and_keeps_its_range(pairs, name):
    stress = with_patches([PATCH])[name]
    level = 50.0 if stress.patch else stress.shown
    both = stress.function(pairs, level, 7)
    for k in range(2):
        alone = stress.function(one(pairs, k), level, 7)
        for part in ("image1", "image2", "flow"):
            # Sums in another order of vector lanes: 64 roundings of a number up to 255.
            assert torch.allclose(
                getattr(both, part)[k : k + 1], getattr(alone, part), atol=64 * 255 * 2**-23
            )
    for image in (both.image1, both.image2):
        assert image.min() >= 0
        assert image.max() <= 255
    assert both.indices == pairs.indices
    assert not torch.equal(both.image2, pairs.image2)


@pytest.mark.parametrize("name", [n for n, s in STRESSES.items() if s.neutral is not None])
def test_the_neutral_level_changes_nothing(pairs, name):
    stress = STRESSES[name]
    same = stress.function(pairs, stress.neutral, 0)
    assert torch.equal(same.image1, pairs.image1)
    assert torch.equal(same.image2, pairs.image2)


def test_seeds_differ_by_stress_and_level_and_frames_get_noises_of_their_own(pairs):
    seeds = {seed_of(s, n, v) for s in (0, 1) for n in ("a", "b") for v in (0.1, 0.2)}
    assert len(seeds) == 8
    noisy = STRESSES["noise-variance"].function(pairs, 0.001, 0)
    added1, added2 = noisy.image1 - pairs.image1, noisy.image2 - pairs.image2
    count = added1.numel()
    correlation = torch.corrcoef(torch.stack((added1.flatten(), added2.flatten())))[0, 1]
    assert abs(correlation) < 5 / count**0.5


def test_deviation_squared_is_variance(pairs):
    grey = Pairs(
        *(torch.full_like(x, 127.5) for x in (pairs.image1, pairs.image2)),
        pairs.flow,
        pairs.valid,
        (0, 1),
    )
    for name, level in (("noise-variance", 0.01), ("noise-deviation", 0.1)):
        noisy = STRESSES[name].function(grey, level, 0)
        spread = ((noisy.image1 - 127.5) / 255).std().item()
        # Five standard errors of a deviation; clipping is five deviations away.
        assert spread == pytest.approx(0.1, rel=5 / (2 * noisy.image1.numel()) ** 0.5 + 1e-3)


def test_light_changes_the_second_frame_alone_and_gamma_both(pairs):
    changed = STRESSES["light-change"].function(pairs, -1.0, 0)
    assert torch.equal(changed.image1, pairs.image1)
    assert torch.equal(changed.image2, pairs.image2 / 2)
    dark = STRESSES["gamma"].function(pairs, 0.5, 0)
    assert torch.allclose(dark.image1, pairs.image1.square() / 255, rtol=1e-5, atol=1e-4)
    assert torch.allclose(dark.image2, pairs.image2.square() / 255, rtol=1e-5, atol=1e-4)


def test_a_patch_and_its_controls_lie_at_one_place_in_both_frames(pairs):
    known = with_patches([PATCH], margin=8.0)
    done = [known[name].function(pairs, 30.0, 3) for name in ("patch:p", "random:p", "matched:p")]
    covered = [
        (frame != original).any(1)
        for d in done
        for frame, original in ((d.image1, pairs.image1), (d.image2, pairs.image2))
    ]
    discs = (done[0].flow == 0).all(1)  # the rule zero marks the disc
    for where in covered:
        assert (where & ~discs).sum() == 0
        # A grey level may by chance be the one that was there.
        assert where.sum() > 0.95 * discs.sum()
    for other in done[1:]:
        assert torch.equal(done[0].far, other.far)
        assert not torch.equal(done[0].image1, other.image1)
    assert not torch.equal(done[1].image1, done[2].image1)


def test_random_pixels_are_the_same_in_place_of_any_patch_of_a_side(pairs):
    known = with_patches(
        [PATCH, Patch("q", 255 - PATCH.pixels), Patch("r", PATCH.pixels[:, 4:, 4:])]
    )
    p, q, r = (known[f"random:{name}"].function(pairs, 40.0, 3) for name in "pqr")
    assert torch.equal(p.image2, q.image2)
    assert not torch.equal(p.image2, r.image2)


def test_far_is_further_than_the_margin_outside_the_rim(pairs):
    margin, size = 8.0, 30.0
    done = with_patches([PATCH], margin=margin)["patch:p"].function(pairs, size, 3)
    y, x = torch.meshgrid(torch.arange(H).float(), torch.arange(W).float(), indexing="ij")
    for k in range(2):
        disc = (done.flow[k] == 0).all(0)
        centre = x[disc].mean(), y[disc].mean()
        distance = (x - centre[0]).hypot(y - centre[1])
        # The mean of a disc's pixels is its centre to within a pixel.
        far = done.far[k, 0]
        assert distance[far].min() > size / 2 + margin - 1
        assert distance[~far].max() < size / 2 + margin + 1


def test_rules_for_the_truth_under_a_patch(pairs):
    done = {rule: with_patches([PATCH], rule)["patch:p"].function(pairs, 60.0, 3) for rule in RULES}
    disc = (done["zero"].flow == 0).all(1, keepdim=True)
    assert 0 < disc.float().mean() < 0.5
    assert torch.equal(done["zero"].valid, pairs.valid | disc)
    assert torch.equal(done["ignore"].valid, pairs.valid & ~disc)
    assert torch.equal(done["ignore"].flow, pairs.flow)
    assert torch.equal(done["truth"].valid, pairs.valid)
    assert torch.equal(done["truth"].flow, pairs.flow)


def test_choosing_by_name_by_kind_and_with_other_levels():
    known = with_patches([PATCH, Patch("q", PATCH.pixels)])
    assert len(choose(known, None)) == len(known)
    assert [s.name for s in choose(known, ["patch", "gamma"])] == ["gamma", "patch:p", "patch:q"]
    [blur] = choose(known, ["blur"], {"blur": [3, 1, 1]})
    assert blur.levels == (1.0, 3.0)
    assert [s.levels for s in choose(known, ["patch"], {"patch": [40]})] == [(40.0,), (40.0,)]
    both = choose(
        known, ["random:q", "matched:q"], {"patch": [40], "patch:p": [9], "matched": [60]}
    )
    assert [s.levels for s in both] == [(40.0,), (60.0,)]
    with pytest.raises(ArgumentError, match="stress blur: no level was given, wanted at least one"):
        choose(known, ["blur"], {"blur": []})


@pytest.mark.parametrize(
    ("name", "measured", "drawn"),
    [
        ("gamma", None, 0.3),
        ("gamma", [0.5, 1], 0.5),
        ("gamma", [1, 9], 9),  # 1 changes nothing
        ("gamma", [1], 1),
        ("noise-variance", [0.0001, 0.2], 0.2),  # on its axis, which is logarithmic
        ("light-change", [-3, 3], -3),
        ("patch:p", [50], 50),
    ],
)
def test_the_level_for_pictures_is_one_that_is_measured(name, measured, drawn):
    levels = None if measured is None else {name: measured}
    [stress] = choose(with_patches([PATCH]), [name], levels)
    assert stress.shown == drawn
    assert stress.shown in stress.levels


def test_so_are_all_that_come_without_being_asked():
    for stress in choose(with_patches([PATCH]), None):
        assert stress.shown in stress.levels


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: choose(STRESSES, ["gama"]), "no stress 'gama'; there are gamma, noise-variance"),
        (lambda: choose(STRESSES, ["patch"]), "needs a patch: --patch FILE"),
        (lambda: choose(STRESSES, None, {"blurr": [1]}), "no stress 'blurr'"),
        (lambda: with_patches([PATCH], "zeros"), "no rule 'zeros'.*zero, ignore, truth"),
        (lambda: with_patches([PATCH, PATCH]), "two patches are called 'p'"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_levels_are_those_of_the_documentation():
    """Other levels want a word in docs/robustness.md, and cannot be held against the paper's."""
    noise = (0.0001, 0.001, 0.01, 0.1)
    found = {s.name: (s.levels, s.shown, s.neutral, s.log) for s in STRESSES.values()}
    assert found == {
        "gamma": ((0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 2.0, 3.0), 0.3, 1.0, True),
        "noise-variance": (noise, 0.01, 0.0, True),
        "noise-deviation": (noise, 0.1, 0.0, True),
        "blur": ((0.5, 1.0, 2.0, 3.0, 4.0), 2.0, 0.0, False),
        "jpeg": ((5.0, 10.0, 20.0, 40.0, 70.0), 10.0, None, True),
        "fog": ((0.2, 0.4, 0.6, 0.8, 1.0), 1.0, 0.0, False),
        "light-change": ((-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0), -1.0, 0.0, False),
    }


def test_levels_that_span_decades_are_drawn_on_a_logarithmic_axis():
    drawn = {name for name, stress in STRESSES.items() if stress.log}
    assert drawn == {"gamma", "noise-variance", "noise-deviation", "jpeg"}


def test_gamma_noise_and_patches_have_the_levels_of_the_paper():
    assert tuple(paper.ROBUSTNESS["patch"]) == PATCH_SIZES
    ours = (("gamma", "gamma"), ("noise", "noise-variance"), ("noise", "noise-deviation"))
    for name, stress in ours:
        assert tuple(paper.ROBUSTNESS[name]) == STRESSES[stress].levels
