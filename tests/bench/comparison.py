# SPDX-License-Identifier: Apache-2.0
"""The results of pairs of measurements: ratio, spread, and verdict on the target; as table and
JSON.

    (ours, peer) × n ─▶ [Comparison] ─▶ table row, JSON row

ratio is the median of the pairs' ratios. spread is the interquartile range of these ratios (p75 -
p25). The two sides of a pair run right after each other, so a longer disturbance of the machine
usually affects both sides. For the target Exactly, the numbers of all pairs are added instead, and
ratio is that of the two sums, because a median would hide failures in a few of the pairs.

There is a verdict if the spread is at most the ratio's distance from 1, or if there are so many
pairs that the error of their median is at most the ratio's distance from the bound."""

import math
import statistics
from dataclasses import dataclass, field
from typing import Iterable, Optional, Union

Pair = tuple[float, Optional[float]]

FEWEST_WITH_ERROR = 10  # The quartiles of fewer pairs say little about the error of their median.


@dataclass(frozen=True)
class Target:
    """A bound of the ratio: an upper bound, or with `at_least` a lower one."""

    bound: float
    at_least: bool = False

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


@dataclass(frozen=True)
class Exactly:
    """The value that the sum of our numbers over all pairs must have."""

    count: int

    def __str__(self) -> str:
        return f"ours = {self.count}"


@dataclass(frozen=True)
class AtLeast:
    """A lower bound of our number. The peer's number does not matter."""

    bound: float

    def __str__(self) -> str:
        return f"ours >= {self.bound:g}"


Bound = Union[Target, Exactly, AtLeast]


def ratio_of(ours: float, peer: float) -> float:
    """The ratio of two numbers. Two zeros give 1, because neither side is worse. If only the peer's
    number is zero, the ratio is infinite."""
    if peer == 0:
        return 1.0 if ours == 0 else math.inf
    return ours / peer


@dataclass
class Comparison:
    """The pairs of one row. If the peer cannot be measured, its number is None in every pair."""

    name: str
    unit: str
    target: Optional[Bound] = None
    pairs: list[Pair] = field(default_factory=list)

    def ours(self) -> float:
        return self._of_all(ours for ours, _ in self.pairs)

    def peer(self) -> Optional[float]:
        values = [peer for _, peer in self.pairs if peer is not None]
        return self._of_all(values) if values else None

    def _of_all(self, values: Iterable[float]) -> float:
        return sum(values) if isinstance(self.target, Exactly) else statistics.median(values)

    def _ratios(self) -> list[float]:
        return sorted(ratio_of(ours, peer) for ours, peer in self.pairs if peer is not None)

    def ratio(self) -> Optional[float]:
        ratios = self._ratios()
        if ratios and isinstance(self.target, Exactly):
            return ratio_of(self.ours(), self.peer())
        return statistics.median(ratios) if ratios else None

    def spread(self) -> Optional[float]:
        ratios = self._ratios()
        if not ratios:
            return None
        if len(ratios) == 1:
            return 0.0
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return high - low

    def error(self) -> float:
        """Two standard errors of the ratio, if the ratios of the pairs have a normal distribution: σ is
        spread / 1.349, and the standard error of a median is 1.253 σ / √n. Infinite for few pairs."""
        spread, pairs = self.spread(), len(self._ratios())
        if spread is None or pairs < FEWEST_WITH_ERROR:
            return math.inf
        return 2 * 1.253 * spread / 1.349 / math.sqrt(pairs)

    def is_noise(self) -> bool:
        """The ratios of the pairs differ more from each other than their median differs from 1, and
        the bound of the ratio is within the error of the median."""
        ratio, spread = self.ratio(), self.spread()
        if ratio is None or spread is None or spread <= abs(1 - ratio):
            return False
        return not isinstance(self.target, Target) or self.error() > abs(self.target.bound - ratio)

    def verdict(self) -> str:
        if isinstance(self.target, Exactly):
            return "met" if self.ours() == self.target.count else "NOT MET"
        if isinstance(self.target, AtLeast):
            return "met" if self.ours() >= self.target.bound else "NOT MET"
        ratio = self.ratio()
        if self.target is None or ratio is None:
            return "-"
        if self.is_noise():
            return "noise"
        return "met" if self.target.is_met(ratio) else "NOT MET"

    def as_data(self) -> dict:
        return {"name": self.name, "ours": rounded(self.ours()), "peer": rounded(self.peer()),
                "ratio": rounded(self.ratio()), "unit": self.unit, "pairs": len(self.pairs),
                "spread": rounded(self.spread())}


def rounded(value: Optional[float]) -> Optional[float]:
    """The value with six significant digits. None (JSON's null) replaces infinity and NaN, which
    JSON cannot express."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")


def as_text(value: Optional[float], digits: int = 4) -> str:
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def table(comparisons: list[Comparison]) -> str:
    head = ["row", "ours", "peer", "unit", "ratio", "spread", "target", ""]
    lines = [head] + [
        [c.name, as_text(c.ours()), as_text(c.peer()), c.unit, as_text(c.ratio(), 3), as_text(c.spread(), 2),
         str(c.target or "-"), c.verdict()] for c in comparisons]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    is_left = [i in (0, 3, 6, 7) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) if left else cell.rjust(width)
                  for cell, width, left in zip(line, widths, is_left)).rstrip() for line in lines)
