#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the names of the spans that it gets as JSON over OTLP/HTTP. Usage: collector.py PORT"""

import http.server
import json
import sys


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:  # pylint: disable=invalid-name
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    print(span["name"], flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: collector.py PORT")
    try:
        with http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Collector) as server:
            print(f"waiting for spans at http://127.0.0.1:{server.server_port}", flush=True)
            server.serve_forever()
    except (OSError, OverflowError) as error:  # The port is in use, or beyond 65535.
        sys.exit(f"collector.py: port {sys.argv[1]}: {error}")
    except KeyboardInterrupt:
        pass
