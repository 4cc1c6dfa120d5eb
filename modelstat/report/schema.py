"""The JSON Schema (draft 2020-12) of the contract, generated from its structs: ``python -m modelstat.report.schema [FILE]``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from modelstat.report.document import Document

TITLE = "modelstat/1: a document, or an array of them for several batches or precisions"


def schema() -> dict[str, Any]:
    """The schema of what ``--format json`` writes."""
    (body,), components = msgspec.json.schema_components((Document | list[Document],), ref_template="#/$defs/{name}")
    definitions = {name: components[name] for name in sorted(components)}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": TITLE, **body, "$defs": definitions}


def text() -> str:
    """The schema as the file in docs/ holds it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys

    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text(), encoding="utf-8")
    else:
        sys.stdout.write(text())
