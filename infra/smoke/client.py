"""Requests to the API, timed at the client."""

import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30


class Client:
    """Makes requests on one connection, which it keeps."""

    def __init__(self, base_url: str, key: str | None = None) -> None:
        url = urlsplit(base_url)
        # RFC 6761 says that these names are loopback, but not every resolver knows it.
        address = "127.0.0.1" if url.hostname.endswith(".localhost") else url.hostname
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self.connection = kind(address, url.port, timeout=TIMEOUT_SECONDS)
        self.headers = {"Host": url.netloc} | ({"Authorization": f"Bearer {key}"} if key else {})

    def connect(self) -> None:
        """Connects, so that the next request does not wait for it."""
        self.connection.connect()

    def close(self) -> None:
        self.connection.close()

    def get(self, path: str) -> tuple[int, float]:
        """Returns the status, 0 if there was no answer, and the milliseconds that it took."""
        kept, begun = self.connection.sock is not None, time.perf_counter()
        status = self.ask(path)
        if kept and not status:
            # The server may end a connection that it has kept, at any time.
            status = self.ask(path)
        return status, (time.perf_counter() - begun) * 1000

    def ask(self, path: str) -> int:
        try:
            self.connection.request("GET", path, headers=self.headers)
            answer = self.connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, HTTPException):
            self.connection.close()
            return 0


def at_once(clients: list[Client], act) -> list:
    """Does something with each client, all at the same time. Returns what came of it."""
    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(act, clients))
