"""A model spec, read once into an immutable record. Nothing here imports torch or opens a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelstat.errors import SourceError


@dataclass(frozen=True)
class Spec:
    """``origin:name(arguments)`` taken apart.

    ``origin`` is None for a bare name. For a file ``name`` is its path and ``member`` what is taken out of it.
    """

    origin: str | None
    name: str
    member: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The spec in one canonical spelling.

        >>> Spec("timm", "vit_base_patch16_224", arguments={"img_size": 384}).text
        'timm:vit_base_patch16_224(img_size=384)'
        """
        prefix = f"{self.origin}:" if self.origin and not self.member else ""
        member = f":{self.member}" if self.member else ""
        return f"{prefix}{self.name}{member}{call_text(self.arguments)}"


def call_text(arguments: Mapping[str, Any]) -> str:
    """Constructor arguments in parentheses, as a spec spells them; empty without any."""
    inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"({inside})" if inside else ""


def parse_spec(text: str, suffixes: Mapping[str, str], origins: Collection[str]) -> Spec:
    """Read a model spec. ``suffixes`` gives the origin of a file by its suffix, ``origins`` are the known prefixes.

    Raises SourceError, naming the position of the mistake.

    >>> parse_spec("timm:resnet50(in_chans=1)", {}, {"timm"})
    Spec(origin='timm', name='resnet50', member=None, arguments={'in_chans': 1})
    >>> parse_spec("models/net.py:Net", {".py": "file"}, {"file"})
    Spec(origin='file', name='models/net.py', member='Net', arguments={})
    """
    stripped = text.strip()
    prefix, colon, rest = stripped.partition(":")
    origin = prefix if colon and prefix in origins else None
    body = rest if origin else stripped
    start = text.index(body) if body else len(text)
    if not body:
        raise SourceError(f"{text!r} names no model: give a name such as resnet50, or path/file.py:build")
    for suffix, file_origin in suffixes.items():
        found = re.match(rf"(.+?{re.escape(suffix)})(?=$|:|\()", body)
        if found and origin in (None, file_origin):
            path = found[1]
            after = body[len(path) :]
            member, arguments = _split_call(text, after.removeprefix(":"), start + len(path) + after.startswith(":"))
            if member and not member.isidentifier():
                raise SourceError(f"{text!r}, position {start + len(path) + 2}: {member!r} is not the name of a function or class")
            return Spec(file_origin, path, member or None, arguments)
    name, arguments = _split_call(text, body, start)
    if not name:
        raise SourceError(f"{text!r}, position {start + 1}: a model name is missing before the parentheses")
    if origin is None and ":" in name:
        position = start + 1
        known = ", ".join(sorted(origins))
        raise SourceError(f"{text!r}, position {position}: no origin is called {name.partition(':')[0]!r}, there are {known}")
    return Spec(origin, name, None, arguments)


def _split_call(text: str, body: str, start: int) -> tuple[str, dict[str, Any]]:
    """``name(key=value)`` into the name and its arguments; ``start`` is where ``body`` begins in ``text``."""
    name, parenthesis, _ = body.partition("(")
    if not parenthesis:
        return body.strip(), {}
    call = body[len(name) :]

    def fail(offset: int, reason: str) -> SourceError:
        return SourceError(f"{text!r}, position {start + len(name) + offset + 1}: {reason}")

    try:
        node = ast.parse(f"f{call}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        offset = max((getattr(error, "offset", None) or 2) - 2, 0)
        raise fail(offset, f"{getattr(error, 'msg', error)}, constructor arguments are written name=value") from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise fail(0, "constructor arguments are written once, in one pair of parentheses")
    for positional in node.args:
        raise fail(positional.col_offset - 1, "constructor arguments are given by name, as in (img_size=384)")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        offset = keyword.col_offset - 1
        if keyword.arg is None:
            raise fail(offset, "** is not possible here, write name=value")
        if keyword.arg in arguments:
            raise fail(offset, f"{keyword.arg} is given twice")
        try:
            arguments[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            source = ast.get_source_segment(f"f{call}", keyword.value) or ""
            literals = "a number, string, tuple, list, dict, True, False or None"
            reason = f"the value of {keyword.arg} must be a Python literal ({literals}), not {source}"
            raise fail(keyword.value.col_offset - 1, reason) from None
    return name.strip(), arguments
