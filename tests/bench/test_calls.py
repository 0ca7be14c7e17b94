"""Calls: each network in its setting, and a peer's without what we do around it."""

from __future__ import annotations

import torch

import lcv
from lcv.bench.calls import make_call, our_network, tf32
from lcv.bench.cells import Cell, Point


def test_a_peer_is_called_with_images_that_are_ready(fake_peer):
    theirs = Cell("raft-small", Point(64, 72, 1, 1), "none", "", peer="elsewhere")
    call = make_call(theirs, [torch.zeros(1, 3, 64, 72)] * 2)
    returned = call.run()  # what the network itself gives
    assert isinstance(returned, torch.Tensor)
    assert torch.equal(call.flow(returned), returned)


def test_without_lcv_has_the_trained_weights_less_w():
    without, trained = our_network("raft-small", "none").state_dict(), lcv.load("raft-small")
    assert not any("inner_product" in name for name in without)
    assert all(torch.equal(value, trained.state_dict()[name]) for name, value in without.items())


def test_tf32_is_as_it_was_afterwards():
    had = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with tf32(not had[0]):
        assert (
            torch.backends.cuda.matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is not had[0]
        )
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == had
