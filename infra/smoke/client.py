"""A client that makes one request on a connection."""

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30


def get(base_url: str, path: str, key: str) -> int:
    """Returns the status of the answer, or 0 if there was none."""
    url = urlsplit(base_url)
    # RFC 6761 says that these names are loopback, but not every resolver knows it.
    address = "127.0.0.1" if url.hostname.endswith(".localhost") else url.hostname
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(address, url.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path, headers={"Host": url.netloc, "Authorization": f"Bearer {key}"})
        return connection.getresponse().status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()
