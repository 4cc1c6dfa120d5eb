"""From what people call a board to its row."""

from __future__ import annotations

import re
from collections.abc import Iterable

from modelstat.errors import UnknownGpuError
from modelstat.hardware.gpu import Gpu

VENDOR_WORDS = (
    "nvidia", "geforce", "rtx", "gtx", "tesla", "quadro", "jetson", "amd", "instinct", "radeon", "rx", "intel", "arc", "apple", "google",
    "aws", "gpu", "graphics", "corporation",
)  # fmt: skip
"""Words that a name may carry or lack, before or after."""

_OTHER = re.compile("[^a-z0-9]")
_GENERATION_WORDS = ("ada", "pro", "blackwell", "workstation", "edition")
NEAR = 0.7
"""How alike a name is to one that was meant: twice the characters that both have in order, over those of both."""
_BOARD = r"-(pcie|sxm\d?|nvl|(4|6|8|10|12|16|24|32|40|48|64|80|96|141|144)(gb)?|laptop|d(-v2)?|max-?q|server)$"


def compact(text: str) -> str:
    """A name without case, spaces, dashes and punctuation.

    >>> compact("RTX 2070 Super"), compact("a100_80GB")
    ('rtx2070super', 'a10080gb')
    """
    return _OTHER.sub("", text.lower())


def strippings(text: str) -> tuple[str, ...]:
    """The compact name, and what is left of it as its vendor words go one by one, those behind first.

    >>> strippings("NVIDIA GeForce RTX 2070 SUPER")
    ('nvidiageforcertx2070super', 'geforcertx2070super', 'rtx2070super', '2070super')
    """
    forms = [compact(text)]
    for position in (str.removesuffix, str.removeprefix):
        while shorter := next((rest for word in VENDOR_WORDS if (rest := position(forms[-1], word)) != forms[-1]), ""):
            forms.append(shorter)
    return tuple(forms)


def bare(text: str) -> str:
    """A compact name without its vendor words.

    >>> bare("rtx2080ti"), bare("Tesla V100-SXM2-16GB"), bare("Intel Arc A770 Graphics")
    ('2080ti', 'v100sxm216gb', 'a770')
    """
    return strippings(text)[-1]


def lookup(text: str, gpus: Iterable[Gpu]) -> Gpu:
    """The row that a name means: a key, alias or name as written, or else with fewer and fewer vendor words.

    Raises UnknownGpuError naming the nearest keys, or the candidates where several boards share the name (Quadro RTX 6000, RTX 6000 Ada).
    """
    rows = tuple(gpus)
    for names in (_identifiers, _titles):
        owners = {compact(name): gpu for gpu in reversed(rows) for name in names(gpu)}
        for form in strippings(text):
            if form in owners:
                return owners[form]
    wanted = bare(text)
    found = {gpu.key: gpu for gpu in rows if wanted in {bare(name) for name in (*_identifiers(gpu), *_titles(gpu))}}
    if found:  # the number of another generation's board may be meant
        found |= {gpu.key: gpu for gpu in rows if _without_generation(bare(gpu.key)) == wanted}
    if len(found) > 1:
        raise UnknownGpuError(f"GPU {text!r} is ambiguous: it may be {', '.join(found)}; use one of these")
    for gpu in found.values():
        return gpu
    near = nearest(text, rows)
    told = f"; the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}" if near else ""
    raise UnknownGpuError(f"no GPU is called {text!r}{told}; `modelstat gpus` lists all, and NAME,clock=... or cores=... defines one")


def _without_generation(name: str) -> str:
    for word in _GENERATION_WORDS:
        name = name.replace(word, "")
    return name


def _identifiers(gpu: Gpu) -> tuple[str, ...]:
    return (gpu.key, *gpu.aliases)


def _titles(gpu: Gpu) -> tuple[str, ...]:
    return (gpu.name, gpu.name.partition("(")[0])


def nearest(text: str, gpus: Iterable[Gpu], limit: int = 5) -> tuple[str, ...]:
    """Keys whose names resemble the text, the best first: those that contain it, and those with most of its characters in order."""
    from difflib import SequenceMatcher

    wanted = bare(text)
    scores: dict[str, float] = {}
    for gpu in gpus:
        names = {bare(name) for name in (*_identifiers(gpu), *_titles(gpu))}
        scores[gpu.key] = max(SequenceMatcher(None, wanted, name).ratio() + (0.5 if wanted in name else 0) for name in names)
    near = [key for key, score in scores.items() if score >= NEAR]
    return tuple(sorted(near, key=lambda key: -scores[key])[:limit])


def family(key: str) -> str:
    """A key without what tells boards of one chip apart: form factor, memory, laptop, server.

    >>> family("v100-pcie-32"), family("rtx-4090-laptop"), family("rtx-2070-super")
    ('v100', 'rtx-4090', 'rtx-2070-super')
    """
    while (shorter := re.sub(_BOARD, "", key)) != key:
        key = shorter
    return key


def siblings(gpu: Gpu, gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """Other boards of the same family."""
    return tuple(other for other in gpus if other.key != gpu.key and family(other.key) == family(gpu.key))
