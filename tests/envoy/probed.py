# SPDX-License-Identifier: Apache-2.0
"""A backend that answers health checks by a script: HTTP, TCP payloads, or gRPC's health service.
It uses no library for these protocols.

    probe n ─▶ [ProbedBackend] ─▶ see(n): the prober's current opinion of the backend, before the answer
            ◀─ answer n of the script

A prober sends a probe only after the last one has ended. Its opinion at probe n + 1 is therefore
the result of answer n, and the test need not measure time. Probes use their own port. The
endpoint's port accepts connections, but never answers.

The steps of a script:

    HTTP   a status (200), or one of HEADERS; "garbage", "reset", "silent"
    TCP    bytes, after which the connection stays open; "reset"
    gRPC   "SERVING" or another word of ServingStatus; a number: that grpc-status without an answer; "reset" """

import socket
import struct
import threading
from typing import Callable, Union

Step = Union[int, str, bytes]

PATIENCE = 60
HEADERS = {"degraded": "x-envoy-degraded: true", "immediate_fail": "x-envoy-immediate-health-check-fail: true"}
SERVING_STATUSES = {"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3}

PREFACE_LENGTH = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
DATA, HEADERS_FRAME, SETTINGS, PING = 0, 1, 4, 6
END_STREAM, ACK, END_HEADERS = 1, 1, 4
STATUS_200 = b"\x88"  # The index of ":status: 200" in HPACK's static table.


class ProbedBackend(threading.Thread):
    """Runs until the script is over, or an `error`. After the script, `seen` has one entry for each
    answer of the script, and one for the probe after the last answer."""

    def __init__(self, protocol: str, script: tuple, see: Callable[[int], str]) -> None:
        super().__init__(daemon=True)
        self._answer = {"http": self._answer_http, "tcp": self._answer_tcp, "grpc": self._answer_grpc}[protocol]
        self._script = script
        self._see = see
        self._own = listening_socket()
        self._probed = listening_socket()
        self.own_port = self._own.getsockname()[1]
        self.probed_port = self._probed.getsockname()[1]
        self.seen: list[str] = []
        self.error = ""

    def run(self) -> None:
        try:
            while not self._is_over():
                connection, _ = self._probed.accept()
                connection.settimeout(PATIENCE)
                with connection:
                    self._answer(connection)
        except Exception as error:  # The driver waits for this thread and reports the error.
            self.error = f"{type(error).__name__}: {error} (after {len(self.seen)} probes)"
        finally:
            self._own.close()
            self._probed.close()

    def _is_over(self) -> bool:
        return len(self.seen) > len(self._script)

    def _next_step(self) -> Step:
        """Records the prober's opinion at a new probe. Returns the answer to this probe."""
        number = len(self.seen)
        self.seen.append(self._see(number))
        return self._script[number] if number < len(self._script) else "reset"

    def _answer_http(self, connection: socket.socket) -> None:
        if not read_until(connection, b"\r\n\r\n"):
            return
        step = self._next_step()
        if step == "silent":
            connection.recv(1)  # Returns when the prober gives up.
        elif step == "garbage":
            connection.sendall(b"\x00\x01\x02 this is no HTTP\r\n\r\n")
        elif step != "reset":
            status, header = (step, "") if isinstance(step, int) else (200, HEADERS[step] + "\r\n")
            connection.sendall(f"HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n{header}connection: close\r\n\r\n".encode())
        if step == "reset":
            reset(connection)

    def _answer_tcp(self, connection: socket.socket) -> None:
        if not read_until(connection, b"PING"):
            return
        step = self._next_step()
        if step == "reset":
            reset(connection)
        else:
            connection.sendall(step)
            connection.recv(1)  # Returns when the prober closes the connection.

    def _answer_grpc(self, connection: socket.socket) -> None:
        read_exactly(connection, PREFACE_LENGTH)
        connection.sendall(frame(SETTINGS, 0, 0, b""))
        while header := read_exactly(connection, 9):
            length, kind, flags, stream = int.from_bytes(header[:3], "big"), header[3], header[4], header[5:]
            payload = read_exactly(connection, length)
            if kind in (SETTINGS, PING) and not flags & ACK:
                connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
            if kind not in (DATA, HEADERS_FRAME) or not flags & END_STREAM:
                continue
            step = self._next_step()
            if step == "reset":
                reset(connection)
                return
            connection.sendall(grpc_answer(int.from_bytes(stream, "big"), step))


def grpc_answer(stream: int, step: Step) -> bytes:
    kind = header_field("content-type", "application/grpc")
    if isinstance(step, int):
        return frame(HEADERS_FRAME, END_HEADERS | END_STREAM, stream,
                     STATUS_200 + kind + header_field("grpc-status", str(step)))
    message = bytes([8, SERVING_STATUSES[step]])
    return (frame(HEADERS_FRAME, END_HEADERS, stream, STATUS_200 + kind)
            + frame(DATA, 0, stream, struct.pack(">BI", 0, len(message)) + message)
            + frame(HEADERS_FRAME, END_HEADERS | END_STREAM, stream, header_field("grpc-status", "0")))


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header_field(name: str, value: str) -> bytes:
    """A literal header field of HPACK, without indexing and Huffman coding."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def listening_socket() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    listening.settimeout(PATIENCE)
    return listening


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """The bytes up to `end`. Empty: the prober closed the connection before `end`."""
    came = b""
    while not came.endswith(end):
        data = connection.recv(4096)
        if not data:
            return b""
        came += data
    return came


def read_exactly(connection: socket.socket, length: int) -> bytes:
    """The next `length` bytes. Empty: `length` is 0, or the prober closed the connection
    earlier."""
    came = b""
    while len(came) < length:
        data = connection.recv(length - len(came))
        if not data:
            return b""
        came += data
    return came
