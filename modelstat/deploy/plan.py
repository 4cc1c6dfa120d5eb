"""A precision plan: which layers store their weights in how many bits, and which compute in them too."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from modelstat.errors import UsageError


class WeightFormat(msgspec.Struct, frozen=True):
    """How a quantised weight is stored.

    ``dtype`` is the name of an element's type; ``group`` how many weights of one output share a scale (None: all of them);
    ``scale_bytes`` (B) is what a group adds.
    """

    dtype: str
    group: int | None
    scale_bytes: int


WEIGHTS: dict[str, WeightFormat] = {
    # Two bytes of scale an output channel, as torch's int8 weight-only product has it.
    "int8": WeightFormat("int8", None, 2),
    # Scale and zero point of two bytes each, as torch packs them for its int4 product.
    "int4": WeightFormat("int4", 128, 4),
    # A float32 scale an output channel, as torch's scaled product takes it row by row.
    "fp8": WeightFormat("float8_e4m3fn", None, 4),
    # A float32 maximum a block of 64 (QLoRA, without its second quantisation).
    "nf4": WeightFormat("nf4", 64, 4),
}
ACTIVATIONS: dict[str, str] = {"int8": "int8", "fp8": "float8_e4m3fn"}
"""Precision of activations -> the dtype in which they are stored and multiplied."""

_PARTNERS = {"int8": ("int8", "int4", "nf4"), "fp8": ("fp8", "int4", "nf4")}
"""Weights that can be brought to the activations' dtype on the way in."""


class Rule(msgspec.Struct, frozen=True):
    """What is done to a layer. ``weights`` None leaves it as it is; ``group`` None is the format's own."""

    weights: str | None = None
    activations: str | None = None
    group: int | None = None

    def check(self, where: str) -> None:
        """Raises UsageError, which starts with ``where``, for a precision that does not exist or two that do not go together."""
        if self.weights is not None and self.weights not in WEIGHTS:
            raise UsageError(f"{where}: weights {self.weights!r}: choose from {', '.join(WEIGHTS)}")
        if self.activations is not None and self.activations not in ACTIVATIONS:
            raise UsageError(f"{where}: activations {self.activations!r}: choose from {', '.join(ACTIVATIONS)}")
        if self.group is not None and self.group < 1:
            raise UsageError(f"{where}: a group of {self.group} weights: give a whole number of at least 1, such as 128")
        if self.group is not None and self.weights is None:
            raise UsageError(f"{where}: a group size is one of quantised weights: add weights int4 or another of {', '.join(WEIGHTS)}")
        if self.activations is not None and self.weights not in _PARTNERS[self.activations]:
            have = f"not with {self.weights} ones" if self.weights else "not by themselves"
            raise UsageError(f"{where}: {self.activations} activations go with {', '.join(_PARTNERS[self.activations])} weights, {have}")


class Plan(msgspec.Struct, frozen=True):
    """A rule for all layers, and others for those whose path matches a glob; the last pattern that matches a layer decides."""

    rule: Rule = Rule()
    layers: tuple[tuple[str, Rule], ...] = ()
    name: str = "precision plan"

    def of(self, path: str) -> Rule:
        """The rule of the layer at a path.

        >>> plan = Plan(Rule("int8"), (("head", Rule()), ("layer4.*", Rule("int4"))))
        >>> plan.of("layer1.0.conv1").weights, plan.of("head").weights, plan.of("layer4.0.conv1").weights
        ('int8', None, 'int4')
        """
        matching = [rule for pattern, rule in self.layers if fnmatchcase(path, pattern)]
        return matching[-1] if matching else self.rule


def make_plan(
    weights: str | None = None, activations: str | None = None, group: int | None = None, file: str | None = None
) -> Plan | None:
    """The plan that options describe, None where they describe none. Raises UsageError, and ModelFileError for a file."""
    if file is not None:
        from modelstat.deploy.plan_file import read_plan

        if weights or activations or group is not None:
            raise UsageError(f"--plan {file} says which weights and activations: leave --weights, --activations and --group out")
        return read_plan(file)
    rule = Rule(weights, activations, group)
    rule.check("--weights" if weights else "--activations" if activations else "--group")
    return None if rule == Rule() else Plan(rule)
