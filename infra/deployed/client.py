"""A client of the API that makes requests while something else happens."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException

from steps import Failed

# Seconds between requests, and seconds that an answer may take.
PAUSE = 0.05
TIMEOUT = 30


class Client:
    """Makes one request, again and again."""

    def __init__(self, address: str, port: int, host: str, path: str, key: str) -> None:
        # The name of the host does not resolve everywhere, so the address is given beside it.
        self.address, self.port, self.path = address, port, path
        self.headers = {"Host": host, "Authorization": f"Bearer {key}"}

    def get(self) -> str:
        """Returns the status of the answer, or what went wrong."""
        connection = HTTPConnection(self.address, self.port, timeout=TIMEOUT)
        try:
            connection.request("GET", self.path, headers=self.headers)
            return str(connection.getresponse().status)
        except (OSError, HTTPException) as error:
            return repr(error)
        finally:
            connection.close()

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Makes requests until the block ends. Fails if one is not answered with 200."""
        answers: Counter[str] = Counter()
        over = threading.Event()

        def ask() -> None:
            while not over.is_set():
                answers[self.get()] += 1
                over.wait(PAUSE)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        print(f"   requests meanwhile: {dict(answers)}", flush=True)
        if set(answers) != {"200"}:
            raise Failed(f"requests failed meanwhile: {dict(answers)}")
