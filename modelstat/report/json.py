"""The contract as JSON text: one document, or an array where there are several batches or precisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import msgspec

from modelstat.report.document import Document


def encode(documents: Sequence[Document], *, indent: int = 2) -> str:
    """JSON text: an object for one document, an array for several (and for none)."""
    data = msgspec.json.encode(documents[0] if len(documents) == 1 else list(documents))
    return msgspec.json.format(data, indent=indent).decode()


def write(documents: Sequence[Document], file: TextIO) -> None:
    """Write the documents to ``file`` as JSON, with a final newline."""
    file.write(encode(documents) + "\n")
