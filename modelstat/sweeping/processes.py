"""Commands that run a part of modelstat in another Python process."""

from __future__ import annotations

import os
import sys


def command(module: str) -> list[str]:
    """The command that runs ``main()`` of a module; arguments may be appended.

    The new process looks for modules exactly where this one does: it finds a modelstat that runs from a checkout, and no file of the
    working directory hides an installed module, as it would with ``python -m``.
    """
    path = [entry or os.getcwd() for entry in sys.path]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
    return [sys.executable, "-W", "ignore", "-c", code]
