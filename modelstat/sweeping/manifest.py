"""What a results file is of, and how it grew: a small JSON file beside it, always whole."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from modelstat import __version__
from modelstat.errors import OutputError
from modelstat.sweeping.disk import replaced
from modelstat.sweeping.grid import Grid, difference

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class Manifest(msgspec.Struct, frozen=True):
    """``commits[g]`` are the row groups that the files (results, then layers if they are wanted) had at generation ``g``.

    ``footers`` are copies of their footers as of the last one: a file that was cut off is read by it, up to its last whole row group.
    """

    modelstat: str
    grid: dict[str, Any]
    jobs: int
    commits: tuple[tuple[int, ...], ...] = ()
    footers: tuple[str, ...] = ()

    @classmethod
    def of(cls, grid: Grid) -> Manifest:
        """The manifest of a new results file."""
        return cls(__version__, grid.describe(), grid.size)

    @property
    def generation(self) -> int:
        """The last generation that it knows of."""
        return len(self.commits) - 1

    def committed(self, generation: int, footers: tuple[pq.FileMetaData, ...]) -> Manifest:
        """The manifest of the next generation, at which the files have these footers."""
        groups = tuple(int(footer.num_row_groups) for footer in footers)
        commits = (*self.commits[:generation], groups)
        return msgspec.structs.replace(self, commits=commits, footers=tuple(map(_encode, footers)))

    def footer(self, index: int) -> pq.FileMetaData:
        """The copy of a file's footer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        return pq.read_metadata(pa.BufferReader(base64.b64decode(self.footers[index])))

    def write(self, path: Path) -> None:
        """Put it on the disk in the place of the old one. Raises OSError."""
        with replaced(path) as temporary:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))

    def require(self, path: Path, grid: Grid) -> None:
        """Raises OutputError if the results at ``path`` are of another version or grid, with the choice that there is."""
        if self.modelstat != __version__:
            raise OutputError(
                f"{path} was made by modelstat {self.modelstat}, this is {__version__}: their rows do not mix. "
                f"Start anew with --overwrite, or resume it with modelstat {self.modelstat}"
            )
        other = difference(grid.describe(), self.grid)
        if other is not None:
            raise OutputError(
                f"{path} holds another grid ({other}): ask for the grid that it was made with to --resume it, "
                "or start anew with --overwrite or another --output"
            )


def read_manifest(path: Path) -> Manifest | None:
    """The manifest, None if there is none or if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def _encode(footer: pq.FileMetaData) -> str:
    file = io.BytesIO()
    footer.write_metadata_file(file)
    return base64.b64encode(file.getvalue()).decode()
