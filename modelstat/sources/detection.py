"""Detection models of torchvision with a fixed number of boxes.

How many boxes a detection model looks at hangs on its weights, and so does the work of its second stage. The arguments ``proposals`` and
``detections`` of a spec fix both numbers for one image, with boxes whose sides grow evenly up to the image's own. What would choose
the boxes (thresholds and non-maximum suppression) does not run then; it has no contractions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from modelstat.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn

COUNTS = ("proposals", "detections")
"""Arguments of a spec that the constructors do not have."""


def counts_note(name: str, counts: Mapping[str, Any]) -> str:
    """What the user must be told about fixed numbers of boxes. Raises UsageError for a number that is none."""
    for argument, count in counts.items():
        if type(count) is not int or count < 0:
            raise UsageError(f"{name}: {argument} is a number of boxes, not {count!r}")
    fixed = " and ".join(f"{count} {argument}" for argument, count in counts.items())
    return f"{fixed} for each image, as asked: what would choose them does not run"


def fix_counts(model: nn.Module, name: str, counts: Mapping[str, int]) -> None:
    """Fix the number of boxes of each image in a model. Raises UsageError for a model that has none of the kind."""
    network, heads = getattr(model, "rpn", None), getattr(model, "roi_heads", None)
    if "proposals" in counts:
        if network is None:
            raise UsageError(f"{name} has no second stage, so no proposals: only detections can be fixed")
        network.filter_proposals = _proposals(counts["proposals"])
    if "detections" in counts:
        if heads is not None:
            heads.postprocess_detections = _second_stage(counts["detections"])
        elif hasattr(model, "postprocess_detections"):
            model.postprocess_detections = _one_stage(counts["detections"])  # type: ignore[assignment]
        else:
            raise UsageError(f"{name} detects nothing: it takes neither proposals nor detections")


def boxes(count: int, size: Any, like: Tensor) -> Tensor:
    """(count, 4) corners of boxes from the upper left corner, with sides of 1/count, 2/count, ... of an image's (height, width)."""
    import torch

    height, width = size
    share = torch.arange(1, count + 1, dtype=torch.float32, device=like.device) / max(count, 1)
    zero = torch.zeros_like(share)
    return torch.stack((zero, zero, share * width, share * height), dim=1)


def _proposals(count: int) -> Callable[..., Any]:
    def filter_proposals(proposals: Tensor, objectness: Tensor, image_shapes: Any, num_anchors_per_level: Any) -> Any:
        found = [boxes(count, size, proposals) for size in image_shapes]
        return found, [box[:, 0] for box in found]

    return filter_proposals


def _second_stage(count: int) -> Callable[..., Any]:
    def postprocess_detections(class_logits: Tensor, box_regression: Tensor, proposals: Any, image_shapes: Any) -> Any:
        found = [boxes(count, size, class_logits) for size in image_shapes]
        return found, [box[:, 0] for box in found], [_labels(box) for box in found]

    return postprocess_detections


def _one_stage(count: int) -> Callable[..., Any]:
    def postprocess_detections(head_outputs: Any, anchors: Any, image_shapes: Any) -> Any:
        like = next(iter(head_outputs.values()))
        like = like[0] if isinstance(like, (list, tuple)) else like
        found = [boxes(count, size, like) for size in image_shapes]
        return [{"boxes": box, "scores": box[:, 0], "labels": _labels(box)} for box in found]

    return postprocess_detections


def _labels(box: Tensor) -> Tensor:
    import torch

    return torch.ones(box.shape[0], dtype=torch.int64, device=box.device)
