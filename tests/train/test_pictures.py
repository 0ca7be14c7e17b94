"""The picture of a judged pair: four parts, in colours that compare."""

from __future__ import annotations

import numpy as np
import torch

from lcv.train.pictures import before_after_picture, judged_picture
from lcv.train.validate import Judged
from lcv.visual.error_maps import SINTEL_UNKNOWN

H, W, GAP = 24, 40, 4


def parts(pair: Judged) -> list[np.ndarray]:
    picture = judged_picture(pair)
    assert picture.dtype == np.uint8
    assert picture.shape[0] > H, "there are no words below"
    assert picture.shape[1] == 4 * W + 3 * GAP
    return [picture[:H, k * (W + GAP) :][:, :W] for k in range(4)]


def test_frame_flow_truth_and_error():
    image = torch.rand(3, H, W) * 255
    truth = torch.zeros(2, H, W)
    truth[0, :, W // 2 :] = 7.0
    flow = torch.zeros(2, H, W)
    flow[1] = 5.0
    valid = torch.ones(1, H, W, dtype=torch.bool)
    valid[0, :4] = False
    image[:, 0, :2] = torch.tensor([-3.0, 300.0])
    frame, seen, known, error = parts(Judged(image, flow, truth, valid))
    shown = image.movedim(0, 2).clamp(0, 255).round()
    assert np.array_equal(frame, shown.byte().numpy())
    assert (known[:4] == 0).all()
    assert (known[4:, : W // 2] == 255).all()  # no motion is white
    assert (seen == seen[0, 0]).all()  # one motion, one colour, valid or not
    assert (error[:4] == SINTEL_UNKNOWN).all()
    assert (error[4:, : W // 2] == round(255 * 5 / 10)).all()
    assert (error[4:, W // 2 :] == round(255 * 74**0.5 / 10)).all()


def test_an_exact_flow_looks_like_the_truth_and_has_no_error():
    truth = torch.randn(2, H, W) * 3
    valid = torch.ones(1, H, W, dtype=torch.bool)
    _, seen, known, error = parts(Judged(torch.zeros(3, H, W), truth, truth, valid))
    assert np.array_equal(seen, known)
    assert (error == 0).all()


def test_before_and_after_training_have_the_colours_of_the_truth_s_scale():
    image, valid = torch.rand(3, H, W) * 255, torch.ones(1, H, W, dtype=torch.bool)
    valid[0, :4] = False
    truth = torch.randn(2, H, W) * 3
    image[:, 0, :2] = torch.tensor([-3.0, 300.0])
    old, new = (Judged(image, flow, truth, valid) for flow in (0 * truth, truth))
    picture = before_after_picture([old, old], [new, new])
    rows = (picture.shape[0] - GAP) // 2
    frame, known, before, after = (picture[:H, k * (W + GAP) :][:, :W] for k in range(4))
    shown = image.movedim(0, 2).clamp(0, 255).round()
    assert np.array_equal(frame, shown.byte().numpy())
    assert not known[:4].any()
    assert (before == 255).all()
    assert np.array_equal(after[4:], known[4:])
    assert np.array_equal(picture[-rows:], picture[:rows])  # a row for each pair
    assert picture.shape[1] == 4 * W + 3 * GAP


def test_the_words_below_name_scale_and_error(monkeypatch):
    said = []

    def note(pictures, labels, columns=None):
        said.append((len(pictures), labels, columns))
        return np.zeros((1, 1, 3), np.uint8)

    monkeypatch.setattr("lcv.train.pictures.side_by_side", note)
    truth = torch.tensor([3.0, 4.0]).view(2, 1, 1).expand(2, H, W)
    valid = torch.zeros(1, H, W, dtype=torch.bool)
    valid[0, 0, :2] = True
    flow = torch.zeros(2, H, W)
    flow[0, 0, 0], flow[:, 1] = 3.0, 90.0  # errors of 4 and 5 px, and some that are not known
    old, new = (Judged(torch.zeros(3, H, W), each, truth, valid) for each in (flow, truth))
    judged_picture(old)
    before_after_picture([old], [new])
    words = "truth, 5.0 px in full colour"
    assert said == [
        (4, ["frame", "flow", words, "error, white 10 px"], None),
        (4, ["frame", words, "before, EPE 4.50 px", "after, EPE 0.00 px"], 4),
    ]
