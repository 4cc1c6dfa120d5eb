"""Configurations and classes of transformers, found without ever asking the network."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from modelstat.errors import BuildError, ModelFileError, UnknownModelError, UsageError

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

BUILD_OPTIONS = ("architectures", "attn_implementation", "experts_implementation", "dtype", "torch_dtype", "use_cache", "num_labels")
"""Arguments that every configuration takes, whether it has such a field or not."""

PER_LAYER = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types", "attention_types")
"""Fields with one item for each layer."""


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Nothing is asked of the network, and transformers says no more than errors; afterwards all is as before.

    The environment is read when the hub's client is imported, so its constants are set too where that has happened.
    """
    before = {name: os.environ.get(name) for name in OFFLINE}
    os.environ.update(OFFLINE)
    try:
        import huggingface_hub.constants as hub
        from transformers.utils import logging

        verbosity, hub_offline = logging.get_verbosity(), hub.HF_HUB_OFFLINE
        logging.set_verbosity(50)  # critical: above what a build may say
        hub.HF_HUB_OFFLINE = True
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            hub.HF_HUB_OFFLINE = hub_offline
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def read_config(path: Path) -> dict[str, Any]:
    """The fields of a configuration file. Raises ModelFileError if it is not one."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        where = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ModelFileError(f"{path}{where} is not JSON: {getattr(error, 'msg', error)}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("model_type"), str):
        raise ModelFileError(f"{path}: a configuration is a mapping with a model_type, as in {{\"model_type\": \"bert\"}}")
    return fields


def default_classes(name: str) -> tuple[Any, str | None]:
    """Configuration class and name of the model class of a ``model_type``.

    Raises UnknownModelError for one that transformers does not know; the model class is None where it has no base model.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    if name not in CONFIG_MAPPING:
        raise UnknownModelError(f"transformers knows no model_type {name!r}, code of a checkpoint's own is not run")
    found = MODEL_MAPPING_NAMES.get(name)
    return CONFIG_MAPPING[name], found if found is None or isinstance(found, str) else found[0]


def make_config(kind: Any, fields: Mapping[str, Any], arguments: Mapping[str, Any], spec: str) -> Any:
    """A configuration from a file's (or a recipe's) fields and the user's arguments, nested ones merged.

    Raises UsageError for an argument that the configuration does not know, which transformers would swallow.
    """
    given = _merged(fields, {name: value for name, value in arguments.items() if name not in ("architectures", "use_cache")})
    if "model_type" in fields:
        config = kind.from_dict(copy.deepcopy(given))
    else:
        config = kind(**copy.deepcopy({name: _completed(kind, name, value) for name, value in given.items()}))
    _check_names(config, kind, fields, arguments, spec)
    _set_everywhere(config, "use_cache", bool(arguments.get("use_cache", False)))
    return config


def _completed(kind: Any, name: str, value: Any) -> Any:
    """A nested configuration with the defaults that it has inside this one, not those of its own class."""
    if isinstance(value, Mapping):
        with contextlib.suppress(Exception):
            inner = getattr(kind(), name)
            default = inner if isinstance(inner, Mapping) else _differing(inner)
            if value.get("model_type", default.get("model_type")) == default.get("model_type"):
                return _merged(default, value)
    return value


def _differing(config: Any) -> dict[str, Any]:
    """The fields in which a configuration differs from the default of its class: the others may follow from what is changed."""
    own = type(config)().to_dict()
    fields = {name: value for name, value in config.to_dict().items() if name not in own or own[name] != value}
    return {"model_type": config.model_type, **fields}


def _merged(fields: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(fields)
    for name, value in arguments.items():
        inner = merged.get(name)
        merged[name] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    layers = arguments.get("num_hidden_layers")
    for name in PER_LAYER if isinstance(layers, int) else ():
        if name not in arguments and isinstance(merged.get(name), list):
            merged[name] = merged[name][:layers]
    return merged


def _check_names(config: Any, kind: Any, fields: Mapping[str, Any], arguments: Mapping[str, Any], spec: str) -> None:
    from difflib import get_close_matches

    try:
        known = set(dir(kind())) | set(dir(kind))
    except Exception:
        return
    known |= {*fields, *BUILD_OPTIONS, *getattr(kind, "attribute_map", {}), *getattr(kind, "sub_configs", {})}
    for name in arguments:
        if name not in known and not _asked_for(kind, name):
            near = get_close_matches(name, sorted(word for word in known if not word.startswith("_")), n=3)
            hint = f", did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(f"{spec}: {kind.__name__} has no field {name!r}{hint}")


def _asked_for(kind: Any, name: str) -> bool:
    """Whether the layers ask for a field that their configuration class does not declare, as Qwen3-MoE's do for ``head_dim``."""
    try:
        module = find_spec(kind.__module__.replace("configuration_", "modeling_"))
        text = Path(module.origin).read_text(encoding="utf-8") if module is not None and module.origin else ""
    except (ImportError, ValueError, OSError):
        return False
    return f'getattr(config, "{name}"' in text


def _set_everywhere(config: Any, name: str, value: Any) -> None:
    """Set a field in a configuration and in those inside it, where it exists."""
    for holder in configs_in(config):
        if hasattr(holder, name):
            with contextlib.suppress(AttributeError):
                setattr(holder, name, value)


def configs_in(config: Any) -> Iterator[Any]:
    """A configuration and all that are nested in it."""
    from transformers import PretrainedConfig

    yield config
    for value in list(vars(config).values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, PretrainedConfig):
                yield from configs_in(item)


def model_class(name: str, config_kind: Any = None) -> Any:
    """A model class of transformers by name, or from the module beside its configuration where it is not exported.

    Raises UnknownModelError with the nearest names.
    """
    import transformers

    with contextlib.suppress(AttributeError):
        return getattr(transformers, name)
    if config_kind is not None:
        module = config_kind.__module__.replace("configuration_", "modeling_")
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(import_module(module), name)
    from difflib import get_close_matches

    near = get_close_matches(name, [word for word in dir(transformers) if word[:1].isupper()], n=3)
    raise UnknownModelError(f"transformers has no class {name!r}{', the nearest are ' + ', '.join(near) if near else ''}")


def construct(kind: Any, config: Any, *, initialize: bool) -> Any:
    """A model from its configuration, its weights initialized or left as they were allocated."""
    if initialize:
        return _from_config(kind, config)
    with _no_init():
        model = _from_config(kind, config)
    # Without initialization the weights are not tied either.
    model.tie_weights()
    return model


def _from_config(kind: Any, config: Any) -> Any:
    if not hasattr(kind, "_from_config"):
        raise BuildError(f"{kind.__name__} is not a model class")
    # Its configuration is written to while it is built.
    return kind._from_config(copy.deepcopy(config))


def _no_init() -> Any:
    for module in ("transformers.initialization", "transformers.modeling_utils"):
        with contextlib.suppress(ImportError, AttributeError):
            return import_module(module).no_init_weights()
    print("modelstat: this version of transformers initializes every weight, which takes longer", file=sys.stderr)
    return contextlib.nullcontext()
