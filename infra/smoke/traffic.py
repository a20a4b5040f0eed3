"""Requests to the API, and a relay for those of the tests, whose HTTP client has no TLS."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import cycle
from socket import create_connection
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30
# Within this time one client after the other begins. If all began at once, an account that runs ten functions would
# have none left.
WARM_UP_SECONDS = 10


@contextmanager
def requests(base_url: str, paths: tuple, key: str = "", clients: int = 1, pause: float = 0) -> Iterator[list[int]]:
    """Makes requests to these paths in turns until the block ends. Yields their statuses, with 0 for no answer."""
    url, headers = urlsplit(base_url), {"Authorization": f"Bearer {key}"} if key else {}
    # RFC 6761 says that these names are loopback, but not every resolver knows it.
    address = "127.0.0.1" if url.hostname.endswith(".localhost") else url.hostname
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    statuses, over = [], threading.Event()

    def ask(number: int) -> None:
        over.wait(WARM_UP_SECONDS * number / clients)
        connection = kind(address, url.port, timeout=TIMEOUT_SECONDS)
        for path in cycle(paths):
            if over.wait(pause):
                return
            try:
                connection.request("GET", path, headers=headers | {"Host": url.netloc})
                answer = connection.getresponse()
                answer.read()
                statuses.append(answer.status)
            except (OSError, HTTPException):
                statuses.append(0)
                connection.close()
            # The API may close a connection in a pause, which is no failure.
            if pause:
                connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join()


class Relay(StreamRequestHandler):
    """Passes on one request by HTTPS, and the answer until the API closes the connection.

    Everything but the headers `Host` and `Connection` is passed on as it came, so that tests see what the API does with
    unusual paths.
    """

    def handle(self) -> None:
        head = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            head.append(line)
        if not head:
            return
        host = self.server.host
        kept = [line for line in head if not line.lower().startswith((b"host:", b"connection:"))]
        kept[1:1] = [b"Host: %s\r\n" % host.encode(), b"Connection: close\r\n"]
        lengths = [int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length:")]
        plain = create_connection((host, 443), TIMEOUT_SECONDS)
        with ssl.create_default_context().wrap_socket(plain, server_hostname=host) as api:
            api.sendall(b"".join([*kept, b"\r\n"]) + self.rfile.read(sum(lengths)))
            while chunk := api.recv(65536):
                self.wfile.write(chunk)


@contextmanager
def without_tls(base_url: str) -> Iterator[str]:
    """Yields a base URL without TLS that leads to the same API until the block ends."""
    url = urlsplit(base_url)
    if url.scheme != "https":
        yield base_url
        return
    with ThreadingTCPServer(("127.0.0.1", 0), Relay) as server:
        server.host, server.daemon_threads = url.hostname, True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
