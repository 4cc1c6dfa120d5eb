"""What the origins that are Python packages have in common: names that can be listed, and versions."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from modelstat.errors import BuildError, MissingExtraError, UnknownModelError, UsageError
from modelstat.sources.source import Source, package_versions
from modelstat.sources.spec import Spec, call_text

if TYPE_CHECKING:
    from typing_extensions import Self


class Library(Source):
    """A model of a package. A subclass names the package, the extra that installs it, and its models."""

    package: ClassVar[str]
    origin: ClassVar[str]
    """The prefix of its specs."""
    extra: ClassVar[str] = "zoo"
    examples: ClassVar[tuple[str, ...]]
    """Some of its models, for who names one that is not there."""
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
            "origin": self.origin,
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

    @classmethod
    def require(cls) -> None:
        """Import the package. Raises MissingExtraError if it is not installed, BuildError if it does not fit the torch that is."""
        if not cls.installed():
            raise MissingExtraError(cls.package, cls.extra, f"a {cls.package} model")
        try:
            import_module(cls.package)
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            raise BuildError(f"{cls.package} is installed but cannot be imported, install the version for your torch: {reason}") from error


def unknown_model(spec: str, name: str, sources: list[type[Library]]) -> UnknownModelError:
    """The error for a name that none of ``sources`` knows, with the nearest names of those that are installed."""
    near: list[str] = []
    missing: list[type[Library]] = []
    for source in sources:
        if source.installed():
            near += [f"{source.origin}:{match}" for match in source.nearest(name)]
        else:
            missing.append(source)
    searched = " or ".join(source.package for source in sources if source.installed()) or "any model library"
    parts = [f"{spec!r} is not a model of {searched}"]
    if near:
        parts.append(f"the nearest are {', '.join(near)}")
    elif len(missing) < len(sources):
        known = [f"{source.origin}:{example}" for source in sources if source not in missing for example in source.examples]
        parts.append(f"there are {', '.join(known)} and more")
    if missing:
        names, extras = " and ".join(source.package for source in missing), ",".join(dict.fromkeys(source.extra for source in missing))
        parts.append(f"{names} could not be searched (install the extra with `pip install -e '.[{extras}]'`)")
    if len(sources) > 1:
        parts.append("those of transformers and diffusers have their origin before the name, as in hf:bert")
    parts.append("a model of your own is named by its file, as in `modelstat path/file.py:build`")
    return UnknownModelError("; ".join(parts))


def one_line(error: BaseException) -> str:
    """The first line of an exception's text that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no message"
