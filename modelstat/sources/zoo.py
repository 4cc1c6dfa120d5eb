"""What the model libraries (torchvision, timm) have in common: a name, constructor arguments, and default inputs."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from modelstat.errors import BuildError, MissingExtraError, SourceError, UnknownModelError, UsageError
from modelstat.sources.inputs import InputPlan, parse_inputs
from modelstat.sources.source import Built, Source, package_versions
from modelstat.sources.spec import Spec, call_text

if TYPE_CHECKING:
    from torch import nn
    from typing_extensions import Self


class Made(NamedTuple):
    """What a library's constructor is called with, and what the user must be told about them."""

    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


class ZooSource(Source):
    """A model of a library. A subclass names the package and says how it makes a model and which input the model has by default."""

    package: ClassVar[str]
    pretrained: ClassVar[frozenset[str]]
    """Arguments that ask for trained weights."""

    def __init__(self, spec: Spec) -> None:
        self.name = spec.name
        self.arguments = dict(spec.arguments)
        self.spec = spec.text

    @classmethod
    def of(cls, spec: Spec, folder: Path) -> Self:
        """The source of a parsed spec. Raises UsageError if its arguments ask for trained weights."""
        source = cls(spec)
        asked = sorted(name for name in cls.pretrained & set(source.arguments) if source.arguments[name])
        if asked:
            raise UsageError(f"{spec.text}: leave {', '.join(asked)} out, trained weights are never loaded and change no count")
        return source

    def key(self) -> dict[str, str]:
        """Origin, name, arguments and versions."""
        return {
            "origin": self.package,
            "name": self.name,
            "arguments": call_text(dict(sorted(self.arguments.items()))),
            **package_versions([self.package]),
        }

    @classmethod
    def installed(cls) -> bool:
        """Whether the package can be imported; it is not imported."""
        return find_spec(cls.package) is not None

    @classmethod
    @abstractmethod
    def names(cls) -> list[str]:
        """All names that the package knows. Imports it."""

    @classmethod
    def knows(cls, name: str) -> bool:
        """Whether the package has a model by that name. Imports it."""
        return name in cls.names()

    @classmethod
    def nearest(cls, name: str) -> list[str]:
        """Known names that look like ``name``, nearest first. Imports the package."""
        from difflib import get_close_matches

        return get_close_matches(name.lower(), cls.names(), n=3)

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
        except SourceError as error:
            raise BuildError(f"{self.spec}: {error}") from error
        except Exception as error:
            spelled = call_text(made.arguments)
            raise BuildError(f"{self.package} cannot build {self.name}{spelled}: {type(error).__name__}: {one_line(error)}") from error
        return Built(model.eval(), self.call(args), kwargs, used, (*notes, *built_notes))

    @classmethod
    def require(cls) -> None:
        """Import the package. Raises MissingExtraError if it is not installed, BuildError if it does not fit the torch that is."""
        if not cls.installed():
            raise MissingExtraError(cls.package, "zoo", f"a {cls.package} model")
        try:
            import_module(cls.package)
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            raise BuildError(f"{cls.package} is installed but cannot be imported, install the version for your torch: {reason}") from error


def image_side(plan: InputPlan) -> tuple[int, int] | None:
    """Height and width (pixels) of a single image input given by its sample shape, else None."""
    if len(plan.tensors) != 1:
        return None
    shape = plan.tensors[0].sizes(1)
    return (shape[2], shape[3]) if len(shape) == 4 else None


def unknown_model(spec: str, name: str, sources: list[type[ZooSource]]) -> UnknownModelError:
    """The error for a name that none of ``sources`` knows, with the nearest names of those that are installed."""
    near, missing = [], []
    for source in sources:
        if source.installed():
            near += [f"{source.package}:{match}" for match in source.nearest(name)]
        else:
            missing.append(source.package)
    searched = " or ".join(source.package for source in sources if source.installed()) or "any model library"
    parts = [f"{spec!r} is not a model of {searched}"]
    if near:
        parts.append(f"the nearest are {', '.join(near)}")
    if missing:
        parts.append(f"{' and '.join(missing)} could not be searched (install the extra with `pip install -e '.[zoo]'`)")
    parts.append("a model of your own is named by its file, as in `modelstat path/file.py:build`")
    return UnknownModelError("; ".join(parts))


def one_line(error: BaseException) -> str:
    """The first line of an exception's text that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no message"


def square(side: tuple[int, int]) -> int | None:
    """The side of a square image, None for another one."""
    return side[0] if side[0] == side[1] else None
