"""Models of transformers: an architecture with its default configuration, or a local configuration. The network is never asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from modelstat.errors import BuildError, ModelFileError, ModelstatError, UsageError
from modelstat.sources.inputs import InputPlan, parse_inputs
from modelstat.sources.library import Library, one_line, unknown_model
from modelstat.sources.source import Built, package_versions
from modelstat.sources.spec import Spec, call_text

if TYPE_CHECKING:
    from torch import nn

REAL_SHARE = 0.25
"""Share of the machine's memory that real weights may take: a change of precision needs them twice for a moment."""


class Named(NamedTuple):
    """What a spec leads to: the class, its configuration, and the recipe of its inputs."""

    kind: Any
    config: Any
    recipe: Any
    notes: tuple[str, ...] = ()


class HfSource(Library):
    """``hf:ARCHITECTURE`` (a ``model_type`` or a class name, default configuration) or ``hf:PATH`` (a config.json or its folder)."""

    package: ClassVar[str] = "transformers"
    origin: ClassVar[str] = "hf"
    examples: ClassVar[tuple[str, ...]] = ("bert", "gpt2", "llama", "vit")
    extra: ClassVar[str] = "hf"
    pretrained: ClassVar[frozenset[str]] = frozenset({"use_pretrained_backbone"})

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.path: Path | None = None
        self.fields: dict[str, Any] = {}
        self._digest = ""

    @classmethod
    def of(cls, spec: Spec, folder: Path) -> HfSource:
        """The source of a parsed spec. Raises ModelFileError for a path at which there is no configuration."""
        source = super().of(spec, folder)
        if "/" in spec.name or "\\" in spec.name or spec.name.endswith(".json") or spec.name in (".", ".."):
            source._read(folder / Path(spec.name).expanduser())
        return source

    def _read(self, path: Path) -> None:
        from modelstat.sources.hf_config import read_config

        self.path = path / "config.json" if path.is_dir() else path
        if not self.path.is_file():
            raise ModelFileError(
                f"{self.path} does not exist: checkpoints are never downloaded, name a local config.json or an architecture such as hf:bert"
            )
        self.fields = read_config(self.path)
        self._digest = hashlib.sha256(self.path.read_bytes()).hexdigest()

    def key(self) -> dict[str, str]:
        """Origin, name, arguments, versions, and the content of a local configuration."""
        return {
            "origin": "hf",
            "name": "" if self.path else self.name,
            "arguments": call_text(dict(sorted(self.arguments.items()))),
            "config": self._digest,
            **package_versions([self.package, "timm"]),
        }

    @classmethod
    def names(cls) -> list[str]:
        """All keys of transformers' MODEL_MAPPING_NAMES."""
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        return list(MODEL_MAPPING_NAMES)

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build it in eval mode, with the inputs of its recipe unless others are given.

        With ``weights``, a configuration whose weights would not fit the machine is shrunk in depth, and a note says so.
        """
        self.require()
        plan = parse_inputs(inputs) if inputs is not None else None
        from modelstat.sources.examples import example_inputs
        from modelstat.sources.hf_config import offline
        from modelstat.sources.weightless import build_real, build_weightless

        with offline():
            named = self.named(plan)
            used = example_inputs(named.kind, named.config, named.recipe, plan, batch, self.spec)
            if weights:
                named, shrunk = self.fitting(named)
                model, notes = self.constructed(lambda: build_real(maker(named, True))), shrunk
            else:
                model, notes = self.constructed(lambda: build_weightless(maker(named, False)))
        return Built(model.eval(), (), used.tensors, used.batch, (*used.notes, *named.notes, *notes))

    def constructed(self, build: Callable[[], Any]) -> Any:
        """What ``build`` returns. Raises BuildError, naming the spec, for what it raises."""
        try:
            return build()
        except Exception as error:
            reason = one_line(error) if isinstance(error, ModelstatError) else f"{type(error).__name__}: {one_line(error)}"
            raise BuildError(f"transformers cannot build {self.spec}: {reason}") from error

    def named(self, plan: InputPlan | None) -> Named:
        """The class and the configuration that the spec means. Raises SourceError or UsageError."""
        from modelstat.sources.hf_config import default_classes, make_config, model_class
        from modelstat.sources.recipe import find_recipe, recipes

        notes: list[str] = []
        if self.path:
            config_kind, base = default_classes(self.fields["model_type"])
            chosen = self.arguments.get("architectures", self.fields.get("architectures"))
        elif self.name in self.names():
            config_kind, base = default_classes(self.name)
            chosen = self.arguments.get("architectures")
        else:
            config_kind, base, chosen = self._config_kind(), None, self.name
        wanted = chosen[0] if isinstance(chosen, (list, tuple)) and chosen else chosen
        if wanted is None and self.path:
            notes.append(f"{self.path.name} names no architectures: {base} is built")
        if not (wanted or base):
            raise UsageError(f"{self.spec}: give architectures='CLASS', {self.name} has no base model")
        kind = model_class(str(wanted or base), config_kind)
        model_type = str(self.fields.get("model_type", config_kind.model_type))
        own = recipes("hf").get(kind.__name__) or recipes("hf").get(model_type)
        fields = self.fields or dict(own.config if own else {})
        try:
            config = make_config(config_kind, fields, self.arguments, self.spec)
        except ModelstatError:
            raise
        except Exception as error:
            raise BuildError(f"transformers cannot configure {self.spec}: {type(error).__name__}: {one_line(error)}") from error
        notes += _resized(config, plan)
        recipe = find_recipe(kind, model_type, encoder_decoder=bool(getattr(config, "is_encoder_decoder", False)))
        return Named(kind, config, recipe, tuple(notes))

    def _config_kind(self) -> Any:
        """The configuration class of a model class that was named. Raises UnknownModelError."""
        import transformers

        kind = getattr(transformers, self.name, None)
        config_kind = getattr(kind, "config_class", None)
        if config_kind is None:
            raise unknown_model(self.spec, self.name, [type(self)])
        return config_kind

    @classmethod
    def nearest(cls, name: str) -> list[str]:
        """Architectures and model classes that look like ``name``."""
        from difflib import get_close_matches

        import transformers

        # The name of a checkpoint starts with its architecture: bert-base-uncased, gpt2-medium.
        family = max((known for known in cls.names() if name.lower().startswith(known)), key=len, default=None)
        classes = [word for word in dir(transformers) if word[:1].isupper() and ("Model" in word or "For" in word)]
        close = [*get_close_matches(name.lower(), cls.names(), n=3), *get_close_matches(name, classes, n=2)]
        return list(dict.fromkeys([*close, *([family] if family else [])]))[:3]

    def fitting(self, named: Named) -> tuple[Named, tuple[str, ...]]:
        """The configuration with as many layers as fit this machine's memory, halved until they do."""
        from modelstat.sources.hf_shrink import depth, shrunk
        from modelstat.sources.weightless import build_weightless, memory_bytes

        limit = memory_bytes() * REAL_SHARE
        layers = full = depth(named.config)
        while True:
            model, _ = self.constructed(partial(build_weightless, maker(named, False)))
            size = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
            if size <= limit:
                note = f"shrunk from {full} to {layers} layers, since it must run for real and its weights do not fit this machine"
                return named, (note,) if layers < full else ()
            if layers <= 1:
                gigabytes = f"{size / 1e9:.0f} GB"
                raise BuildError(f"{self.spec} must run for real, and {gigabytes} of weights with one layer do not fit this machine")
            layers //= 2
            named = named._replace(config=shrunk(named.config, layers))


def maker(named: Named, initialize: bool) -> Callable[[], nn.Module]:
    """What constructs the model, its weights initialized or left as they are."""
    from modelstat.sources.hf_config import construct

    def make() -> nn.Module:
        model: nn.Module = construct(named.kind, named.config, initialize=initialize)
        return model

    return make


def _resized(config: Any, plan: InputPlan | None) -> list[str]:
    """Build a model of one image size for the size that it is given."""
    from modelstat.sources.zoo import image_side, square

    side = image_side(plan) if plan is not None else None
    size = getattr(config, "image_size", None)
    if side is None or size is None or side == ((size[0], size[-1]) if isinstance(size, (list, tuple)) else (size, size)):
        return []
    config.image_size = square(side) if square(side) and not isinstance(size, (list, tuple)) else list(side)
    return [f"built with image_size={config.image_size}"]
