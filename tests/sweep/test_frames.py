"""Messages arrive whole, in whatever pieces a pipe delivers them."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.sweeping import frames


@given(messages=st.lists(st.binary(max_size=50), max_size=5), size=st.integers(1, 20))
def test_any_pieces(messages: list[bytes], size: int) -> None:
    data = b"".join(len(message).to_bytes(8, "big") + message for message in messages)
    splitter = frames.Splitter()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [message for piece in pieces for message in splitter.feed(piece)] == messages


def test_through_a_pipe() -> None:
    reader, writer = os.pipe()
    sent = [b"", b"a", os.urandom(300_000)]

    def send() -> None:
        for message in sent:
            frames.write(writer, message)
        os.close(writer)

    thread = threading.Thread(target=send)
    thread.start()
    assert [frames.read(reader) for _ in sent] == sent
    with pytest.raises(EOFError):
        frames.read(reader)
    thread.join()
    os.close(reader)
