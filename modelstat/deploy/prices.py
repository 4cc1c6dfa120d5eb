"""What a GPU costs an hour, from a file of the user's: modelstat ships no prices, they would go stale."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import msgspec

from modelstat.errors import InputError, ModelstatError
from modelstat.hardware.database import find


class Prices(msgspec.Struct, frozen=True):
    """Price of one GPU for an hour, by the key of its database row, in ``currency``."""

    hourly: dict[str, float]
    currency: str = ""


def read_prices(path: Path) -> Prices:
    """Read a TOML file.

    ::

        currency = "USD"
        [hourly]
        t4 = 0.35
        "a100 80gb" = 1.80

    Raises InputError for a file that cannot be read, a GPU that is not known and a price that is no number of at least 0.
    """
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        document = toml.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--prices {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, toml.TOMLDecodeError) as error:
        raise InputError(f"--prices {path} is not TOML: {error}") from error
    unknown = [key for key in document if key not in ("currency", "hourly")]
    table = document.get("hourly")
    if unknown or not isinstance(table, dict) or not isinstance(document.get("currency", ""), str):
        raise InputError(f"--prices {path}: write a table [hourly] with a line a GPU, such as t4 = 0.35, and currency = \"USD\" above it")
    hourly: dict[str, float] = {}
    for name, price in table.items():
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < float("inf"):
            raise InputError(f"--prices {path}: {name} = {price!r} is no price: give a number of at least 0 an hour, such as 0.35")
        try:
            gpu = find(name)
        except ModelstatError as error:
            raise InputError(f"--prices {path}: {error}") from error
        if gpu.key in hourly:
            raise InputError(f"--prices {path}: {name} is {gpu.key}, which has a price already: leave one of the two out")
        hourly[gpu.key] = float(price)
    return Prices(hourly, document.get("currency", ""))
