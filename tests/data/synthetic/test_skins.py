"""What layers wear: their tiles, colours, places and shadows."""

from __future__ import annotations

from dataclasses import replace

import torch

from lcv.data.random import Draws
from lcv.data.synthetic.motion import draw_motion
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.skins import UNTRIMMED, draw_shadows, draw_skins, draw_trims, make_atlas


def test_atlas_holds_each_layers_tile_coloured(bank):
    draws = Draws(3, range(5))
    motion = draw_motion(TRAINING, draws, (96, 128), 2)
    skins = draw_skins(TRAINING, draws, motion.radius, bank)
    atlas = make_atlas(bank, skins)
    assert atlas.shape == (5, 3, 8 * 192, 192)
    for n, layer, channel in ((0, 0, 0), (3, 5, 2), (4, 7, 1)):
        source = bank[skins.tile[n, layer], skins.order[n, layer, channel]].float()
        expected = source * skins.gain[n, layer, channel] + skins.offset[n, layer, channel]
        found = atlas[n, channel, layer * 192 : (layer + 1) * 192]
        assert torch.allclose(found, expected, atol=1e-3)
    assert {tuple(sorted(order)) for order in skins.order.flatten(0, 1).tolist()} == {(0, 1, 2)}
    assert skins.order.flatten(0, 1).unique(dim=0).shape[0] == 6


def test_objects_lie_within_their_texture(bank):
    for size in ((96, 128), (1000, 1200)):
        draws = Draws(3, range(40))
        motion = draw_motion(TRAINING, draws, size, 2)
        sx, ox, sy, oy = draw_skins(TRAINING, draws, motion.radius, bank).place[:, 1:].unbind(-1)
        for stretch, origin in ((sx, ox), (sy, oy)):
            assert (origin - stretch.abs()).min() > 2
            assert (origin + stretch.abs()).max() < 192 - 3


def test_camouflaged_objects_wear_what_the_background_wears(bank):
    draws = Draws(3, range(64))
    radius = draw_motion(TRAINING, draws, (96, 128), 2).radius
    plain = draw_skins(TRAINING, draws, radius, bank)
    hidden = draw_skins(replace(TRAINING, camouflage_probability=0.5), draws, radius, bank)
    worn = {name: getattr(hidden, name) for name in ("order", "gain", "offset")}
    as_behind = (hidden.tile == hidden.tile[:, :1]) & torch.stack(
        [(value == value[:, :1]).all(-1) for value in worn.values()]
    ).all(0)
    own = (hidden.tile == plain.tile) & (hidden.gain == plain.gain).all(-1)
    assert (as_behind | own).all()
    assert 0.4 < as_behind[:, 1:].float().mean() < 0.6
    assert torch.equal(hidden.tile[:, 0], plain.tile[:, 0])


def test_objects_may_be_flat_more_often_than_the_background(bank):
    recipe = replace(TRAINING, flat_probability=0.0, flat_objects=1.0)
    draws = Draws(4, range(50))
    gain = draw_skins(recipe, draws, draw_motion(recipe, draws, (96, 128), 2).radius, bank).gain
    assert gain[:, 0].abs().min() > 0.5
    assert gain[:, 1:].abs().max() < 0.3


def test_only_objects_have_edges_of_their_own_colour():
    trim = draw_trims(replace(TRAINING, trim_probability=1.0, trim=(2.0, 3.0)), Draws(4, range(50)))
    assert (trim[:, 0, 0] == UNTRIMMED).all()
    assert ((trim[:, 1:, 0] >= 2) & (trim[:, 1:, 0] <= 3)).all()
    assert ((trim[..., 1:] >= 0) & (trim[..., 1:] <= 255)).all()
    assert trim[:, 1:, 1:].std() > 50
    assert (draw_trims(TRAINING, Draws(4, range(3)))[..., 0] == UNTRIMMED).all()


def test_only_objects_cast_shadows(bank):
    shadow = draw_shadows(replace(TRAINING, shadow=1.0), Draws(4, range(50)))
    assert not shadow[:, 0, 0].any()
    assert ((shadow[:, 1:, 0] >= 0.2) & (shadow[:, 1:, 0] <= 0.7)).all()
    assert not draw_shadows(TRAINING, Draws(4, range(3))).any()
