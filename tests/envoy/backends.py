#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small HTTP/1.1 backends in one process. Each loopback address in argv gets a backend on a free
port.

    argv: ADDRESS… ─▶ [backends] ─▶ stdout: one line of JSON, {"ADDRESS": PORT, …}

The process ends when its stdin ends. The header `x-host` of each answer is the backend's
"address:port". Requests have no body, and may be pipelined."""

import asyncio
import json
import resource
import socket
import sys

END_OF_REQUEST = b"\r\n\r\n"
DESCRIPTORS = 16384  # Enough for Envoy's connections to all hosts, and the listening sockets.


class Backend(asyncio.Protocol):
    def __init__(self, name: str) -> None:
        self._answer = f"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-host: {name}\r\n\r\n".encode()
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        requests = data.count(END_OF_REQUEST)
        self._rest = data[data.rfind(END_OF_REQUEST) + len(END_OF_REQUEST):] if requests else data
        if requests:
            self._transport.write(self._answer * requests)


async def serve(addresses: list[str]) -> None:
    loop = asyncio.get_running_loop()
    ports = {}
    for address in addresses:
        listening = socket.socket()
        listening.bind((address, 0))
        ports[address] = listening.getsockname()[1]
        name = f"{address}:{ports[address]}"
        await loop.create_server(lambda name=name: Backend(name), sock=listening, backlog=128)
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, DESCRIPTORS) if most > 0 else DESCRIPTORS, most))
    asyncio.run(serve(sys.argv[1:]))
