"""A network is called as the protocol says, and left as it was found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.data.formats.flow import write_flow
from lcv.data.formats.kitti import read_kitti
from lcv.errors import ArgumentError
from lcv.evaluate.calling import (
    Caller,
    call_options,
    evaluating,
    image_tensor,
    stored,
    usable_device,
    warm_units,
)
from lcv.evaluate.protocols import Setting
from testing.networks import Constant


def test_rounded_storage_is_what_a_kitti_file_gives_back(tmp_path):
    generator = np.random.default_rng(0)
    flow = generator.uniform(-600, 600, (20, 30, 2)).astype(np.float32)
    flow[0, :8, 0] = np.arange(8) / 128  # halves between two steps: rounded to even, as in the file
    write_flow(tmp_path / "flow.png", flow)
    wanted, _ = read_kitti(tmp_path / "flow.png")
    found = stored(torch.from_numpy(flow), "kitti-rounded")
    assert np.array_equal(found.numpy(), wanted)
    assert np.abs(found.numpy() - flow.clip(-512, 511.984375)).max() <= 1 / 128


def test_cut_storage_goes_down_and_exact_storage_touches_nothing():
    flow = torch.tensor([0.0, 1 / 64, 0.99 / 64, -0.01 / 64, 700.0, -700.0])
    wanted = torch.tensor([0.0, 1 / 64, 0.0, -1 / 64, 511.984375, -512.0])
    assert torch.equal(stored(flow, "kitti-truncated").float(), wanted)
    assert stored(flow, "exact") is flow


def test_iterations_and_padding_go_to_the_networks_that_take_them():
    setting = Setting(24, "kitti")
    assert call_options(Constant(), setting) == {"iters": 24, "pad": "kitti"}
    assert call_options(Constant(), Setting()) == {"iters": 20, "pad": "sintel"}
    assert call_options(Constant(recurrent=False), setting) == {}


@pytest.mark.parametrize("precision", ["float64", "float32", "tf32", "bfloat16", "float16"])
def test_every_module_and_flag_is_put_back(precision):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.BatchNorm2d(3)).train()
    model[1].eval()
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    wanted = torch.float64 if precision == "float64" else torch.float32

    def work():
        with evaluating(model, precision) as network:
            assert not any(module.training for module in network.modules())
            assert torch.backends.cudnn.allow_tf32 is (precision == "tf32")
            assert torch.is_autocast_enabled("cpu") is precision.endswith("float16")
            assert not torch.is_grad_enabled()
            assert next(network.parameters()).dtype == wanted
            raise KeyError("after work that failed")

    with pytest.raises(KeyError, match="after work that failed"):
        work()
    assert [module.training for module in model] == [True, False]
    assert next(model.parameters()).dtype == torch.float32
    after = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    assert after == before


class Shot:
    """A pair by the names of its frames."""

    def __init__(self, image1: str, image2: str) -> None:
        self.image1, self.image2 = image1, image2


def test_scenes_stay_together_only_where_it_matters():
    shots = [
        Shot("a1", "a2"),
        Shot("a2", "a3"),
        Shot("b1", "b2"),
        Shot("b3", "b4"),
        Shot("b4", "b5"),
    ]
    assert warm_units(shots, False) == [[0], [1], [2], [3], [4]]
    assert warm_units(shots, True) == [[0, 1], [2], [3, 4]]


def test_a_warm_start_is_the_flow_before_carried_along():
    model = Constant((16.0, -8.0))
    images = torch.zeros(1, 3, 64, 80), torch.zeros(1, 3, 64, 80)
    call = Caller(model, warm_start=True)
    outputs = [call(*images, Setting(), first) for first in (True, False, True)]
    starts = [c.get("flow_init") for c in model.calls]
    assert starts[0] is None
    assert starts[2] is None, "a new scene starts from nothing"
    assert torch.equal(starts[1], forward_interpolate(outputs[0].low))
    Caller(model, warm_start=False)(*images, Setting(), False)
    assert "flow_init" not in model.calls[-1]
    with pytest.raises(ArgumentError, match="takes no flow to start from; leave it out"):
        Caller(Constant(recurrent=False), warm_start=True)


def test_images_are_turned_and_read_only_ones_are_no_trouble():
    image = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    image.setflags(write=False)
    tensor = image_tensor(image, torch.device("cpu"))
    assert tensor.shape == (1, 3, 2, 3)
    assert tensor[0, 2, 1, 0] == image[1, 0, 2]


def test_a_device_that_is_not_there_is_a_sentence():
    assert usable_device("cpu") == torch.device("cpu")
    with pytest.raises(ArgumentError, match="device 'nowhere' cannot be used here"):
        usable_device("nowhere")
