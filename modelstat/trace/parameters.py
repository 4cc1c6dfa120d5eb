"""The unique parameters, buffers and packed weights of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from modelstat.records import ITEM_BYTES, Parameter
from modelstat.trace.arguments import packed_weight
from modelstat.trace.lazy import is_lazy
from modelstat.trace.modules import ModuleTree
from modelstat.trace.values import dtype_name


def registered(model: nn.Module) -> list[Tensor]:
    """All parameters of a model, then all buffers, each once (torch's own iterators make the name of each on their way)."""
    modules = list(model.modules())
    tables: list[dict[str, Any]] = [*(module._parameters for module in modules), *(module._buffers for module in modules)]
    return list({id(tensor): tensor for table in tables for tensor in table.values() if tensor is not None}.values())


def parameter_records(
    tree: ModuleTree, value_of: Callable[[Tensor], int | None], storage_of: Callable[[Tensor], int], trains: Callable[[Tensor], bool]
) -> tuple[Parameter, ...]:
    """One record for each unique parameter and buffer, where it is registered first, then the packed weights.

    ``storage_of`` tells tensors apart by the memory behind them, so that bytes shared by two parameters count once.
    """
    records: list[Parameter] = []
    seen: set[int] = set()
    storages: set[int] = set()
    for index, row in enumerate(tree.rows):
        for kind, table in (("parameter", row.module._parameters), ("buffer", row.module._buffers)):
            for name, tensor in table.items():
                if tensor is None or id(tensor) in seen or is_lazy(tensor):
                    continue
                seen.add(id(tensor))
                storage = storage_of(tensor)
                fresh = storage not in storages
                storages.add(storage)
                records.append(
                    Parameter(
                        name=f"{row.path}.{name}" if row.path else name,
                        module=index,
                        shape=tuple(tensor.shape),
                        dtype=dtype_name(tensor.dtype),
                        kind=kind,  # type: ignore[arg-type]
                        trainable=trains(tensor),
                        value=value_of(tensor),
                        bytes=_tensor_bytes(tensor) if fresh else 0,
                    )
                )
    return (*records, *_packed(tree))


def _tensor_bytes(tensor: Tensor) -> int:
    if tensor.layout != torch.strided:
        return int(sum(part.numel() * part.element_size() for part in (tensor._indices(), tensor._values()))) if tensor.is_sparse else 0
    return round(tensor.numel() * ITEM_BYTES.get(dtype_name(tensor.dtype), tensor.element_size()))


def _packed(tree: ModuleTree) -> list[Parameter]:
    """Weights that quantised layers keep in packed objects, which ``parameters()`` does not see."""
    records: list[Parameter] = []
    seen: set[int] = set()
    for index, row in enumerate(tree.rows):
        for name in ("_packed_params", "_all_weight_values"):
            packed: Any = row.module.__dict__.get(name)
            if not isinstance(packed, torch.ScriptObject) or id(packed) in seen:
                continue
            seen.add(id(packed))
            weight = packed_weight(packed)
            if weight:
                records.append(
                    Parameter(
                        name=f"{row.path}.{name}" if row.path else name,
                        module=index,
                        shape=tuple(weight["weight_shape"]),
                        dtype=weight["weight_dtype"],
                        kind="packed",
                        trainable=False,
                        bytes=weight["weight_bytes"],
                    )
                )
    return records
