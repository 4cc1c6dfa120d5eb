"""Models of diffusers: UNets and diffusion transformers, by their class and with their default configuration."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from modelstat.errors import BuildError
from modelstat.sources.inputs import parse_inputs
from modelstat.sources.library import Library, one_line, unknown_model
from modelstat.sources.source import Built
from modelstat.sources.spec import call_text

if TYPE_CHECKING:
    from torch import nn

PARTS = ("diffusers.models.unets.", "diffusers.models.transformers.")
"""Where diffusers keeps its denoising networks."""


class DiffusersSource(Library):
    """``diffusers:CLASS(argument=value)``, the classes of diffusers' UNets and transformers."""

    package: ClassVar[str] = "diffusers"
    origin: ClassVar[str] = "diffusers"
    examples: ClassVar[tuple[str, ...]] = ("UNet2DConditionModel", "SD3Transformer2DModel")
    extra: ClassVar[str] = "hf"
    pretrained: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def names(cls) -> list[str]:
        """All classes of models in diffusers' UNets and transformers."""
        import diffusers

        kinds = {name: getattr(diffusers, name, None) for name in dir(diffusers) if name[:1].isupper()}
        return sorted(
            name
            for name, kind in kinds.items()
            if isinstance(kind, type) and issubclass(kind, diffusers.ModelMixin) and kind.__module__.startswith(PARTS)
        )

    @classmethod
    def nearest(cls, name: str) -> list[str]:
        """Classes that look like ``name``."""
        from difflib import get_close_matches

        return get_close_matches(name, cls.names(), n=3)

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build it in eval mode, with the inputs of its recipe unless others are given."""
        self.require()
        if not self.knows(self.name):
            raise unknown_model(self.spec, self.name, [type(self)])
        import diffusers

        from modelstat.sources.examples import example_inputs
        from modelstat.sources.hf_config import offline
        from modelstat.sources.recipe import recipes
        from modelstat.sources.weightless import build_real, build_weightless

        plan = parse_inputs(inputs) if inputs is not None else None
        kind = getattr(diffusers, self.name)
        recipe = recipes("diffusers").get(self.name)
        arguments = {**(recipe.config if recipe else {}), **self.arguments}

        def construct() -> nn.Module:
            made: nn.Module = kind(**arguments)
            return made

        with offline():
            given = example_inputs(kind, _configuration(kind, arguments), recipe, plan, batch, self.spec)
            try:
                model, notes = (build_real(construct), ()) if weights else build_weightless(construct)
            except Exception as error:
                spelled = call_text(arguments)
                raise BuildError(f"diffusers cannot build {self.name}{spelled}: {type(error).__name__}: {one_line(error)}") from error
        return Built(model.eval(), (), given.tensors, given.batch, (*given.notes, *notes))


def _configuration(kind: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """All fields of a class: its constructor's defaults, and the arguments."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(kind.__init__).parameters.items()
        if parameter.default is not parameter.empty
    }
    return {**defaults, **arguments}
