"""Counter-based randomness: every draw is a function of (seed, index, name of the draw).

There is no stream and no position in it, so a sample is the same at any batch size, in any order,
on any rank, device or resume point. Element e of the draw `name` for the sample `index` is

    bits = mix(mix(mix(seed) + index·G) + key(name) + e·G)     modulo 2⁶⁴

with G the golden gamma 2⁶⁴/φ and mix the finaliser of SplitMix64 (Steele, Lea, Flood 2014); that
generator, started at a random place for every index and name. Integers in torch wrap modulo 2⁶⁴ on
every device, so the bits are equal everywhere.

What follows from the bits uses nothing but one correctly rounded operation at a time (+, −, ×, and
÷ of tensors) and a table made on the CPU, so that floats too are bit-equal across devices. For the
same reason nothing here divides by a Python number (CUDA multiplies by its reciprocal instead),
calls exp, log or sin, or may be compiled into fused multiply-adds.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from statistics import NormalDist

import torch
from torch import Tensor

from lcv.errors import ArgumentError

_GAMMA = 0x9E3779B97F4A7C15
_TABLE_BITS = 14
_EXP_DOUBLINGS = 5


def _signed(value: int) -> int:
    """The int64 with the same 64 bits."""
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


GAMMA_SIGNED = _signed(_GAMMA)
MULTIPLIER_1 = _signed(0xBF58476D1CE4E5B9)
MULTIPLIER_2 = _signed(0x94D049BB133111EB)


def mix(x: Tensor) -> Tensor:
    """SplitMix64's finaliser, a bijection of 64-bit words: int64 → int64, any shape.

    The shifts are logical; torch's are arithmetic, hence the masks.
    """
    x = (x ^ ((x >> 30) & (2**34 - 1))) * MULTIPLIER_1
    x = (x ^ ((x >> 27) & (2**37 - 1))) * MULTIPLIER_2
    return x ^ ((x >> 31) & (2**33 - 1))


def mix_integer(x: int) -> int:
    """`mix` of one Python integer modulo 2⁶⁴, unsigned: the same function, for the host."""
    x &= 2**64 - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return x ^ (x >> 31)


@functools.lru_cache(maxsize=4096)
def name_key(name: str) -> int:
    """The 64 bits that a name stands for, as a signed integer: the head of its BLAKE2b hash."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return _signed(int.from_bytes(digest, "little"))


@functools.lru_cache(maxsize=16)
def _normal_table(device: torch.device) -> Tensor:
    """Quantiles Φ⁻¹(j / 2¹⁴), j = 0 … 2¹⁴; the two infinite ends are those of the outer 2⁻¹⁸."""
    cells = 2**_TABLE_BITS
    quantile = NormalDist().inv_cdf
    end = quantile(1 / (16 * cells))
    inner = [quantile(j / cells) for j in range(1, cells)]
    with torch.inference_mode(False):
        return torch.tensor([end, *inner, -end], dtype=torch.float32).to(device)


@functools.lru_cache(maxsize=16)
def _circle_table(device: torch.device) -> Tensor:
    """Unit vectors at the angles 2π j / 2¹⁴: (2¹⁴, 2) float64."""
    cells = 2**_TABLE_BITS
    angles = [2 * math.pi * j / cells for j in range(cells)]
    with torch.inference_mode(False):
        pairs = [(math.cos(angle), math.sin(angle)) for angle in angles]
        return torch.tensor(pairs, dtype=torch.float64).to(device)


def exp_exactly(x: Tensor) -> Tensor:
    """eˣ from +, ×, ÷ alone, so that all devices agree to the bit; within x³/12288 of eˣ.

    ((1 + x/64) / (1 − x/64))³², for |x| well below 64. Facts: exp_exactly(0) = 1 exactly;
    increasing; relative error below 0.3 % for |x| ≤ 3.
    """
    step = x * 2.0 ** -(_EXP_DOUBLINGS + 1)
    y = (step + 1) / (1 - step)
    for _ in range(_EXP_DOUBLINGS):
        y = y * y
    return y


def units_of(bits: Tensor) -> Tensor:
    """k/2²⁴ in [0, 1), float32, of 32 random bits each."""
    return (bits >> 8).to(torch.float32) * 2.0**-24


def normals_of(bits: Tensor) -> Tensor:
    """Standard normals, float32, of 32 random bits each: see `Draws.normal`."""
    cell = bits >> (32 - _TABLE_BITS)
    rest = bits & (2 ** (32 - _TABLE_BITS) - 1)
    within = rest.to(torch.float32) * 2.0 ** -(32 - _TABLE_BITS)
    table = _normal_table(bits.device)
    low = table[cell]
    return low + (table[cell + 1] - low) * within


def counters(name: str, count: int) -> Tensor:
    """key(name) + e·G for the elements e of a draw: (count,) int64, on the CPU."""
    return torch.arange(count, dtype=torch.int64) * GAMMA_SIGNED + name_key(name)


