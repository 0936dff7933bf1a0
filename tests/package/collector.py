# SPDX-License-Identifier: Apache-2.0
"""An OpenTelemetry collector that accepts spans as JSON over OTLP/HTTP, and keeps them."""

import http.server
import json
import threading


class Collector:
    """The collector runs until the end of its `with` block."""

    def __init__(self) -> None:
        self.spans: list[dict] = []
        spans = self.spans

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                known = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                if known:
                    for resource in body["resourceSpans"]:
                        for scope in resource["scopeSpans"]:
                            spans.extend(scope["spans"])
                self.send_response(200 if known else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Collector":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def attributes(of: dict) -> dict[str, object]:
    """The attributes of a span or an event, without their types."""
    return {a["key"]: next(iter(a["value"].values())) for a in of.get("attributes", [])}


def events(span: dict) -> list[str]:
    return [event["name"] for event in span.get("events", [])]
