"""Fitted constants back into their files."""

from __future__ import annotations

import json
from typing import Any

from model_fit.fit import Free, Tables
from modelstat.predict.kernels.constants import DIRECTORY


def write(values: Tables, free: list[Free], source: str, date: str) -> list[str]:
    """Writes the fitted values into modelstat/predict/data and returns a line for each."""
    lines: list[str] = []
    for family in sorted({one.family for one in free}):
        path = DIRECTORY / f"{family}.json"
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for one in (one for one in free if one.family == family):
            entry = document[one.table][one.name]
            new = float(f"{values[one.family, one.table][one.name]:.5g}")
            lines.append(f"{family}.{one.table}.{one.name}: {entry['value']:g} -> {new:g}")
            entry["value"] = new
            entry["meaning"] = entry["meaning"].removesuffix("; assumed")
            entry["source"] = f"{source}, {date}"
            # Fitted on whole models: the fit of single kernels leaves it alone.
            entry.pop("start", None)
            entry.pop("same_as", None)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    _copy_shared()
    return lines


def _copy_shared() -> None:
    """Entries that are copies of another file's follow it."""
    documents = {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DIRECTORY.glob("*.json"))}
    for document in documents.values():
        for table in document.values():
            for entry in table.values() if isinstance(table, dict) else ():
                if isinstance(entry, dict) and "same_as" in entry:
                    family, name, constant = entry["same_as"].split(".")
                    entry["value"] = documents[DIRECTORY / f"{family}.json"][name][constant]["value"]
    for path, document in documents.items():
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
