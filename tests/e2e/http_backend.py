# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 server for tests, in a process of its own. It prints its port, and serves until it is
killed.

    GET /...            200, and a cookie of the server's own
    GET /status/503     that status
    GET /cut            closes the connection without an answer
    GET /later          200 after 0.3 s
    GET /never          no answer
    POST /strict        200 if the request is as the test sends it, else 500
"""
import http.server
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Connections stay open.
    disable_nagle_algorithm = True
    wbufsize = -1  # Headers and body are sent together.

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        status = 200
        if path.startswith("/status/"):
            status = int(path.removeprefix("/status/"))
        elif path == "/cut":
            self.close_connection = True
            return
        elif path == "/later":
            time.sleep(0.3)
        elif path == "/never":
            time.sleep(3600)
        elif path == "/strict":
            is_good = (
                self.command == "POST"
                and self.path == "/strict?a=b"
                and self.headers.get_all("host") == ["shop"]
                and self.headers.get_all("x-load") == ["yes"]
                and self.headers.get("content-type") is None
                and body == b"ping"
            )
            status = 200 if is_good else 500
        text = b"" if self.command == "HEAD" else b"hello\n"
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.send_header("set-cookie", "server=1; Path=/")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
