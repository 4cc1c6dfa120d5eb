"""``--phase``: a language model reading a prompt, writing a token, or serving requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from modelstat.errors import UsageError

if TYPE_CHECKING:
    from modelstat.cli.output import Output
    from modelstat.cli.render import Format as ReportFormat
    from modelstat.cli.render import Level
    from modelstat.hardware.gpu import Gpu
    from modelstat.predict.execution import Execution
    from modelstat.records import Trace
    from modelstat.report.options import Options
    from modelstat.serving.cache import Format
    from modelstat.serving.phase import Phase

PhaseName = Literal["prefill", "decode", "serve"]

TAKES: dict[str, tuple[str, ...]] = {
    "prefill": ("--prompt", "--kv-cache"), "decode": ("--context", "--kv-cache"), "serve": ("--prompt", "--generate", "--kv-cache"),
}  # fmt: skip
"""The options of each phase."""


class Asked(NamedTuple):
    """What was asked of a language model: the phase, its numbers of tokens, and the format of the cache."""

    name: PhaseName
    prompt: int | None
    context: int | None
    generate: int | None
    kv_cache: Format | None

    @property
    def serves(self) -> bool:
        """A report of its own, from several passes."""
        return self.name == "serve"

    @property
    def phase(self) -> Phase:
        """The pass of prefill and decode. Raises InputError for less than one token."""
        from modelstat.serving.phase import decode, prefill

        return decode(self.context) if self.name == "decode" else prefill(self.prompt)

    def check(self, others: Mapping[str, bool]) -> None:
        """Raises UsageError for an option that a phase does not go with, InputError for a number of tokens below 1."""
        from modelstat.serving.phase import checked

        for option, given in others.items():
            if given:
                raise UsageError(f"{option} does not go with --phase {self.name}, leave one of the two out")
        for option, tokens in (("--prompt", self.prompt), ("--context", self.context), ("--generate", self.generate)):
            if tokens is not None:
                checked(option, tokens)

    def check_report(self, form: ReportFormat, options: Options, level: Level, others: Mapping[str, bool]) -> None:
        """Raises UsageError for options of one pass and of its table of layers, which serving does not have."""
        given = {
            "--depth": options.depth is not None, "--level": level != "module", "--columns": bool(options.columns),
            "--sort": options.sort is not None, "--top": options.top is not None, "--filter": options.filter is not None,
            "--format torchstat": form == "torchstat", "--wide": options.wide, **others,
        }  # fmt: skip
        for option, there in given.items():
            if there:
                raise UsageError(f"{option} is for the report of one pass, which --phase serve is not: use --phase prefill or decode")

    def trace(
        self, model: str, batch: int | None, precision: str | None, *, cache: bool, progress: Callable[[int], None] | None = None
    ) -> Trace:
        """The trace of prefill or decode."""
        from modelstat.api import trace_spec
        from modelstat.serving.cache import stored

        found = trace_spec(model, None, batch, precision, phase=self.phase, cache=cache, progress=progress)
        return found if self.kv_cache is None else stored(found, self.kv_cache)

    def serve(
        self, model: str, gpus: Sequence[Gpu], execution: Execution, runs: Sequence[tuple[str | None, int | None]], form: ReportFormat,
        out: Output, *, cache: bool,
    ) -> int:  # fmt: skip
        """Write the report of every precision and batch. Raises MissingPeakError if the only GPU lacks a peak that the model needs."""
        from modelstat.cli.progress import TraceProgress
        from modelstat.report.serving import write
        from modelstat.serving.serve import serve

        with TraceProgress(f"tracing {model}") as progress:
            found = [
                serve(
                    model, gpu=gpus, precision=precision, batch=batch or 1, prompt=self.prompt, generate=self.generate,
                    kv_cache=self.kv_cache, execution=execution, cache=cache, progress=progress,
                )
                for precision, batch in runs
            ]  # fmt: skip
        write(found, form, out.stream)
        return 0


def asked(phase: PhaseName | None, prompt: int | None, context: int | None, generate: int | None, kv_cache: str | None) -> Asked | None:
    """The phase that the options describe, None without one. Raises UsageError for options that it does not take."""
    from modelstat.serving.cache import checked_format

    given = {"--prompt": prompt, "--context": context, "--generate": generate, "--kv-cache": kv_cache}
    for option, value in given.items():
        takers = [name for name, options in TAKES.items() if option in options]
        if value is not None and phase not in takers:
            raise UsageError(f"{option} {value}: add --phase {' or '.join(takers)}, or leave it out")
    if phase is None:
        return None
    return Asked(phase, prompt, context, generate, None if kv_cache is None else checked_format(kv_cache))
