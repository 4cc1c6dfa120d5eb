"""A grid of characters with fine lines: each cell holds 2 x 4 dots of a braille pattern, or one character put there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a braille pattern (Unicode chapter 21.1), by row and column."""


class Canvas:
    """``columns`` x ``rows`` cells. Coordinates are shares of one, from the lower left; what lies outside is not drawn."""

    def __init__(self, columns: int, rows: int, *, fine: bool) -> None:
        self.columns = columns
        self.rows = rows
        self._fine = fine
        self._dots: dict[tuple[int, int], int] = {}
        self._characters: dict[tuple[int, int], tuple[str, str]] = {}

    def line(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """A straight line."""
        steps = 4 * max(self.columns * 2, self.rows * 4)
        for step in range(steps + 1):
            share = step / steps
            self._dot(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)

    def mark(self, x: float, y: float, character: str, style: str) -> None:
        """A character at a point, over everything that was there before."""
        cell = self._cell(x, y)
        if cell is not None:
            self._characters[cell] = (character, style)

    def text(self, row: int, column: int, text: str, style: str = "") -> bool:
        """Write a text where all its cells are free of other texts; says whether it found room."""
        cells = [(row, column + offset) for offset in range(len(text))]
        inside = 0 <= row < self.rows and column >= 0 and column + len(text) <= self.columns
        if not inside or any(cell in self._characters for cell in cells):
            return False
        self._characters.update({cell: (character, style) for cell, character in zip(cells, text, strict=True)})
        return True

    def row_of(self, y: float) -> int:
        """The row, from the top, that holds a height."""
        return min(self.rows - 1, max(0, int((1.0 - y) * self.rows)))

    def column_of(self, x: float) -> int:
        """The column that holds a place on the horizontal axis."""
        return min(self.columns - 1, max(0, int(x * self.columns)))

    def line_texts(self) -> list[Text]:
        """The rows, from the top."""
        from rich.text import Text

        rows = []
        for row in range(self.rows):
            text = Text()
            for column in range(self.columns):
                put = self._characters.get((row, column))
                if put:
                    text.append(put[0], style=put[1])
                else:
                    dots = self._dots.get((row, column), 0)
                    text.append(" " if not dots else chr(BRAILLE + dots) if self._fine else ".", style="dim")
            text.rstrip()
            rows.append(text)
        return rows

    def _dot(self, x: float, y: float) -> None:
        cell = self._cell(x, y)
        if cell is None:
            return
        row, column = cell
        fine_row = min(3, int(((1.0 - y) * self.rows - row) * 4))
        fine_column = min(1, int((x * self.columns - column) * 2))
        self._dots[cell] = self._dots.get(cell, 0) | DOTS[max(fine_row, 0)][max(fine_column, 0)]

    def _cell(self, x: float, y: float) -> tuple[int, int] | None:
        if not (0.0 <= x <= 1.0 and 0.0 <= y <= 1.0):
            return None
        return self.row_of(y), self.column_of(x)
