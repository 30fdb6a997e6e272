"""A TCP relay that adds latency, in a process of its own so that it takes no time from the one measured."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial

__all__ = ["delaying_relay"]

_CHUNK_BYTES = 64 * 1024
_CHUNKS_IN_FLIGHT = 128  # with the chunk size: 8 MB held for each connection, then reading stops
_CLOSE_BY_RESET = struct.pack("ii", 1, 0)

_Chunks = asyncio.Queue[tuple[float, bytes]]


@contextmanager
def delaying_relay(host: str, port: int, delay: float) -> Iterator[int]:
    """Yield a port of 127.0.0.1 that leads to *host*:*port*; each round trip takes *delay* seconds more.

    What the client sends is held back, what the server answers is not, and connecting is not delayed.
    """
    if delay < 0:
        raise ValueError(f"delay must be at least 0 seconds, got {delay}")
    # By path and isolated: works where holdfast is not installed, and loads the standard library only.
    command = [sys.executable, "-I", __file__, host, str(port), str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield _announced_port(process)
        finally:
            process.terminate()


def _announced_port(process: subprocess.Popen[bytes]) -> int:
    line = process.stdout.readline() if process.stdout else b""
    if not line:
        raise RuntimeError("the relay ended before it listened; its error is on stderr")
    return int(line)


async def _serve_until_stdin_ends(host: str, port: int, delay: float) -> None:
    """Print the port and relay; the pipe on stdin ends with the parent, however that dies."""
    relay = partial(_relay, host, port, delay)
    server = await asyncio.start_server(relay, "127.0.0.1", 0, limit=_CHUNK_BYTES)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)


async def _relay(
    host: str, port: int, delay: float, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
) -> None:
    try:
        from_server, to_server = await asyncio.open_connection(host, port, limit=_CHUNK_BYTES)
    except OSError:
        return _reset(to_client)
    chunks = _Chunks(_CHUNKS_IN_FLIGHT)
    held_back = (_hold(from_client, chunks, delay), _release(chunks, to_server))
    if await _all_succeed(*held_back, _forward(from_server, to_client)):
        to_client.close()
        to_server.close()
    else:
        _reset(to_client)
        _reset(to_server)


async def _all_succeed(*directions: Coroutine[None, None, None]) -> bool:
    """Whether all ran to the end of their stream; the first connection to break stops the rest."""
    tasks = [asyncio.ensure_future(direction) for direction in directions]
    try:
        await asyncio.gather(*tasks)
    except OSError:
        return False
    finally:
        for task in tasks:
            task.cancel()
    return True


async def _hold(reader: asyncio.StreamReader, chunks: _Chunks, delay: float) -> None:
    """Note when each chunk, and at last the stream's end, is due; stop reading while too much is held."""
    clock = asyncio.get_running_loop().time
    while chunk := await reader.read(_CHUNK_BYTES):
        await chunks.put((clock() + delay, chunk))
    await chunks.put((clock() + delay, b""))


async def _release(chunks: _Chunks, writer: asyncio.StreamWriter) -> None:
    clock = asyncio.get_running_loop().time
    while True:
        due, chunk = await chunks.get()
        await asyncio.sleep(due - clock())
        if not chunk:
            return writer.write_eof()
        await _send(chunk, writer)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        await _send(chunk, writer)
    writer.write_eof()


async def _send(chunk: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(chunk)
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the other end sees a reset, as it would have without the relay."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_BY_RESET)
    writer.transport.abort()


if __name__ == "__main__":
    asyncio.run(_serve_until_stdin_ends(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
