"""What checking a budget found: records that every form of the report is drawn from."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["passed", "failed", "error"]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One limit of one budget. Numbers are in SI units; ``margin`` is the share of the limit that is left, negative where it is passed."""

    limit: str
    """The key of the budget file: max_params, ..., max_regression."""
    quantity: str
    measured: float
    allowed: float
    """The limit itself; of a regression the largest value that the baseline allows."""
    margin: float | None
    """null where the limit is zero and something was measured."""
    passed: bool
    text: str
    """What was measured, for a reader: ``params 146,826``; of a regression ``params +2.1 %``."""
    limit_text: str
    """What is allowed: ``at most 150,000 (2.1 % left)``; of a regression ``at most +5.0 % over the baseline``."""
    baseline: float | None = None
    """What the baseline holds; null where it does not decide."""

    @property
    def message(self) -> str:
        """Both texts."""
        return f"{self.text}, {self.limit_text}"

    @property
    def name(self) -> str:
        """The limit, and of a regression its quantity."""
        return self.limit if self.baseline is None else f"{self.limit} ({self.quantity})"


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """One of the layers that a failed budget is due to: by how much it grew over the baseline, or what it takes without one.

    ``amounts`` are by field of a layer: counts, B, ms.
    """

    layer: str
    amounts: dict[str, float]
    text: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One budget, checked. ``error`` is why it could not be."""

    budget: str
    model: str
    file: str
    line: int | None
    status: Status
    measures: tuple[Measure, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    against: str = ""
    """The baseline that the culprits are held against, empty where there is none."""
    notes: tuple[str, ...] = ()
    error: str | None = None

    @property
    def failed(self) -> tuple[Measure, ...]:
        """The measures over their limit."""
        return tuple(measure for measure in self.measures if not measure.passed)


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """All budgets of a file."""

    schema: Literal["modelstat-check/1"] = "modelstat-check/1"
    version: str
    file: str
    outcomes: tuple[Outcome, ...]

    def of(self, status: Status) -> tuple[Outcome, ...]:
        """The outcomes with a status."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == status)

    @property
    def verdict(self) -> str:
        """One line: ``3 budgets: 1 passed, 2 failed``."""
        parts = [f"{len(self.of(status))} {word}" for status, word in WORDS.items() if self.of(status)]
        return f"{len(self.outcomes)} {'budget' if len(self.outcomes) == 1 else 'budgets'}: {', '.join(parts)}"


WORDS: dict[Status, str] = {"passed": "passed", "failed": "failed", "error": "could not be checked"}
