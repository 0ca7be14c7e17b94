"""A dress rehearsal: the code of a prediction run on tensors without content, its memory added up.

Inside a `Ledger` every operation computes shapes and nothing else, so that a prediction is played
through in a fraction of a second. The ledger enters every storage when it appears and strikes it
out when nobody holds it any more, which is when the real one would be freed. What remains to be
known is what an operation takes for itself while it runs; see `scratch`.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from lcv.predict.heap import Block, Heap
from lcv.predict.shapes import shape_of

# oneDNN lays channels out in blocks of 16 numbers (of 8 on processors without AVX-512).
BLOCK = 16
# A convolution of at most so many channels reads them as they are.
PLAIN_INPUT = 4
# MKL keeps the buffers of its products: up to so many, each of so many bytes.
BUFFERS, BUFFER = 5, 3_400_000


class Hollow(Tensor):
    """A tensor that says it lies on a device and has nothing in it: a name around a meta tensor.

    torch's own meta tensors cannot be used as they are: autocast, which the networks switch off in
    places, knows no such device.
    """

    meta: Tensor

    @staticmethod
    def __new__(cls, meta: Tensor, device: torch.device) -> Hollow:
        hollow = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            meta.shape,
            strides=meta.stride(),
            storage_offset=meta.storage_offset(),
            dtype=meta.dtype,
            device=device,
        )
        hollow.meta = meta
        return hollow

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{func}: a tensor without content has left its rehearsal")


class Ledger(TorchDispatchMode):
    """While it is entered, tensors are hollow and their bytes are counted.

    device: where the tensors would lie
    live, most: the bytes of all tensors now, and at most; on a CPU with what operations take for
            themselves
    heap:   the same on a CPU's heap, see `lcv.predict.heap`
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing here is ever compiled, and to hide from the compiler torch would load all of it.
        return False

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.heap = Heap()
        self.live = self.most = 0
        self._entries: dict[int, tuple[StorageWeakRef, int, Block]] = {}
        self._buffers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._strike_out()
        given: dict[int, Hollow] = {}

        def inside(tensor: Tensor) -> Tensor:
            if isinstance(tensor, Hollow):
                given[id(tensor.meta)] = tensor
                return tensor.meta
            return tensor.to("meta")

        def outside(tensor: Tensor) -> Tensor:
            if id(tensor) in given:  # changed in place
                return given[id(tensor)]
            self._enter(tensor)
            return Hollow(tensor, self.device)

        args, kwargs = tree_map_only(Tensor, inside, (args, kwargs or {}))
        if "device" in kwargs or not given:
            kwargs["device"] = "meta"
        out = shape_of(func, args, kwargs)
        before, during = scratch(func, args, out) if self.device.type == "cpu" else (0, 0)
        first, second = self.heap.take(before), self.heap.take(during)
        self.most = max(self.most, self.live + before + during)
        self.heap.give(first)
        hollow = tree_map_only(Tensor, outside, out)
        self.most = max(self.most, self.live + during)
        self.heap.give(second)
        if self._buffers < BUFFERS and is_product(func, args):
            self._buffers += 1
            self.heap.take(BUFFER)
        return hollow

    def _enter(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._entries:
            self._entries[key] = StorageWeakRef(storage), size, self.heap.take(size)
            self.live += size

    def _strike_out(self) -> None:
        gone = [key for key, (ref, *_) in self._entries.items() if ref.expired()]
        for key in gone:
            _, size, block = self._entries.pop(key)
            self.live -= size
            self.heap.give(block)


def hollow_model(model: nn.Module, device: torch.device) -> nn.Module:
    """The model with hollow weights; none is copied, and the ledger does not count them.

    Hooks are left behind: they are meant for what is real.
    """
    memo: dict[int, Any] = {
        id(tensor): Hollow(torch.empty_like(tensor, device="meta", requires_grad=False), device)
        for tensor in (*model.parameters(), *model.buffers())
    }
    for module in model.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            memo[id(hooks)] = OrderedDict()
    return copy.deepcopy(model, memo)


def scratch(func: Any, args: Any, out: Any) -> tuple[int, int]:
    """What an operation takes for itself on a CPU: bytes held before, and while, it fills `out`.

    Measured, by noting every block that torch asks malloc for:
    - Convolutions of images (oneDNN) copy the input into blocks of channels and compute the result
      in such blocks; then the former is freed and the latter copied into the plain result. Inputs
      of up to four channels are read as they are, results of less than a block are written as they
      are, and 1×1 kernels without stride need neither copy.
    - Convolutions of volumes write out every window that the kernel sees.
    - Bilinear resizing of more than three channels works on copies with the channels last.
    - Of the other operations that the networks use, none takes more than a few MB.
    """
    if func is torch.ops.aten.upsample_bilinear2d.default and args[0].shape[1] > 3:
        return 0, args[0].nbytes + out.nbytes
    if func is not torch.ops.aten.convolution.default or _is_pointwise(args):
        return 0, 0
    x, weight = args[:2]
    if weight.dim() == 5:
        return 0, weight[0].numel() * out.nbytes // out.shape[1]
    before = _blocked(x) if x.shape[1] > PLAIN_INPUT else 0
    return before, _blocked(out) if out.shape[1] >= BLOCK else 0


def is_product(func: Any, args: Any) -> bool:
    """Whether an operation ends in a product of matrices: one by name, or a 1×1 convolution."""
    if func is torch.ops.aten.convolution.default:
        return _is_pointwise(args)
    return func in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default)


def _is_pointwise(args: Any) -> bool:
    """Whether a convolution is 1×1 and without stride."""
    return all(side == 1 for side in (*args[1].shape[2:], *args[3]))


def _blocked(x: Tensor) -> int:
    channels = x.shape[1]
    return x.nbytes // channels * (-(-channels // BLOCK) * BLOCK)