class Draws:
    """Named random draws for a batch of samples.

        draws = Draws(seed=7, indices=range(100, 148), device="cuda")
        gain = draws.uniform("gain", (3,), 0.8, 1.2)          # (48, 3)

    seed: any integer. indices: (n,) which samples these are, integers or an int64 tensor. A name is
    a draw: asking twice for one name gives the same numbers. A draw of a larger shape begins with
    the draw of the smaller one, as far as the leading axis goes.
    """

    def __init__(
        self,
        seed: int,
        indices: Sequence[int] | Tensor,
        device: torch.device | str | None = None,
    ) -> None:
        where = torch.as_tensor(indices, dtype=torch.int64)
        if where.ndim != 1:
            raise ArgumentError(
                f"Draws: indices have shape {tuple(where.shape)}, wanted (n,): one integer a sample"
            )
        self.seed, self.given = int(seed), where
        if device is not None:
            where = where.to(device, non_blocking=True)
        self.indices = where
        self.device = where.device
        self._base = mix(where * GAMMA_SIGNED + _signed(mix_integer(self.seed)))  # (n,)

    def __len__(self) -> int:
        return len(self.indices)

    def of(self, places: Tensor) -> Draws:
        """The draws of some of the samples. places: among the indices, on the host"""
        return Draws(self.seed, self.given.cpu()[places], self.device)

    def where_it_happens(self, name: str, probability: float) -> Tensor:
        """The places of these samples, on the host: (k,) int64.

        Nothing waits for a device, unless the indices were given on one.
        """
        return Draws(self.seed, self.given.cpu()).happens(name, (), probability).nonzero()[:, 0]

    def words(self, name: str, shape: tuple[int, ...] = ()) -> Tensor:
        """64 random bits an element, as int64: (n, *shape)."""
        count = math.prod(shape)
        element = torch.arange(count, dtype=torch.int64, device=self.device) * GAMMA_SIGNED
        return mix(self.start(name)[:, None] + element).view(len(self), *shape)

    def start(self, name: str) -> Tensor:
        """What is mixed for element 0 of a draw, (n,) int64; each element after it is G further."""
        return self._base + name_key(name)

    def bits(self, name: str, shape: tuple[int, ...] = ()) -> Tensor:
        """32 random bits an element, int64 in [0, 2³²): (n, *shape)."""
        return (self.words(name, shape) >> 32) & 0xFFFFFFFF

    def uniform(
        self, name: str, shape: tuple[int, ...] = (), low: float = 0.0, high: float = 1.0
    ) -> Tensor:
        """Uniform in [low, high): low + (high − low)·k/2²⁴, float32, (n, *shape)."""
        unit = self._units(name, shape)
        if (low, high) == (0.0, 1.0):
            return unit
        return unit * (high - low) + low

    def normal(
        self, name: str, shape: tuple[int, ...] = (), mean: float = 0.0, std: float = 1.0
    ) -> Tensor:
        """Normal, float32, (n, *shape): the quantile of a uniform, linear between 2¹⁴ + 1 knots.

        Facts: |draw − mean| ≤ 4.5 std; symmetric; variance within 0.1 % of std².
        """
        draw = self._normals(name, shape)
        if std != 1.0:
            draw = draw * std
        return draw + mean if mean != 0.0 else draw

    def _units(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return units_of(self.bits(name, shape))

    def _normals(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return normals_of(self.bits(name, shape))

    def log_normal(self, name: str, shape: tuple[int, ...] = (), sigma: float = 1.0) -> Tensor:
        """e^(sigma·N(0, 1)), median 1, float32, (n, *shape); see `exp_exactly`."""
        return exp_exactly(self.normal(name, shape, std=sigma))

    def integers(self, name: str, shape: tuple[int, ...], low: int, high: int) -> Tensor:
        """Integers low ≤ k < high, int64, (n, *shape)."""
        if not 0 < high - low <= 2**31:
            raise ArgumentError(
                f"Draws.integers: {name!r} asks for {low} ≤ k < {high}; "
                "wanted a range of 1 to 2³¹ integers"
            )
        return ((self.bits(name, shape) * (high - low)) >> 32) + low

    def happens(self, name: str, shape: tuple[int, ...], probability: float) -> Tensor:
        """True with the given probability, bool, (n, *shape)."""
        return self.uniform(name, shape) < probability

    def choice(self, name: str, shape: tuple[int, ...], weights: Sequence[float]) -> Tensor:
        """Index k with probability weights[k] / Σ weights, int64, (n, *shape)."""
        total = float(sum(weights))
        if not weights or min(weights) < 0 or total <= 0:
            raise ArgumentError(
                f"Draws.choice: {name!r} has weights {tuple(weights)}; "
                "wanted numbers that are not negative, with a positive sum"
            )
        unit = self.uniform(name, shape)
        index = torch.zeros_like(unit, dtype=torch.int64)
        reached = 0.0
        for weight in weights[:-1]:
            reached += weight
            index += unit >= reached / total
        return index

    def direction(self, name: str, shape: tuple[int, ...] = ()) -> Tensor:
        """A unit vector of uniform angle, float64, (n, *shape, 2): one of 2¹⁴ around the circle.

        Read from a table made on the CPU, since sines and roots differ between devices.
        """
        return _circle_table(self.device)[self.bits(name, shape) >> (32 - _TABLE_BITS)]
