"""A model from a Python file: ``path/file.py:build``, where ``build`` is a function, an nn.Module class or a module."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from modelstat.errors import BuildError, InputError, ModelFileError, ModelstatError, UsageError
from modelstat.sources.digest import digest, imports, package_root
from modelstat.sources.inputs import parse_inputs
from modelstat.sources.load import failure, import_scope, load_module
from modelstat.sources.source import Built, Source, package_versions
from modelstat.sources.spec import Spec, call_text

if TYPE_CHECKING:
    from torch import nn

DEFAULT_MEMBER = "build"


class FileSource(Source):
    """A model that a user's file builds. It stays in the mode (train or eval) that it is returned in."""

    def __init__(self, path: Path, shown: str, member: str, arguments: dict[str, Any]) -> None:
        self.path = path
        self.member = member
        self.arguments = arguments
        self.spec = f"{shown}:{member}{call_text(arguments)}"

    @classmethod
    def of(cls, spec: Spec, folder: Path) -> FileSource:
        """The source of a parsed spec. Raises ModelFileError if the file is not there."""
        path = folder / Path(spec.name).expanduser()
        if not path.is_file():
            reason = "is a folder, not a file" if path.is_dir() else "does not exist"
            raise ModelFileError(f"{path} {reason}: a model of your own is named as path/file.py:build")
        return cls(path.resolve(), str(path), spec.member or DEFAULT_MEMBER, dict(spec.arguments))

    def key(self) -> dict[str, str]:
        """The content of the file and of what it imports beside it, and the versions of what it imports from elsewhere."""
        try:
            reached = imports(self.path)
            content = digest(reached.files, package_root(self.path))
        except OSError as error:
            raise ModelFileError(f"{self.path} cannot be read: {error.strerror}") from error
        return {
            "origin": "file",
            "name": f"{self.path.name}:{self.member}",
            "path": str(self.path),
            "arguments": call_text(dict(sorted(self.arguments.items()))),
            "digest": content,
            **package_versions(reached.packages),
        }

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build it. Inputs from ``inputs`` replace the tensors that the file returns; ``batch`` alone is a UsageError."""
        plan = parse_inputs(inputs) if inputs is not None else None
        from modelstat.sources.weightless import build_real, build_weightless

        with import_scope(self.path):
            try:
                built, notes = (build_real(self._call), ()) if weights else build_weightless(self._call)
            except ModelstatError:
                raise
            except (Exception, SystemExit) as error:
                raise BuildError(failure(self._shown, error)) from error
        model, args, kwargs = self._unpack(built)
        if plan is not None:
            given, named, used = plan.build(batch, _dtype(model))
            kept = {name: value for name, value in kwargs.items() if name not in named and not _has_tensor(value)}
            return Built(model, given, {**kept, **named}, used, notes)
        if batch is not None:
            raise UsageError(f"--batch {batch} needs --input: the inputs that {self.spec} returns are used as they are")
        if not args and not kwargs:
            self._require_no_inputs(model)
        return Built(model, args, kwargs, None, notes)

    @property
    def _shown(self) -> Path:
        return Path(self.spec.partition(f":{self.member}")[0])

    def _call(self) -> Any:
        """Import the file and call what the spec names in it."""
        from torch import nn

        try:
            module = load_module(self.path)
        except (Exception, SystemExit) as error:
            raise ModelFileError(failure(self._shown, error)) from error
        try:
            member = getattr(module, self.member)
        except AttributeError:
            raise ModelFileError(self._without_member(module)) from None
        if isinstance(member, nn.Module):
            if self.arguments:
                raise UsageError(f"{self.spec}: {self.member} is a model already, it takes no arguments")
            return member
        if not callable(member):
            raise ModelFileError(f"{self.spec}: {self.member} is of type {type(member).__name__}, not a function or an nn.Module class")
        return member(**self.arguments)

    def _without_member(self, module: ModuleType) -> str:
        from torch import nn

        others = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__
            and (inspect.isfunction(value) or (isinstance(value, type) and issubclass(value, nn.Module)))
        ]
        if not others:
            return f"{self._shown} has no {self.member!r}: write a function that returns the model"
        return f"{self._shown} has no {self.member!r}: it has {', '.join(others)}, as in `modelstat {self._shown}:{others[0]}`"

    def _unpack(self, built: Any) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
        """``model``, ``(model, args)`` or ``(model, args, kwargs)`` into its three parts."""
        from torch import Tensor, nn

        model, *rest = built if isinstance(built, (tuple, list)) and built else (built,)
        args: Any = rest[0] if rest else ()
        kwargs: Any = rest[1] if len(rest) > 1 else {}
        if not isinstance(model, nn.Module) or len(rest) > 2:
            kinds = ", ".join(type(part).__name__ for part in (model, *rest))
            raise BuildError(f"{self.spec} returns ({kinds}): it must return a model, (model, args) or (model, args, kwargs)")
        # A PackedSequence is a named tuple: one input, not several.
        if isinstance(args, Tensor) or hasattr(args, "_fields"):
            args = (args,)
        if not isinstance(args, (tuple, list, type(None))) or not isinstance(kwargs, (dict, type(None))):
            kinds = f"{type(args).__name__} and {type(kwargs).__name__}"
            raise BuildError(f"{self.spec} returns inputs of type {kinds}: args must be a tuple, list or tensor, and kwargs a dict")
        return model, tuple(args or ()), dict(kwargs or {})

    def _require_no_inputs(self, model: nn.Module) -> None:
        """Raise InputError if the forward needs inputs, and none were given."""
        try:
            signature = inspect.signature(model.forward)
        except (TypeError, ValueError):
            return
        needs = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD and parameter.default is parameter.empty
        ]
        if needs:
            plain = signature.replace(
                parameters=[parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()],
                return_annotation=inspect.Signature.empty,
            )
            raise InputError(f"{self.spec} returns a model without inputs: give --input for its forward{plain}, as in --input 3x224x224")


def _dtype(model: nn.Module) -> Any:
    """The dtype of the model's first floating-point parameter: what inputs are in, where nothing else is said."""
    return next((parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()), None)


def _has_tensor(value: Any) -> bool:
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    return any(isinstance(leaf, Tensor) for leaf in tree_leaves(value))
