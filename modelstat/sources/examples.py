"""Example inputs of a model of transformers or diffusers: what a recipe says, for one configuration, one length of text and one batch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from modelstat.errors import InputError, SourceError
from modelstat.sources.inputs import InputPlan
from modelstat.sources.recipe import Evaluator, Recipe

LEFT_OUT = object()
"""The value of an input that this configuration does not have."""

TEXT_LENGTH = 128
"""Tokens of a text, where the model has positions for that many."""


class Expressions:
    """The functions that a recipe may call. Sizes are of one sample; the batch is prepended.

    Integers are real tensors, since what a model does may hang on their values (where an image stands in a text); all else is on
    the meta device.
    """

    def __init__(self, config: Any, length: int | None, batch: int) -> None:
        self.config, self.batch = config, batch
        self.length = length or min(TEXT_LENGTH, positions(config) or TEXT_LENGTH)

    def inputs(self, recipe: Recipe) -> dict[str, Any]:
        """The inputs of a recipe. Raises SourceError for a field that the configuration does not have."""
        names = ("ids", "floats", "packed", "image", "each", "rows", "ones", "zeros", "mask", "get", "side", "first",
                 "times", "bools", "patches", "audio",
                 "table", "items", "none", "samples", "counting", "where")
        evaluate = Evaluator(self._field, {name: getattr(self, name) for name in names})
        values = {name: evaluate(node) for name, node in recipe.inputs.items()}
        return {name: value for name, value in values.items() if value is not LEFT_OUT}

    def _field(self, path: str) -> Any:
        if path in ("length", "batch"):
            return getattr(self, path)
        value = self.config
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if value is None:
            raise SourceError(f"{type(self.config).__name__} has no {path}: give the inputs with --input")
        return value

    def get(self, paths: str, default: Any) -> Any:
        """The first of several fields (``a|b.c``) that is set, else a default."""
        for path in paths.split("|"):
            try:
                return self._field(path)
            except SourceError:
                continue
        return default

    def ids(self, count: int, *blocks: Any) -> Tensor:
        """int64 (batch, count + sum of blocks): a text, then blocks of one token each, given as (token, times)."""
        tokens = [ordinary_token(self.config)] * count
        for token, times in blocks:
            tokens += [token] * times
        return torch.tensor([tokens] * self.batch, dtype=torch.int64, device="cpu")

    def floats(self, *sizes: int) -> Tensor:
        """float32 (batch, *sizes)."""
        return torch.empty((self.batch, *sizes), device="meta")

    def packed(self, rows: int, *sizes: int) -> Tensor:
        """float32 (batch x rows, *sizes): samples one after another in the first axis."""
        return torch.empty((self.batch * rows, *sizes), device="meta")

    def image(self, channels: int, size: Any, *before: int) -> Tensor:
        """float32 (batch, *before, channels, height, width); ``size`` is a side, a pair or a mapping with height and width."""
        return torch.empty((self.batch, *before, channels, *self.side(size)), device="meta")

    def side(self, size: Any) -> tuple[int, int]:
        """Height and width of a size as configurations write it."""
        if isinstance(size, Mapping):
            return (size["height"], size["width"]) if "height" in size else (size["shortest_edge"],) * 2
        return (size[0], size[-1]) if isinstance(size, (list, tuple)) else (size, size)

    def first(self, value: Any) -> Any:
        """The first item of a list; anything else as it is."""
        return value[0] if isinstance(value, (list, tuple)) else value

    def times(self, *values: Any) -> int:
        """The product of numbers and lists of numbers."""
        return prod(prod(value) if isinstance(value, (list, tuple)) else value for value in values)

    def each(self, value: Any) -> Tensor:
        """int64 (batch, ...): the same values for every sample."""
        return torch.tensor([value] * self.batch, dtype=torch.int64, device="cpu")

    def rows(self, value: Any) -> Tensor:
        """int64 (batch x rows, ...): the same rows for every sample, one sample after another."""
        return torch.tensor(list(value) * self.batch, dtype=torch.int64, device="cpu")

    def patches(self, path: str, rows: int) -> Tensor:
        """float32 (batch x rows, values): the patches of an image, for the vision configuration at a path (empty: the model's own)."""
        at = f"{path}." if path else ""
        channels = self.get(f"{at}in_channels|{at}num_channels|{at}in_chans", 3)
        side = self.first(self._field(f"{at}patch_size"))
        return self.packed(rows, channels * self.get(f"{at}temporal_patch_size", 1) * side**2)

    def audio(self, bins: int, frames: int) -> Tensor:
        """float32 (batch, bins, frames): a spectrogram, time last."""
        return self.floats(bins, frames)

    def table(self, *sizes: int) -> Tensor:
        """float32 (*sizes): the same for all samples, without a batch."""
        return torch.empty(sizes, device="meta")

    def samples(self, *sizes: int) -> list[Tensor]:
        """A list of one float32 (*sizes) for each sample."""
        return [self.table(*sizes) for _ in range(self.batch)]

    def counting(self, count: int) -> Tensor:
        """int64 (count): 0, 1, 2, ... for all samples."""
        return torch.arange(count, device="cpu")

    def items(self, *values: Any) -> list[Any]:
        """A list."""
        return list(values)

    def where(self, path: str, wanted: Any, value: Any) -> Any:
        """A value where a field of the configuration is as wanted; otherwise there is no such input."""
        return value if self.get(path, None) == wanted else LEFT_OUT

    def none(self) -> None:
        """An argument that must be there and may be empty."""

    def ones(self, *sizes: int) -> Tensor:
        """int64 ones (batch, *sizes)."""
        return torch.ones((self.batch, *sizes), dtype=torch.int64, device="cpu")

    def zeros(self, *sizes: int) -> Tensor:
        """int64 zeros (batch, *sizes)."""
        return torch.zeros((self.batch, *sizes), dtype=torch.int64, device="cpu")

    def bools(self, *sizes: int) -> Tensor:
        """bool ones (batch, *sizes)."""
        return torch.ones((self.batch, *sizes), dtype=torch.bool, device="cpu")

    def mask(self, count: int, ones: int) -> Tensor:
        """bool (batch, count), of which the first ``ones`` are true."""
        return (torch.arange(count, device="cpu") < ones).expand(self.batch, count).clone()


def positions(config: Any) -> int | None:
    """How many positions a model has embeddings for, None if it does not say."""
    for name in ("max_position_embeddings", "n_positions", "max_target_positions"):
        for holder in (config, getattr(config, "text_config", None)):
            value = None if holder is None or isinstance(holder, Mapping) else getattr(holder, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def ordinary_token(config: Any) -> int:
    """The smallest token id that means nothing in particular."""
    special: set[Any] = {0}
    for holder in (config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))):
        for name, value in vars(holder).items() if holder is not None and not isinstance(holder, Mapping) else ():
            if name.endswith(("token_id", "token_index", "token_ids")):
                special.update(value if isinstance(value, (list, tuple)) else (value,))
    return next(token for token in range(len(special) + 1) if token not in special)


