"""Ops that are kept whole: attention, one RNN op per layer and direction, RMSNorm, and in a fake run the matmul of a group of experts.

Below autograd, attention falls apart into products and a softmax, an RNN into a step at a time or into one backend's call, and on the
CPU RMSNorm into its arithmetic: the same work, but not the bytes that a fused kernel moves. So the dispatcher hands these ops to the
functions below, see :mod:`modelstat.trace.routes`. The functions record one op and give the values back: empty ones in a fake run, real
ones in a real run. Where autograd is on they have a backward of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack

from modelstat.trace.arguments import tensors_of
from modelstat.trace.differentiable import Tensors, Whole, needs_gradient
from modelstat.trace.nested import PLAIN
from modelstat.trace.recurrent import GATES, Layers
from modelstat.trace.routes import beneath
from modelstat.trace.sequences import FALLING, Sequences

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder


WHOLE = (
    "scaled_dot_product_attention", "rms_norm", *(f"{kind}.{overload}" for kind in GATES for overload in ("input", "data")),
    *(["_grouped_mm"] if hasattr(torch.ops.aten, "_grouped_mm") else []), *FALLING,
)  # fmt: skip
"""The ops of aten that are kept whole, and those that fall apart in a way that is remembered."""


class Composites:
    """The replacements, bound to one recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._sequences = Sequences(recorder, recorder.again) if recorder.again is not None else None
        self._table: dict[str, Callable[..., Any] | None] = {}

    def of(self, name: str) -> Callable[..., Any] | None:
        """What runs in an op's place, None where it is left to torch."""
        if self.recorder.is_suspended:
            return None
        if name not in self._table:
            self._table[name] = self._made(name)
        return self._table[name]

    def _made(self, name: str) -> Callable[..., Any] | None:
        if name in FALLING:
            return self._sequences.of(name) if self._sequences is not None else None
        kind, _, overload = name.partition(".")
        if kind in GATES:
            cell: Callable[..., Any] = self._rnn_dense(kind) if overload == "input" else self._rnn_packed(kind)
            return cell
        if name == "_grouped_mm":
            return None if self.recorder.real else self.grouped_matmul
        return self.attention if name == "scaled_dot_product_attention" else self.rms_norm

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """F.scaled_dot_product_attention. query (..., Hq, L, E), key (..., Hkv, S, E), value (..., Hkv, S, Ev) -> (..., Hq, L, Ev).

        Where autograd is on, it keeps the log-sum-exp of every row of scores for its backward, as the fused kernels do.
        """
        recorder = self.recorder
        arguments = {"is_causal": is_causal, "enable_gqa": enable_gqa, "dropout_p": dropout_p, "scale": scale}
        inputs = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
        # The backward lives as long as its node and must not hold tensors: autograd lets go of what is kept for it earlier.
        followed = [name for name, tensor in inputs.items() if tensor is not None and (name != "attn_mask" or tensor.requires_grad)]
        names = tuple(inputs)

        def run() -> Tensor:
            if not recorder.real:
                return _attention_output(query, key, value, masked=attn_mask is not None)
            op = torch.ops.aten.scaled_dot_product_attention.default
            grouped = {"enable_gqa": True} if enable_gqa else {}
            output: Tensor = op.decompose(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **grouped)
            return output

        def keep() -> tuple[tuple[Tensor, ...], Sequence[Tensors]]:
            with recorder.suspended():
                output = run()
                logsumexp = output.new_empty(output.shape[:-1], dtype=torch.float32)
            recorder.record("modelstat::attention", inputs, [output, logsumexp], arguments)
            given = {name: tensor for name, tensor in inputs.items() if tensor is not None}
            return (output,), [{**given, "output": output, "logsumexp": logsumexp}]

        def backward(saved: Sequence[Tensors], grads: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
            (kept,) = saved
            with recorder.suspended():
                made = {name: torch.zeros_like(kept[name]) for name in followed}
            recorder.record("modelstat::attention_backward", {"grad_output": grads[0], **kept}, list(made.values()), arguments)
            return tuple(made.get(name) for name in names)

        if needs_gradient(*inputs.values()):
            (output,) = Whole.apply(keep, backward, *inputs.values())
        else:
            with recorder.suspended():
                output = run()
            recorder.record("modelstat::attention", inputs, [output], arguments)
        result: Tensor = output
        return result

    def rms_norm(self, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
        """F.rms_norm, which is one kernel on a GPU. Where autograd is on it falls apart, so that its backward is that of its parts."""
        recorder = self.recorder
        decompose = torch.ops.aten.rms_norm.default.decompose
        if needs_gradient(input, weight):
            whole: Tensor = decompose(input, normalized_shape, weight, eps)
            return whole
        with recorder.suspended():
            output = decompose(input, normalized_shape, weight, eps) if recorder.real else torch.empty_like(input)
        recorder.record("aten::rms_norm", {"input": input, "weight": weight}, [output], {"normalized_shape": list(normalized_shape)})
        return output

    def grouped_matmul(
        self, self_: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: torch.dtype | None = None
    ) -> Tensor:
        """F.grouped_mm. (M, K) @ (G, K, N) -> (M, N); (G, M, K) @ (K, N) -> (M, N); with three axes or two each -> (G, M, N)."""
        recorder = self.recorder
        rows, columns = self_.shape[-2], mat2.shape[-1]
        groups = self_.shape[:1] if self_.dim() == 3 else mat2.shape[:1] if mat2.dim() == 3 else () if offs is None else offs.shape

        def run() -> Tensor:
            with recorder.suspended():
                shape = (rows, columns) if self_.dim() != mat2.dim() else (*groups, rows, columns)
                output = self_.new_empty(shape, dtype=out_dtype or self_.dtype)
            recorder.record("aten::_grouped_mm", {"self": self_, "mat2": mat2, "offs": offs, "bias": bias}, [output], {})
            return output

        def keep() -> tuple[tuple[Tensor, ...], Sequence[Tensors]]:
            return (run(),), [{"self": self_, "mat2": mat2, **({} if offs is None else {"offs": offs})}]

        def backward(saved: Sequence[Tensors], grads: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
            (kept,), (grad, *_) = saved, grads
            assert grad is not None
            with recorder.suspended():
                made = torch.zeros_like(kept["self"]), torch.zeros_like(kept["mat2"])
                left, right = kept["self"].mT, kept["mat2"].mT
            # Grouped products of the same groups.
            for factors, result in zip(((grad, right), (left, grad)), made, strict=True):
                given = {"self": factors[0], "mat2": factors[1], "offs": kept.get("offs")}
                recorder.record("aten::_grouped_mm", given, [result], {})
            return made

        if not needs_gradient(self_, mat2):
            return run()
        (output,) = Whole.apply(keep, backward, self_, mat2)
        result: Tensor = output
        return result

    def _rnn_dense(self, kind: str) -> Any:
        def run(
            input: Tensor,
            hx: Any,
            params: Sequence[Tensor],
            has_biases: bool,
            num_layers: int,
            dropout: float,
            train: bool,
            bidirectional: bool,
            batch_first: bool,
        ) -> Any:
            arguments = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
            time, batch = (1, 0) if batch_first else (0, 1)
            steps = input.shape[time] * input.shape[batch]
            layers = Layers(self.recorder, kind, params, has_biases, num_layers, bidirectional, steps, input.shape[batch])
            return layers.run(input, _states(kind, hx), params, self._values(kind, "input", arguments))

        return run

    def _rnn_packed(self, kind: str) -> Any:
        def run(
            data: Tensor,
            batch_sizes: Tensor,
            hx: Any,
            params: Sequence[Tensor],
            has_biases: bool,
            num_layers: int,
            dropout: float,
            train: bool,
            bidirectional: bool,
        ) -> Any:
            arguments = (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
            states = _states(kind, hx)
            layers = Layers(self.recorder, kind, params, has_biases, num_layers, bidirectional, data.shape[0], states[0].shape[1])
            return layers.run(data, states, params, self._values(kind, "data", arguments))

        return run

    def _values(self, kind: str, overload: str, arguments: tuple[Any, ...]) -> Any:
        """What computes the results of an RNN call in a real run; None in a fake one."""
        if not self.recorder.real:
            return None
        op = getattr(getattr(torch.ops.aten, kind), overload)
        seen = _len_torch_dispatch_stack() > 1 or torch.is_autocast_enabled("cpu")  # by a mode of the user's
        if seen or not all(type(tensor) in PLAIN for tensor in tensors_of(arguments)):
            return lambda: op.decompose(*arguments)

        def run() -> Any:
            with torch._C._DisableTorchDispatch():  # hundreds of ops that nobody would write down
                return beneath(op, arguments, {})

        return run


def _states(kind: str, hx: Any) -> tuple[Tensor, ...]:
    """(h0, c0) of an LSTM, (h0,) of the others."""
    return tuple(hx) if kind == "lstm" else (hx,)


HALF = (torch.float16, torch.bfloat16)
FLASH_CHANNELS = 256
"""The widest heads that the flash kernel takes."""


def _attention_output(query: Tensor, key: Tensor, value: Tensor, *, masked: bool) -> Tensor:
    """Batch axes broadcast, and laid out as the kernel lays it out that a GPU would run, so that what follows copies where it does there.

    Half precision without a mask runs in the flash kernel (or in cuDNN's), which returns the layout of its query: heads that were only
    transposed come back as they lay, and joining them is a view. The memory-efficient kernel, which takes the rest, puts the heads
    of each token next to each other whatever its query looked like. The rules are those of torch's own shape functions.
    """
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]) if query.shape[:-3] != key.shape[:-3] else query.shape[:-2]
    length, width = query.shape[-2], value.shape[-1]
    plain = len(query.shape) == 4 and batch == query.shape[:-2] and query.shape[-1] == key.shape[-1] == width <= FLASH_CHANNELS
    if plain and query.dtype in HALF and not masked:
        return torch.empty_like(query)
    if len(batch) == 2:
        return query.new_empty((batch[0], length, batch[1], width)).transpose(1, 2)
    return query.new_empty((*batch, length, width))
