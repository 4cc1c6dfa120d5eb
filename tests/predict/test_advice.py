"""Advice is a second prediction: its numbers are those of the changed model."""

from __future__ import annotations

import msgspec
import pytest

from modelstat.cost.registry import costs as costs_of
from modelstat.hardware.database import find
from modelstat.memory.peak import peak_memory
from modelstat.predict.advice import MOST, Advice, advise
from modelstat.predict.execution import Execution
from modelstat.predict.measured import Correction, corrected
from modelstat.predict.prediction import predict
from modelstat.predict.variant import grown, in_precision, samples
from tests.predict.sample import Writer, block

V100 = find("v100")


def advice(*given: object, gpu: str = "v100", execution: Execution | None = None, **changes: object) -> dict[str, Advice]:
    trace, costs = block(*given, **changes)  # type: ignore[arg-type]
    return {each.change: each for each in advise(trace, costs, predict(trace, costs, find(gpu), execution))}


def test_a_gpu_that_waits_is_given_more_samples() -> None:
    trace, costs = block(side=7)
    found = advise(trace, costs, predict(trace, costs, V100))
    batch = next(each for each in found if each.change == "batch")
    factor = int(batch.text.split(":")[0].removeprefix("--batch "))
    now, then, beyond = (
        predict(larger, costs_of(larger), V100).seconds or 0.0 for larger in (grown(trace, size) for size in (1, factor, 2 * factor))
    )
    assert batch.predicted_ms == pytest.approx(1e3 * then)
    assert batch.speedup == pytest.approx(factor * now / then)
    assert beyond / then > 1.1, "the next doubling is no longer almost free"
    half = grown(trace, factor // 2)
    assert then / (predict(half, costs_of(half), V100).seconds or 0.0) <= 1.1


def test_a_full_gpu_is_given_no_more_samples() -> None:
    assert "batch" not in advice(batch=64)
    assert "batch" not in advice(batch=64, execution=Execution(cuda_graph=True))


def test_a_batch_that_does_not_fit_is_not_proposed() -> None:
    trace, costs = block(side=7)
    full = msgspec.structs.replace(V100, memory_gb=peak_memory(grown(trace, 2)).peak_bytes / 2**30)  # of which 95 % may be taken
    assert full.memory_bytes == pytest.approx(peak_memory(grown(trace, 2)).peak_bytes)
    assert "batch" not in {each.change for each in advise(trace, costs, predict(trace, costs, full))}


def test_at_most_three_the_largest_gain_first() -> None:
    trace, costs = block(side=7)
    found = advise(trace, costs, predict(trace, costs, V100))
    assert len(found) <= MOST
    assert [each.speedup for each in found] == sorted((each.speedup for each in found), reverse=True)


def test_a_compiler_is_named_with_what_it_saves() -> None:
    trace, costs = block(batch=64)
    (compiled,) = (each for each in advise(trace, costs, predict(trace, costs, V100)) if each.change == "compile")
    other = predict(trace, costs, V100, Execution(mode="compile"))
    assert compiled.predicted_ms == pytest.approx(1e3 * (other.seconds or 0.0))
    assert "2 kernels instead of 4" in compiled.text
    assert "compile" not in advice(batch=64, execution=Execution(mode="compile"))


def test_a_graph_helps_who_waits() -> None:
    assert "cuda-graph" in advice(side=7, execution=Execution(mode="compile"))
    assert "cuda-graph" not in advice(batch=64)
    assert "cuda-graph" not in advice(side=7, execution=Execution(cuda_graph=True))


def test_another_precision_moves_the_ridge() -> None:
    trace, costs = block(batch=64)
    (half,) = (each for each in advise(trace, costs, predict(trace, costs, V100)) if each.change == "precision")
    other = in_precision(trace, "fp16")
    assert half.predicted_ms == pytest.approx(1e3 * (predict(other, costs_of(other), V100).seconds or 0.0))
    assert f"moves the ridge from {14e12 / 900e9:.2f} to {112e12 / 900e9:.2f} FLOP/B" in half.text
    assert "precision" not in advice(batch=64, precision="fp16")
    assert "precision" not in advice(batch=64, gpu="p4"), "no tensor cores: the ridge stays"


def test_recurrent_layers_are_given_no_batch() -> None:
    trace, costs = block(side=7)
    recurrent = [msgspec.structs.replace(costs[0], family="rnn"), *costs[1:]]
    found = advise(trace, recurrent, predict(trace, costs, V100))
    assert "batch" not in {each.change for each in found}


def test_no_advice_without_a_time() -> None:
    trace, costs = block(precision="tf32")
    assert advise(trace, costs, predict(trace, costs, V100)) == ()


def test_a_correction_holds_for_the_advice() -> None:
    trace, costs = block(batch=64)
    plain = predict(trace, costs, V100)
    twice = corrected(plain, Correction(2.0, 0.15, "measured"))
    for one, other in zip(advise(trace, costs, plain), advise(trace, costs, twice), strict=True):
        assert other.predicted_ms == pytest.approx(2 * one.predicted_ms)
        assert other.speedup == pytest.approx(one.speedup)


def test_half_precision_halves_the_bytes() -> None:
    trace, costs = block()
    half = in_precision(trace, "fp16")
    assert {spec.dtype for op in half.ops for spec in (*op.inputs, *op.outputs)} == {"float16"}
    assert sum(cost.bytes for cost in costs_of(half)) * 2 == sum(cost.bytes for cost in costs)
    assert [2 * value.bytes for value in half.values] == [value.bytes for value in trace.values]
    assert in_precision(trace, "tf32").ops == trace.ops


def test_what_is_made_of_weights_alone_does_not_grow() -> None:
    net = Writer(2, 64)
    cast = net.op("relu", net.value("parameter", 64, 64))
    made = net.op("mm", net.input, cast, names=("self", "mat2"), shape=(2, 64))
    larger = grown(net.trace(made)[0], 3)
    assert [spec.shape for spec in larger.ops[0].outputs] == [(64, 64)]
    assert [spec.shape for spec in (*larger.ops[1].inputs, *larger.ops[1].outputs)] == [(6, 64), (64, 64), (6, 64)]


def test_samples() -> None:
    trace, _ = block(batch=3)
    assert samples(trace) == 3
    assert samples(msgspec.structs.replace(trace, batch=None)) == 3, "the first axis of the first input"
    assert samples(msgspec.structs.replace(trace, batch=None, inputs=())) is None