class Examples(NamedTuple):
    """The inputs of one call by name, the batch that they hold (None where the shapes are literal), and how they came about."""

    tensors: dict[str, Any]
    batch: int | None
    notes: tuple[str, ...] = ()


def example_inputs(kind: Any, config: Any, recipe: Recipe | None, plan: InputPlan | None, batch: int | None, spec: str) -> Examples:
    """What a model class is called with.

    Without a plan, what its recipe says. A plan's one unnamed input takes the place of the main one, and the recipe gives the others (a
    decoder's ids, of the same length); inputs that are given by name are all that there are.

    Raises InputError for more unnamed inputs than the forward has arguments, SourceError where there is no recipe.
    """
    if plan is None:
        if recipe is None:
            raise InputError(f"{spec}: no input is known for {kind.__name__}, give it with --input NAME=SHAPE[:dtype]")
        used = 1 if batch is None else batch
        if used < 1:
            raise InputError(f"--batch {batch}: a batch is at least 1")
        tensors = Expressions(config, None, used).inputs(recipe)
        return Examples(tensors, used, (f"input {described(tensors)}: an example for {kind.__name__}",))
    args, kwargs, used_batch = plan.build(batch)
    names = list(inspect.signature(kind.forward).parameters)[1:]
    main = next(iter(recipe.inputs)) if recipe else names[0]
    order = [main, *(name for name in names if name != main)]
    if len(args) > len(order):
        raise InputError(f"{spec}: {len(args)} inputs without a name, {kind.__name__} takes {len(order)}")
    given = dict(zip(order, args, strict=False))
    given.update(kwargs)
    if recipe is not None and len(args) == 1 and not kwargs:
        length = args[0].shape[1] if args[0].dim() == 2 else None
        rest = Expressions(config, length, args[0].shape[0]).inputs(recipe)
        if isinstance(rest[main], Tensor) and not rest[main].is_floating_point() and plan.tensors[0].dtype is None:
            given[main] = given[main].to(rest[main].dtype)
        given = {**rest, **given}
    return Examples({name: _with_values(value, config) for name, value in given.items()}, used_batch, _too_long(config, given.get(main)))


def described(tensors: Mapping[str, Any]) -> str:
    """Inputs as ``--input`` spells them, batch included: ``input_ids=1x128:int64``."""
    parts = []
    for name, value in tensors.items():
        if isinstance(value, Tensor):
            kind = "" if value.dtype == torch.float32 else ":" + str(value.dtype).removeprefix("torch.")
            parts.append(f"{name}={'x'.join(map(str, value.shape)) or 'scalar'}{kind}")
        else:
            parts.append(f"{name}={value!r}" if not isinstance(value, (list, tuple, dict)) else f"{name}=...")
    return ", ".join(parts)


def _with_values(value: Any, config: Any) -> Any:
    """Integers given by shape alone become ordinary token ids."""
    if not isinstance(value, Tensor) or not value.is_meta or value.dtype not in (torch.int64, torch.int32):
        return value
    return torch.full(value.shape, ordinary_token(config), dtype=value.dtype, device="cpu")


def _too_long(config: Any, value: Any) -> tuple[str, ...]:
    limit = positions(config)
    if limit is None or not isinstance(value, Tensor) or value.is_floating_point() or value.dim() != 2 or value.shape[1] <= limit:
        return ()
    return (f"{value.shape[1]} tokens are more than the {limit} positions of the configuration",)
