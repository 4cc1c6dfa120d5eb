"""Models of timm. A tag after the name (``resnet50.a1_in1k``) only chooses the default input, since no weights are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from modelstat.sources.inputs import InputPlan, TensorPlan
from modelstat.sources.zoo import Made, ZooSource, image_side, square

if TYPE_CHECKING:
    from torch import nn


class TimmSource(ZooSource):
    """``timm:NAME``, every name of ``timm.list_models()``, with a pretrained tag or without."""

    package: ClassVar[str] = "timm"
    origin: ClassVar[str] = "timm"
    examples: ClassVar[tuple[str, ...]] = ("vit_base_patch16_224", "convnext_tiny")
    pretrained: ClassVar[frozenset[str]] = frozenset({"pretrained", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay"})

    @classmethod
    def names(cls) -> list[str]:
        """All names of timm."""
        from timm.models import list_models

        return list(list_models())

    @classmethod
    def knows(cls, name: str) -> bool:
        """Whether timm has the architecture, and the tag if one is given."""
        from timm.models import get_arch_pretrained_cfgs, is_model

        architecture, _, tag = name.partition(".")
        return bool(is_model(architecture)) and (not tag or name in get_arch_pretrained_cfgs(architecture))

    @classmethod
    def nearest(cls, name: str) -> list[str]:
        """Known names that look like ``name``: of its tags, where only the tag is unknown."""
        from timm.models import get_arch_pretrained_cfgs, is_model

        architecture, _, tag = name.partition(".")
        if tag and is_model(architecture):
            return sorted(get_arch_pretrained_cfgs(architecture))[:3]
        return super().nearest(architecture)

    def _config(self) -> tuple[tuple[int, int, int], bool]:
        """Channels, height and width of the model's default input, and whether it takes images of that size only."""
        from timm.models import get_pretrained_cfg

        config = get_pretrained_cfg(self.name)
        if config is None:
            return (3, 224, 224), False
        channels, height, width = config.input_size
        return (channels, height, width), bool(config.fixed_input_size)

    def default_inputs(self) -> tuple[InputPlan, str]:
        """The evaluation size that timm publishes for the model, or the one its arguments ask for."""
        (channels, height, width), _ = self._config()
        reason = f"timm's default_cfg for {self.name}"
        size = self.arguments.get("img_size")
        if size is not None:
            height, width = size if isinstance(size, (tuple, list)) else (size, size)
            reason = "the model's img_size"
        channels = self.arguments.get("in_chans", channels)
        return InputPlan((TensorPlan((channels, height, width)),)), reason

    def prepare(self, plan: InputPlan) -> Made:
        """Add the image size where the model takes one size only."""
        (_, *default), fixed = self._config()
        side = image_side(plan)
        if not fixed or side is None or list(side) == default or "img_size" in self.arguments:
            return Made(dict(self.arguments))
        size = square(side) or side
        note = f"built with img_size={size}, since {self.name} takes images of one size only"
        return Made({**self.arguments, "img_size": size}, (note,))

    def construct(self, arguments: dict[str, Any]) -> nn.Module:
        """Call the constructor, without trained weights.

        ``fast_norm=True`` is no argument of the constructor but timm's global switch: norms then stay in autocast's dtype. Each norm
        keeps it as a flag, which is set afterwards: a constructor that calls its own backbone would ask for the autocast of no device.
        """
        from timm import create_model

        given = {name: value for name, value in arguments.items() if name not in self.pretrained}
        fast = given.pop("fast_norm", None)
        model: nn.Module = create_model(self.name, pretrained=False, **given)
        for module in model.modules() if fast is not None else ():
            if hasattr(module, "_fast_norm"):
                module.__dict__["_fast_norm"] = bool(fast)
        return model
