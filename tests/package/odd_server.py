# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 server that sends no whole response in time. The end of the path says why:

    /closed    the connection ends without a response
    /garbage   the response is no HTTP
    /cut       the body ends too early
    /late      the headers come after some seconds
    /trickle   the body comes byte by byte, without end
"""

import socketserver
import threading

LATE = 4  # Seconds. cpp-httplib's own limit is 5 s.
STEP = 0.05  # Seconds between two bytes of a body without end.
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


class OddServer:
    """The server runs until the end of its `with` block."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        ended = self._ended

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                way = self.rfile.readline().decode().partition(" HTTP/")[0].rpartition("/")[2]
                while self.rfile.readline() not in (b"\r\n", b""):
                    pass
                if way == "garbage":
                    self.wfile.write(b"good morning\r\n")
                elif way == "cut":
                    self.wfile.write(HEADERS + b"a body")
                elif way == "late" and not ended.wait(LATE):
                    self.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                elif way == "trickle":
                    self.answer(HEADERS)
                    while self.answer(b".") and not ended.wait(STEP):
                        pass

            def answer(self, text: bytes) -> bool:
                try:
                    self.wfile.write(text)
                except OSError:  # The client has gone.
                    return False
                return True

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def __enter__(self) -> "OddServer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
