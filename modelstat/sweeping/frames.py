"""Messages over a pipe: a length of eight bytes, then as many bytes."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct(">Q")


def write(descriptor: int, message: bytes) -> None:
    """Write one message, all of it. Raises OSError if nobody reads any more."""
    data = memoryview(_LENGTH.pack(len(message)) + message)
    while data:
        data = data[os.write(descriptor, data) :]


def read(descriptor: int) -> bytes:
    """Wait for one message. Raises EOFError if the other side ended."""
    (length,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    return _exactly(descriptor, length)


def _exactly(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


class Splitter:
    """Cuts what arrives in pieces of any size into messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """The messages that are complete with this piece.

        >>> Splitter().feed(bytes([0, 0, 0, 0, 0, 0, 0, 2, 104, 105, 0]))
        [b'hi']
        """
        self._data += piece
        found = []
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + length
            if len(self._data) < end:
                break
            found.append(bytes(self._data[_LENGTH.size : end]))
            del self._data[:end]
        return found
