# SPDX-License-Identifier: Apache-2.0
"""Requests through Envoy, by the thousand: pipelined on one connection, answers counted by the backend that gave them."""

import collections
import re
import socket

PATIENCE = 60
WINDOW = 200  # Requests in flight at a time.
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")
HOST = re.compile(rb"\r\nx-host: ([^\r]*)\r\n")


def count_answers(port: int, path: str, requests: int) -> collections.Counter:
    """How many answers each backend gave ("address:port"); of Envoy's own, how many had each status ("503")."""
    counts = collections.Counter()
    window = WINDOW
    while (left := requests - counts.total()) > 0:
        counts += count_on_one_connection(port, path, left, window)
        window = 1  # Envoy ends a connection on which it answers pipelined requests itself.
    return counts


def count_on_one_connection(port: int, path: str, requests: int, window: int) -> collections.Counter:
    request = f"GET {path} HTTP/1.1\r\nhost: test\r\n\r\n".encode()
    counts = collections.Counter()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        sent, came = 0, b""
        while (answered := counts.total()) < requests:
            batch = min(window - (sent - answered), requests - sent)
            try:
                connection.sendall(request * batch)
                data = connection.recv(1 << 18)
            except (ConnectionResetError, BrokenPipeError):
                break
            if not data:
                break
            sent += batch
            came += data
            start = 0
            while (end := came.find(b"\r\n\r\n", start)) >= 0:
                head = came[start:end + 2]
                length = LENGTH.search(head)
                next_start = end + 4 + (int(length[1]) if length else 0)
                if next_start > len(came):
                    break
                host = HOST.search(head)
                counts[(host[1] if host else head[9:12]).decode()] += 1
                start = next_start
            came = came[start:]
    return counts
