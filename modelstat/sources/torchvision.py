"""Models of torchvision: classification, segmentation, detection, video, optical flow, and the float form of its quantised ones."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from modelstat.sources.detection import COUNTS, counts_note, fix_counts
from modelstat.sources.inputs import InputPlan, TensorPlan, parse_inputs
from modelstat.sources.zoo import Made, ZooSource, image_side, square

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

FIXED_SIZE: dict[str, str] = {"torchvision.models.vision_transformer": "image_size", "torchvision.models.maxvit": "input_size"}
"""Modules whose constructors fix the image size, and the argument that sets it."""

TASK_INPUTS: dict[str, tuple[str, str]] = {
    "segmentation": ("3x520x520", "the size that torchvision evaluates its segmentation models at"),
    "detection": ("3x800x800", "the size that torchvision counts the operations of its detection models at"),
    "optical_flow": ("3x512x512,3x512x512", "two frames, each side a multiple of 8 and at least 128"),
}
"""Default inputs of the tasks whose weights name no crop size, by the subpackage of torchvision.models."""

CLIP_FRAMES = 16
"""Frames of a video clip, as torchvision's video models are trained on."""


class TorchvisionSource(ZooSource):
    """``torchvision:NAME``, every name of ``torchvision.models.list_models()``."""

    package: ClassVar[str] = "torchvision"
    origin: ClassVar[str] = "torchvision"
    examples: ClassVar[tuple[str, ...]] = ("resnet50", "mobilenet_v3_large")
    pretrained: ClassVar[frozenset[str]] = frozenset({"weights", "weights_backbone", "pretrained", "pretrained_backbone"})

    @classmethod
    def names(cls) -> list[str]:
        """All names of torchvision."""
        from torchvision.models import list_models

        return list(list_models())

    @property
    def _builder(self) -> Callable[..., nn.Module]:
        from torchvision.models import get_model_builder

        builder: Callable[..., nn.Module] = get_model_builder(self.name)
        return builder

    @property
    def _task(self) -> str:
        """Subpackage of torchvision.models, empty for classification."""
        parts = self._builder.__module__.split(".")
        return parts[2] if len(parts) > 3 else ""

    def default_inputs(self) -> tuple[InputPlan, str]:
        """The evaluation size that torchvision publishes for the model, or the one its arguments ask for."""
        if self._task in TASK_INPUTS:
            text, reason = TASK_INPUTS[self._task]
            return parse_inputs(text), reason
        argument = FIXED_SIZE.get(self._builder.__module__)
        if argument in self.arguments:
            height, width = _pair(self.arguments[argument])
            return InputPlan((TensorPlan((3, height, width)),)), f"the model's {argument}"
        from torchvision.models import get_model_weights

        weights = get_model_weights(self.name)
        if not list(weights):
            return parse_inputs("3x224x224"), "torchvision has no weights for it, so the size that its image models are usually trained at"
        default = weights.DEFAULT
        height, width = _pair(default.transforms.keywords["crop_size"])
        frames = (CLIP_FRAMES,) if self._task == "video" else ()
        return InputPlan((TensorPlan((3, *frames, height, width)),)), f"torchvision's crop size for {type(default).__name__}.{default.name}"

    def prepare(self, plan: InputPlan) -> Made:
        """Add the image size where the model takes one size only."""
        arguments = dict(self.arguments)
        module = self._builder.__module__
        if module in {"torchvision.models.googlenet", "torchvision.models.inception"}:
            arguments.setdefault("init_weights", False)
        argument, side = FIXED_SIZE.get(module), image_side(plan)
        if argument and argument not in arguments and side and side != (224, 224):
            size = square(side) if argument == "image_size" else side
            if size is not None:
                arguments[argument] = size
                return Made(arguments, (f"built with {argument}={size}, since {self.name} takes images of one size only",))
        counts = {name: arguments[name] for name in COUNTS if name in arguments}
        return Made(arguments, (counts_note(self.name, counts),) if counts else ())

    def construct(self, arguments: dict[str, Any]) -> nn.Module:
        """Call the constructor, without trained weights."""
        builder = self._builder
        backbone = {"weights_backbone": None} if "weights_backbone" in inspect.signature(builder).parameters else {}
        given = {name: value for name, value in arguments.items() if name not in self.pretrained and name not in COUNTS}
        model = builder(weights=None, **backbone, **given)
        fix_counts(model, self.name, {name: arguments[name] for name in COUNTS if name in arguments})
        return model

    def call(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """A list of images for a detection model."""
        # Detection models take a list of images, each with a size of its own.
        return (list(args[0].unbind(0)),) if self._task == "detection" and len(args) == 1 and args[0].dim() == 4 else args


def _pair(size: Any) -> tuple[int, int]:
    """Height and width from a side or a pair, as torchvision writes sizes."""
    values = list(size) if isinstance(size, (list, tuple)) else [size]
    return (int(values[0]), int(values[-1]))
