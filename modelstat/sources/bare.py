"""A bare name: torchvision's model of that name, else timm's."""

from __future__ import annotations

from pathlib import Path

from modelstat.errors import ModelFileError
from modelstat.sources.library import unknown_model
from modelstat.sources.source import Built, Source, package_versions
from modelstat.sources.spec import Spec, call_text
from modelstat.sources.timm import TimmSource
from modelstat.sources.torchvision import TorchvisionSource
from modelstat.sources.zoo import ZooSource

LIBRARIES: tuple[type[ZooSource], ...] = (TorchvisionSource, TimmSource)
"""The libraries, in the order in which they are asked."""

WEIGHT_FILES = (".pt", ".pth", ".pkl", ".ckpt", ".safetensors", ".bin", ".onnx")


class BareSource(Source):
    """``NAME``: which library has it is decided when it is built, so its key names the versions of all."""

    def __init__(self, spec: Spec) -> None:
        if spec.name.lower().endswith(WEIGHT_FILES):
            raise ModelFileError(f"{spec.name!r} holds weights, not a model: name the code that builds it, `modelstat path/file.py:build`")
        self._spec = spec
        self.spec = spec.text

    def key(self) -> dict[str, str]:
        """The name, the arguments, and the versions of all libraries."""
        return {
            "origin": "bare",
            "name": self._spec.name,
            "arguments": call_text(dict(sorted(self._spec.arguments.items()))),
            **package_versions(library.package for library in LIBRARIES),
        }

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build it from the first library that has it. Raises UnknownModelError if none has."""
        for library in LIBRARIES:
            if not library.installed():
                continue
            library.require()
            if library.knows(self._spec.name):
                return library.of(self._spec, Path()).build(inputs, batch, weights=weights)
        raise unknown_model(self.spec, self._spec.name, list(LIBRARIES))
