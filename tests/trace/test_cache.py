from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.records import TRACE_SCHEMA, Op, TensorSpec, Trace, Value, encode_trace
from modelstat.trace.cache import TraceCache, default_directory, fingerprint

KEY = {"origin": "torchvision", "name": "resnet50", "inputs": "3x224x224"}


def trace(ops: int = 1, model: str = "net") -> Trace:
    spec = TensorSpec((2, 3), "float32", (3, 1), 0)
    op = Op("aten::relu", "default", (spec,), ("self",), (spec,))
    return Trace(TRACE_SCHEMA, model, (), (), 1, "fp32", "fake", False, (), (), (Value(24, "activation", 0, 1),), (op,) * ops)


def stored(cache: TraceCache) -> list[Path]:
    return sorted(cache.directory.iterdir())


def test_a_trace_comes_back_equal(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, trace(3))
    assert cache.get(KEY) == trace(3)
    assert cache.get({**KEY, "inputs": "3x256x256"}) is None


def test_the_last_writer_wins(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path)
    cache.put(KEY, trace(model="first"))
    cache.put(KEY, trace(model="second"))
    found = cache.get(KEY)
    assert found is not None
    assert found.model == "second"
    assert cache.info().files == 1


@given(
    st.dictionaries(st.text(), st.one_of(st.none(), st.integers(-(2**60), 2**60), st.text(), st.lists(st.text()))),
    st.randoms(use_true_random=False),
)
def test_the_order_of_names_does_not_matter(key: dict[str, Any], random: Any) -> None:
    names = list(key)
    random.shuffle(names)
    assert fingerprint(key) == fingerprint({name: key[name] for name in names})


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_different_keys_have_different_fingerprints(one: dict[str, str], other: dict[str, str]) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


@dataclass
class Damage:
    name: str
    content: bytes


@pytest.mark.parametrize(
    "damage",
    [
        Damage("empty", b""),
        Damage("not compressed", b'{"schema": "modelstat-trace/1"}'),
        Damage("truncated", zlib.compress(encode_trace(trace(100)))[:-7]),
        Damage("not JSON", zlib.compress(b"\x80\x04pickled")),
        Damage("another document", zlib.compress(b'{"schema": "modelstat-trace/1"}')),
        Damage("another schema", zlib.compress(msgspec.json.encode(msgspec.structs.replace(trace(), schema="modelstat-trace/0")))),
        Damage("deep", zlib.compress(b"[" * 100_000)),
    ],
    ids=lambda damage: damage.name,
)
def test_a_damaged_entry_is_removed(tmp_path: Path, damage: Damage) -> None:
    cache = TraceCache(tmp_path)
    cache.put(KEY, trace())
    (entry,) = stored(cache)
    entry.write_bytes(damage.content)
    assert cache.get(KEY) is None
    assert stored(cache) == []
    cache.put(KEY, trace())
    assert cache.get(KEY) == trace()


def test_clear_says_what_it_removed_and_leaves_other_files(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path)
    for name in ("a", "b"):
        cache.put({"name": name}, trace())
    (tmp_path / "mine.txt").write_text("mine")
    info = cache.info()
    assert (info.directory, info.files) == (tmp_path, 2)
    assert info.bytes == sum(path.stat().st_size for path in stored(cache) if path.suffix == ".trace")
    assert cache.clear() == (2, info.bytes)
    assert [path.name for path in stored(cache)] == ["mine.txt"]
    assert cache.clear() == (0, 0)


def test_a_folder_that_is_not_there_is_an_empty_cache(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path / "absent")
    assert cache.get(KEY) is None
    assert cache.info() == (tmp_path / "absent", 0, 0)
    assert cache.clear() == (0, 0)
    assert not (tmp_path / "absent").exists()


def test_a_folder_that_cannot_be_written_to_gives_one_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = TraceCache(tmp_path / "file" / "traces")
    cache.put(KEY, trace())
    cache.put(KEY, trace())
    assert cache.get(KEY) is None
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"modelstat: traces are not cached, {tmp_path / 'file' / 'traces'} cannot be written to: Not a directory"
    ]


def test_what_was_not_used_for_the_longest_time_goes_first(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path)
    for age, name in enumerate(("new", "middle", "old")):
        cache.put({"name": name}, trace())
        newest = max(stored(cache), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (1_000_000 - age, 1_000_000 - age))
    size = cache.info().bytes // 3
    assert cache.get({"name": "old"}) is not None  # using it makes it the newest
    small = TraceCache(tmp_path, limit_bytes=3 * size + size // 2)
    small.put({"name": "last"}, trace())
    # Four entries, room for three and a half: the one of "middle" is the oldest now.
    assert [small.get({"name": name}) is not None for name in ("new", "middle", "old", "last")] == [True, False, True, True]


def test_an_entry_larger_than_the_limit_stays_until_the_next(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path, limit_bytes=1)
    cache.put({"name": "first"}, trace())
    assert cache.get({"name": "first"}) == trace()
    cache.put({"name": "second"}, trace())
    assert cache.get({"name": "first"}) is None


def test_temporary_files_of_dead_writers_go(tmp_path: Path) -> None:
    (tmp_path / "dead.tmp").write_bytes(b"half")
    os.utime(tmp_path / "dead.tmp", (1_000_000, 1_000_000))
    (tmp_path / "alive.tmp").write_bytes(b"half")
    cache = TraceCache(tmp_path)
    cache.put(KEY, trace())
    assert not (tmp_path / "dead.tmp").exists()
    assert (tmp_path / "alive.tmp").exists()


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELSTAT_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path / "traces"
    monkeypatch.delenv("MODELSTAT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert default_directory().name == "traces"
    assert "modelstat" in default_directory().parts


def write_and_read(directory: Path, writer: int) -> int:
    """Write the shared key 50 times and count reads that are no whole trace of a writer."""
    cache = TraceCache(directory)
    wrong = 0
    for _ in range(50):
        cache.put(KEY, trace(ops=200 + writer, model=f"writer {writer}"))
        found = cache.get(KEY)
        wrong += found is None or found.model != f"writer {len(found.ops) - 200}"
    return wrong


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(write_and_read, [(tmp_path, 0), (tmp_path, 1)]) == [0, 0]
    assert TraceCache(tmp_path).info().files == 1
    assert len(stored(TraceCache(tmp_path))) == 1


def test_a_hit_does_not_import_torch(tmp_path: Path) -> None:
    TraceCache(tmp_path).put({"origin": "bare"}, trace())
    code = (
        "import sys; from pathlib import Path; from modelstat.trace.cache import TraceCache;"
        f"assert TraceCache(Path({str(tmp_path)!r})).get({{'origin': 'bare'}}) is not None;"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["False", "False"]
