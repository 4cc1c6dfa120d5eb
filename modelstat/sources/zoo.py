"""What the model libraries (torchvision, timm) have in common: a name, constructor arguments, and default inputs."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from modelstat.errors import BuildError, SourceError, UsageError
from modelstat.sources.inputs import InputPlan, parse_inputs
from modelstat.sources.library import Library, one_line, unknown_model
from modelstat.sources.source import Built
from modelstat.sources.spec import call_text

if TYPE_CHECKING:
    from torch import nn


class Made(NamedTuple):
    """What a library's constructor is called with, and what the user must be told about them."""

    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


class ZooSource(Library):
    """A model of a library whose inputs are positional tensors. A subclass says how it makes one, and which input it has by default."""

    @abstractmethod
    def default_inputs(self) -> tuple[InputPlan, str]:
        """The input that the package evaluates this model at, and where that is written, as the end of a sentence."""

    @abstractmethod
    def prepare(self, plan: InputPlan) -> Made:
        """The constructor's arguments for these inputs: a model of a fixed image size is built for the size that it is given."""

    @abstractmethod
    def construct(self, arguments: dict[str, Any]) -> nn.Module:
        """Call the constructor, without trained weights."""

    def call(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments of the forward, from one tensor per input."""
        return args

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build it in eval mode, at its default input unless another is given."""
        self.require()
        if not self.knows(self.name):
            raise unknown_model(self.spec, self.name, [type(self)])
        from modelstat.sources.weightless import build_real, build_weightless

        notes: list[str] = []
        if inputs is None:
            plan, reason = self.default_inputs()
            notes.append(f"input {plan}: {reason}")
        else:
            plan = parse_inputs(inputs)
        made = self.prepare(plan)
        notes.extend(made.notes)
        args, kwargs, used = plan.build(batch)

        def construct() -> nn.Module:
            return self.construct(made.arguments)

        try:
            model, built_notes = (build_real(construct), ()) if weights else build_weightless(construct)
        except UsageError:
            raise
        except SourceError as error:
            raise BuildError(f"{self.spec}: {error}") from error
        except Exception as error:
            spelled = call_text(made.arguments)
            raise BuildError(f"{self.package} cannot build {self.name}{spelled}: {type(error).__name__}: {one_line(error)}") from error
        return Built(model.eval(), self.call(args), kwargs, used, (*notes, *built_notes))


def image_side(plan: InputPlan) -> tuple[int, int] | None:
    """Height and width (pixels) of a single image input given by its sample shape, else None."""
    if len(plan.tensors) != 1:
        return None
    shape = plan.tensors[0].sizes(1)
    return (shape[2], shape[3]) if len(shape) == 4 else None


def square(side: tuple[int, int]) -> int | None:
    """The side of a square image, None for another one."""
    return side[0] if side[0] == side[1] else None
