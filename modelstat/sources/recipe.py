"""Input recipes: what an architecture of transformers or diffusers is given, one line of data each.

::

    line    = name *("," name) ":" input *("," input)
    input   = name "=" expression          (``config={...}`` completes a default configuration that cannot be built as it is)

An expression is Python arithmetic over numbers, fields of the configuration (``vision_config.image_size``), ``length`` (of a
text), ``batch``, and the functions of :class:`Expressions`. A name is a class, a ``model_type``, or ``@`` and the name of the
input that a model class calls its main one, for all that have no line of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from modelstat.errors import SourceError


@dataclass(frozen=True)
class Recipe:
    """One line: the inputs by name, and the fields of the configuration that it completes."""

    inputs: Mapping[str, ast.expr]
    config: Mapping[str, Any]
    line: int


@cache
def recipes(library: str) -> Mapping[str, Recipe]:
    """All recipes of a library by name. Raises SourceError, naming the line, for one that cannot be read or is there twice."""
    file = f"data/{library}_recipes.txt"
    found: dict[str, Recipe] = {}
    text = files("modelstat.sources").joinpath(file).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        names, _, inputs = line.partition(":")
        recipe = _recipe(inputs, file, number)
        for name in names.split(","):
            if name.strip() in found:
                raise SourceError(f"{file}, line {number}: {name.strip()} has a recipe in line {found[name.strip()].line} already")
            found[name.strip()] = recipe
    return found


def _recipe(inputs: str, file: str, number: int) -> Recipe:
    try:
        call = ast.parse(f"f({inputs.strip()})", mode="eval").body
    except SyntaxError as error:
        raise SourceError(f"{file}, line {number}: {error.msg}") from None
    if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
        raise SourceError(f"{file}, line {number}: inputs are written name=expression")
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    config = ast.literal_eval(given.pop("config")) if "config" in given else {}
    return Recipe(given, config, number)


class Evaluator:
    """Evaluates the expressions of a recipe: ``fields`` gives the value of a dotted name, ``functions`` are what may be called."""

    def __init__(self, fields: Callable[[str], Any], functions: Mapping[str, Callable[..., Any]]) -> None:
        self.fields, self.functions = fields, functions

    def __call__(self, node: ast.expr) -> Any:
        """The value of an expression. Raises SourceError for what the language does not have."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.fields(ast.unparse(node))
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            return {self(key): self(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}
        if isinstance(node, ast.Subscript):
            return self(node.value)[self(node.slice)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](self(node.left), self(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions:
            named = {str(keyword.arg): self(keyword.value) for keyword in node.keywords}
            return self.functions[node.func.id](*(self(item) for item in node.args), **named)
        raise SourceError(f"a recipe cannot say {ast.unparse(node)!r}")


OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b,
}


def find_recipe(kind: Any, model_type: str, *, encoder_decoder: bool) -> Recipe | None:
    """The recipe of a model class: its own, that of its ``model_type``, or that of its main input."""
    table = recipes("hf")
    main = kind.main_input_name
    first = main if isinstance(main, str) else main[0]
    names = [kind.__name__, model_type, f"@{first}+decoder" if encoder_decoder else f"@{first}", f"@{first}"]
    return next((table[name] for name in names if name in table), None)
