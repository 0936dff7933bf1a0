#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 server on a loopback port, which it prints. By default the port is a free one.

The body of an answer has the server's name and the path. If the path ends with /cookies, the
request's cookies follow. If the path ends with /status/NUMBER, the status is this number, else 200.
Each answer sets a cookie.

Usage: http_server.py NAME [PORT]"""

import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        body = f"{sys.argv[1]} {self.path}".encode()
        if self.path.endswith("/cookies"):
            body += f" {self.headers.get('Cookie', '')}".encode()
        wanted = re.search(r"/status/(\d+)$", self.path)
        self.send_response(int(wanted[1]) if wanted else 200)
        self.send_header("Set-Cookie", "seen=yes; Path=/orders/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
