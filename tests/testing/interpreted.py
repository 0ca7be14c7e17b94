"""The kernels in Triton's interpreter: results, laws, and what torch must know of them.

A process of its own, which test_triton_impl.py starts: Triton must know before it is imported.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from benchmarks import kernel_checks
from triton.runtime import interpreter

from lcv.cost_volume import AllPairs, OnDemand, local_cost_volume, projected_cost_volume
from lcv.cost_volume.allpairs import triton_impl as allpairs
from lcv.cost_volume.local import triton_impl as local
from lcv.cost_volume.ondemand import triton_impl as ondemand
from lcv.cost_volume.projected import triton_impl as projected
from lcv.models.raft import triton_upsample
from testing.division import divided

UTILS = ("test_schema", "test_autograd_registration", "test_faketensor")


def registered() -> None:
    """Schemas, fake results and autograd fit what the operators do."""
    torch.manual_seed(0)
    f1, f2 = torch.randn(2, 1, 3, 4, 5, requires_grad=True)
    coords = torch.rand(1, 2, 4, 5, requires_grad=True)
    weight = torch.randn(2, 3, requires_grad=True)
    costs = allpairs.build(f1, f2, levels=2, scale=1.0).costs.detach().requires_grad_()
    grad = torch.randn(1, 18, 4, 5)
    points, packed = (f.detach() for f in ondemand.build(f1, f2, levels=2, scale=1.0))
    check = torch.library.opcheck
    check(allpairs.lookup_op, (costs, coords, 2, 1, 1), test_utils=UTILS)
    check(allpairs.add_op, (costs.detach().clone(), coords, grad, 2, 1, 1), test_utils=UTILS)
    check(allpairs.slopes_op, (costs.detach(), coords.detach(), grad, 2, 1, 1), test_utils=UTILS)
    given = (points.requires_grad_(), packed.requires_grad_(), coords)
    check(ondemand.lookup_op, (*given, 2, 1, 1), test_utils=UTILS)
    given = tuple(each.detach() for each in given)
    check(ondemand.backward_op, (grad, *given, 2, 1, 1, True), test_utils=UTILS)
    check(local.local_op, (f1, f2, 3, 1, 0.5, False), test_utils=UTILS)
    check(projected.projected_op, (f1, f2, weight, 3, 1, 0.1), test_utils=UTILS)
    flow, mask = torch.randn(1, 2, 2, 3), torch.randn(1, 576, 2, 3)
    given = (flow.requires_grad_(), mask.requires_grad_(), 0.25)
    check(triton_upsample.upsample_op, given, test_utils=UTILS)


def compiled() -> None:
    """A lookup compiles as one graph, and gives the gradients that it gives eagerly."""
    f1, f2 = torch.randn(2, 1, 3, 4, 5)
    coords = 4 * torch.rand(1, 2, 4, 5)
    f1.requires_grad_()

    def run() -> torch.Tensor:
        volume = AllPairs(2, 1, backend="triton")
        state = volume.build(f1, f2)
        return volume.lookup(state, coords) + volume.lookup(state, coords + 1)

    eager, fast = run(), torch.compile(run, backend="aot_eager", fullgraph=True)()
    torch.testing.assert_close(fast, eager)
    grads = (torch.autograd.grad(out.square().sum(), f1)[0] for out in (eager, fast))
    torch.testing.assert_close(*grads)


def chained() -> None:
    """The gradient of a volume is one buffer, whoever used which lookup, and however often."""
    f1, f2 = torch.randn(2, 1, 3, 4, 5)
    f1.requires_grad_()
    coords = [4 * torch.rand(1, 2, 4, 5, requires_grad=True) for _ in range(3)]
    volume = AllPairs(2, 1, backend="triton")
    state = volume.build(f1, f2)
    outs = [volume.lookup(state, each) for each in coords]
    apart = []
    for each in coords:
        one = volume.lookup(volume.build(f1, f2), each)
        apart.append(torch.autograd.grad(one.square().sum(), f1)[0])
    losses = [out.square().sum() for out in outs]
    together = torch.autograd.grad(losses[0] + losses[2], f1, retain_graph=True)[0]
    torch.testing.assert_close(together, apart[0] + apart[2])
    again = torch.autograd.grad(losses[1], f1, retain_graph=True)[0]  # nothing is left over
    torch.testing.assert_close(again, apart[1])
    torch.autograd.grad(losses[1], coords[1], retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(sum(losses), f1)[0], sum(apart))
    state = volume.build(f1.detach(), f2)
    for each in coords[:2]:
        out = volume.lookup(state, each)
    assert out.requires_grad
    assert not state.costs.costs.requires_grad  # where only points ask, nothing is summed up


def bounded() -> None:
    """Far out is zero, a NaN spoils its own point, and every number is written."""
    f1, f2 = torch.randn(2, 1, 2, 4, 5)
    coords = 4 * torch.rand(1, 2, 4, 5)
    for kind in (AllPairs, OnDemand):
        volume = kind(2, 1, backend="triton")
        state = volume.build(f1, f2)
        clean = volume.lookup(state, coords)
        for value in (1e30, -torch.inf, torch.nan):
            bad = coords.clone()
            bad[0, 0, 1, 2] = value
            out = volume.lookup(state, bad)
            spoilt = out[0, :, 1, 2].clone()
            assert spoilt.isnan().all() if value != value else spoilt.eq(0).all()
            out[0, :, 1, 2] = clean[0, :, 1, 2]
            assert torch.equal(out, clean)
    for out in (
        local_cost_volume(f1, f2, (3, 5), backend="triton"),
        projected_cost_volume(f1, f2, torch.ones(2, 2), (3, 1), slope=0.1, backend="triton"),
    ):
        assert out.isfinite().all()


def with_index(tensor: Any, scope: Any) -> None:
    """Loops over a count that was computed: NumPy 2.4 has no int() of an array, as Triton 3.6 expects."""
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


if __name__ == "__main__":
    patch, interpreter._patch_lang_tensor = interpreter._patch_lang_tensor, with_index
    new_empty = torch.Tensor.new_empty
    torch.Tensor.new_empty = lambda self, *a, **k: new_empty(self, *a, **k).fill_(torch.nan)  # type: ignore[method-assign]
    bounded()
    torch.Tensor.new_empty = new_empty  # type: ignore[method-assign]
    for law in (registered, compiled, chained):
        law()
    divided("cpu")
    print(json.dumps(kernel_checks.check("cpu")))
