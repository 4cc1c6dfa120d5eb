"""One forward pass, ready to be timed on many GPUs: what does not depend on the GPU is done once, and equal kernels are timed once."""

from __future__ import annotations

from collections.abc import Sequence

from modelstat.cost.record import Cost
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution
from modelstat.predict.kernels.constants import constants
from modelstat.predict.kernels.dispatch import Call, call, call_time
from modelstat.predict.launch import launches
from modelstat.predict.prediction import predict, scheduled
from modelstat.records import Trace


class Pass:
    """The kernels of a trace in one way to run it. Its time is that of :func:`modelstat.predict.prediction.predict`, without the parts."""

    def __init__(self, trace: Trace, costs: Sequence[Cost], execution: Execution | None = None) -> None:
        self.execution = execution or Execution()
        self._trace, self._costs = trace, costs
        self._slots: dict[Call, int] = {}
        self._order: list[tuple[int, float]] = []
        """For each kernel its number among the distinct ones (-1: it runs none), and the factor on its time."""
        faster = constants("execution", "compile")["generated"]
        for kernel, op, generated in launches(trace, costs, self.execution):
            given = None if op.view else call(op, kernel.cost, tf32=trace.precision == "tf32", compiled=self.execution.mode == "compile")
            slot = -1 if given is None else self._slots.setdefault(given, len(self._slots))
            self._order.append((slot, faster if generated else 1.0))

    def seconds(self, gpu: Gpu) -> float:
        """Time of one pass of the whole batch (s). Raises MissingPeakError."""
        if gpu.calibration is not None:
            return predict(self._trace, self._costs, gpu, self.execution).seconds or 0.0
        times = [call_time(given, gpu).total for given in self._slots]
        kernels = [0.0 if slot < 0 else times[slot] * factor for slot, factor in self._order]
        return scheduled(kernels, gpu, self.execution)[1].total
