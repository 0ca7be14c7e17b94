"""What every network makes of its images, and what it refuses."""

from __future__ import annotations

import pytest
import torch

import lcv
from lcv.errors import ArgumentError, LcvError, ShapeError
from testing.painted import painted_pair

NETWORKS = ["raft-small", "vcn-small", "ddflow"]


@pytest.fixture(scope="module", params=NETWORKS)
def model(request):
    torch.manual_seed(0)
    return lcv.build(request.param, "euclidean").eval()


@torch.no_grad()
def test_bytes_and_other_precisions_are_taken_as_they_are(model):
    image1, image2, _ = painted_pair(72, 80)
    image1, image2 = image1.round(), image2.round()
    flow = model(image1, image2).flow
    for dtype in (torch.uint8, torch.float64, torch.int32):
        assert torch.equal(model(image1.to(dtype), image2.to(dtype)).flow, flow)


def test_what_is_no_pair_of_images_is_refused_in_one_sentence(model):
    image = torch.zeros(2, 3, 72, 80)
    refused = [
        (torch.zeros(2, 1, 72, 80), image),
        (image, torch.zeros(1, 3, 72, 80)),
        (image, torch.zeros(2, 3, 80, 72)),
        (image[0], image[0]),
        (image.numpy(), image),
        (image.bool(), image),
        (torch.zeros(0, 3, 72, 80), torch.zeros(0, 3, 72, 80)),
        (image.to("meta"), image),
    ]
    for image1, image2 in refused:
        with pytest.raises(LcvError):
            model(image1, image2)
    with pytest.raises(ShapeError, match="image1 .* has 1 where 3 belongs"):
        model(*refused[0])
    with pytest.raises(ArgumentError, match="image1 is on meta and the network on cpu; move one"):
        model(*refused[-1])


@torch.no_grad()
def test_nan_in_an_image_is_a_nan_in_the_flow_and_no_crash(model):
    image1, image2, _ = painted_pair(72, 80)
    image1[0, 0, 5, 5] = torch.nan
    assert torch.isnan(model(image1, image2).flow).any()


@pytest.mark.parametrize("name", ["vcn-small", "ddflow"])
def test_half_precision_parameters_are_refused_where_they_cannot_work(name):
    model = lcv.build(name).half()
    image = torch.zeros(1, 3, 72, 80)
    with pytest.raises(ArgumentError, match=r"parameters are torch\.float16, .* torch\.autocast"):
        model(image, image)
