"""A client of the API."""

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30


class Client:
    """Makes one request after the other, on one connection for as long as the API keeps it."""

    def __init__(self, base_url: str, key: str | None = None) -> None:
        url = urlsplit(base_url)
        # RFC 6761 says that these names are loopback, but not every resolver knows it.
        address = "127.0.0.1" if url.hostname.endswith(".localhost") else url.hostname
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self.connection = kind(address, url.port, timeout=TIMEOUT_SECONDS)
        self.headers = {"Host": url.netloc} | ({"Authorization": f"Bearer {key}"} if key else {})

    def get(self, path: str) -> tuple[int, bytes]:
        """Returns the status and the body of the answer. The status is 0 if there was none."""
        try:
            self.connection.request("GET", path, headers=self.headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            self.connection.close()
            return 0, b""

    def close(self) -> None:
        self.connection.close()


def get(base_url: str, path: str, key: str) -> tuple[int, bytes]:
    """Makes a request on a connection of its own."""
    client = Client(base_url, key)
    try:
        return client.get(path)
    finally:
        client.close()
