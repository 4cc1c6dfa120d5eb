"""Several files of one run as one profile: times from the one, counters from the other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.measure.imports.record import MeasuredKernel, Profile, by_name

COUNTED = ("flops", "dram_bytes", "l2_bytes", "l1_bytes")


def joined(profiles: Sequence[Profile]) -> Profile:
    """One profile of several files.

    Where some have counters and others only times, the counters go to the kernels of the same name, so many a launch, and the times
    that a profiler took without counting stay. Files of one kind follow one another as steps.
    """
    counted = [profile for profile in profiles if profile.flops is not None or profile.dram_bytes is not None]
    timed = [profile for profile in profiles if profile not in counted and profile.seconds is not None]
    if not counted or not timed:
        return _concatenated(profiles)
    base, told = _concatenated(timed), [problem for profile in counted for problem in profile.problems]
    averages = {_plain(kernel.name): kernel for kernel in by_name(tuple(each for profile in counted for each in profile.kernels))}
    bare: dict[str, list[MeasuredKernel]] = {}
    for name, kernel in averages.items():
        bare.setdefault(_bare(name), []).append(kernel)

    def source(kernel: MeasuredKernel) -> MeasuredKernel | None:
        alike = bare.get(_bare(_plain(kernel.name)), [])
        return averages.get(_plain(kernel.name)) or (alike[0] if len(alike) == 1 else None)

    kernels = tuple(_with_counters(kernel, source(kernel)) for kernel in base.kernels)
    lost = sorted({kernel.name for kernel in base.kernels if source(kernel) is None})
    if lost:
        told.append(f"{len(lost)} kernels of {base.file} have no counters in {counted[0].file}, such as {lost[0]}")
    form = " and ".join(dict.fromkeys((base.format, *(profile.format for profile in counted))))
    return msgspec.structs.replace(base, kernels=kernels, format=form, problems=(*base.problems, *told))


def _plain(name: str) -> str:
    """A kernel's name as every profiler writes it: they differ in spaces."""
    return "".join(name.split())


def _bare(name: str) -> str:
    """A name without the list of its parameters, which a profiler may leave out.

    >>> _bare("voidadd<(int)4>(float*,f(int))"), _bare("gemm")
    ('voidadd<(int)4>', 'gemm')
    """
    if not name.endswith(")"):
        return name
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[place], 0)
        if depth == 0:
            return name[:place]
    return name


def _with_counters(kernel: MeasuredKernel, source: MeasuredKernel | None) -> MeasuredKernel:
    if source is None:
        return kernel
    values = {field: getattr(source, field) for field in COUNTED}
    scale = kernel.launches / source.launches
    return msgspec.structs.replace(kernel, **{field: value if value is None else value * scale for field, value in values.items()})


def _concatenated(profiles: Sequence[Profile]) -> Profile:
    if len(profiles) == 1:
        return profiles[0]
    kernels: list[MeasuredKernel] = []
    step = call = 0
    for profile in profiles:
        steps = [kernel.step or 0 for kernel in profile.kernels]
        calls = [each.index for kernel in profile.kernels for each in kernel.calls]
        for kernel in profile.kernels:
            moved = tuple(msgspec.structs.replace(each, index=each.index + call) for each in kernel.calls)
            kernels.append(msgspec.structs.replace(kernel, step=(kernel.step or 0) + step, calls=moved))
        step += max(steps, default=0) + 1
        call += max(calls, default=0) + 1
    return Profile(
        file=", ".join(profile.file for profile in profiles),
        format=" and ".join(dict.fromkeys(profile.format for profile in profiles)),
        kernels=tuple(kernels),
        ordered=all(profile.ordered for profile in profiles),
        problems=tuple(problem for profile in profiles for problem in profile.problems),
    )
