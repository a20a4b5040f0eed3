"""Lets the tests, whose HTTP client has no TLS, reach an API by HTTPS.

Everything but the headers `Host` and `Connection` is passed on as it came, so that tests see what the API does with
unusual paths.
"""

import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_connection
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

CHUNK = 65536
END = b"\r\n\r\n"
TIMEOUT_SECONDS = 60


class Handler(BaseRequestHandler):
    """Passes on one request, and the answer until the API closes the connection."""

    def handle(self) -> None:
        received = b""
        while END not in received:
            if not (chunk := self.request.recv(CHUNK)):
                return
            received += chunk
        head, body = received.split(END, 1)
        host = self.server.host
        plain = create_connection((host, self.server.port), TIMEOUT_SECONDS)
        with ssl.create_default_context().wrap_socket(plain, server_hostname=host) as api:
            api.sendall(addressed(head, host) + END + body)
            length = re.search(rb"(?im)^content-length: *(\d+)", head)
            left = int(length[1]) - len(body) if length else 0
            while left > 0 and (chunk := self.request.recv(CHUNK)):
                api.sendall(chunk)
                left -= len(chunk)
            while chunk := api.recv(CHUNK):
                self.request.sendall(chunk)


class Server(ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.host, self.port = host, port


def addressed(head: bytes, host: str) -> bytes:
    """Returns the head of a request as one for this host, on a connection for this request alone."""
    first, *headers = head.split(b"\r\n")
    kept = [line for line in headers if not line.lower().startswith((b"host:", b"connection:"))]
    return b"\r\n".join([first, b"Host: " + host.encode(), b"Connection: close", *kept])


@contextmanager
def without_tls(base_url: str) -> Iterator[str]:
    """Yields a base URL without TLS that leads to the same API until the block ends."""
    parts = urlsplit(base_url)
    if parts.scheme != "https":
        yield base_url
        return
    with Server(parts.hostname, parts.port or 443) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
