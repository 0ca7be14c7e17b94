"""Mixtures: a pair's kind is its own, and it is the pair that its kind would make."""

from __future__ import annotations

from dataclasses import fields, replace

import torch

from lcv.data.synthetic.mixing import split
from lcv.data.synthetic.recipe import GENTLE, MIXED, QUICK, SPACE
from lcv.data.synthetic.sequence import Batch, generate
from lcv.data.synthetic.settings import Mixture

# Few layers, and effects that differ between two kinds.
SMALL = Mixture(
    (
        (1.0, replace(SPACE, layers=6, objects=(1, 2))),
        (1.0, replace(GENTLE, layers=3, objects=(1, 2))),
        (2.0, QUICK),
    )
)


def test_the_kind_of_a_pair_depends_on_its_index_alone():
    groups = split(MIXED, 3, range(4000))
    assert [kind for kind, _ in groups] == [kind for _, kind in MIXED.parts]
    for (_, places), (weight, _) in zip(groups, MIXED.parts, strict=True):
        assert abs(len(places) / 4000 - weight) < 5 * (weight * (1 - weight) / 4000) ** 0.5
    together = {int(k): kind for kind, places in groups for k in places}
    for index in (17, 2, 3999):
        ((kind, places),) = split(MIXED, 3, [index])
        assert kind is together[index]
        assert places.tolist() == [0]
    assert split(QUICK, 3, [5, 4])[0][1].tolist() == [0, 1]


def test_a_mixed_batch_is_made_of_the_pairs_of_its_kinds(bank):
    indices = [4, 9, 2, 7, 1, 30, 12, 13]
    mixed = generate(SMALL, 8, indices, (48, 72), textures=bank)
    groups = split(SMALL, 8, indices)
    assert len(groups) == 3
    for kind, places in groups:
        own = [indices[k] for k in places]
        apart = generate(kind, 8, own, (48, 72), textures=bank)
        for field in fields(Batch):
            whole, part = getattr(mixed, field.name)[places], getattr(apart, field.name)
            if part.dtype == torch.bool or "flow" in field.name or field.name == "backward":
                assert torch.equal(whole, part), field.name
            else:
                assert (whole - part).abs().max() < 0.01, field.name
