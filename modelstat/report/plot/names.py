"""Names beside points that cover neither each other nor what is there already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import BboxBase

BLOB = 9.0
"""Width and height (points) that a point keeps free of names."""
DISTANCES = (18, 32, 50, 75, 105)
DIRECTIONS = ((0.7, -0.7), (-0.7, -0.7), (0.3, -1), (-0.3, -1), (0.7, 0.7), (-0.7, 0.7))
"""Where a name stands at the end of a thin line (points): below its point rather than above, where the roofs are."""


def draw_names(
    figure: Figure, axes: Axes, names: Iterable[tuple[str, tuple[float, float]]], places: Iterable[tuple[float, float]], colour: str
) -> None:
    """Write each name at its place, in that order, on the first side that is free; one without a free side is left out.

    ``places`` are all points that names must not cover. The figure must hold everything else.
    """
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # only then is known where things are
    inside = axes.get_window_extent()
    half = BLOB * figure.dpi / 72 / 2
    texts: list[BboxBase] = [text.get_window_extent() for text in axes.texts]
    taken = [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in axes.transData.transform(list(places) or [(1.0, 1.0)])]
    sides = _sides(colour)
    for name, place in names:
        x0, y0 = map(float, axes.transData.transform(place))
        for side in sides:
            text = axes.annotate(name, place, textcoords="offset points", fontsize="x-small", color=colour, zorder=6, **side)
            text.get_window_extent()  # puts it where it stands
            box = Text.get_window_extent(text)  # without its line
            line = _line((x0, y0), box, side)
            if (
                all(inside.contains(x, y) for x, y in box.corners())
                and not box.count_overlaps([*texts, *taken])
                and not any(each.contains(x, y) for each in texts for x, y in line)
            ):
                texts.append(box)
                taken += [Bbox.from_extents(x - 1, y - 1, x + 1, y + 1) for x, y in line]
                break
            text.remove()


def _sides(colour: str) -> list[dict[str, Any]]:
    """Where a name may stand, the best side first (offsets in points): beside its point, or further away at the end of a thin line."""
    near: list[dict[str, Any]] = [
        {"xytext": (7, 0), "ha": "left", "va": "center"}, {"xytext": (-7, 0), "ha": "right", "va": "center"},
        {"xytext": (0, 7), "ha": "center", "va": "bottom"}, {"xytext": (0, -7), "ha": "center", "va": "top"},
    ]  # fmt: skip
    far: list[dict[str, Any]] = []
    for distance in DISTANCES:
        for x, y in DIRECTIONS:
            arrow = {"arrowstyle": "-", "linewidth": 0.5, "color": colour, "relpos": (0 if x > 0 else 1, 0.5), "shrinkA": 0, "shrinkB": 2}
            far.append({"xytext": (x * distance, y * distance), "ha": "left" if x > 0 else "right", "va": "center", "arrowprops": arrow})
    return near + far


def _line(at: tuple[float, float], box: BboxBase, side: dict[str, Any]) -> list[tuple[float, float]]:
    """Places along the line from a point to its name."""
    if "arrowprops" not in side:
        return []
    end = (box.x0 if side["ha"] == "left" else box.x1, (box.y0 + box.y1) / 2)
    shares = [step / 40 for step in range(8, 39)]
    return [(at[0] + (end[0] - at[0]) * share, at[1] + (end[1] - at[1]) * share) for share in shares]
