"""Receives webhooks in Python: `app` for servers of WSGI, `asgi` for those of ASGI. With a port, starts Werkzeug's own
server: app.py 1.1|1.0 PORT.
"""

import asyncio
import os
import random
import socket
import sys
import time


def note(delivery, port):
    """Appends a line in one write, because several processes and threads do."""
    file = os.open(os.environ["RECEIVED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{delivery} {port} {time.time():.3f}\n".encode())
    os.close(file)


def client_port(environ):
    """Returns the port of the client: of the proxy's client, if there is a proxy."""
    port = environ.get("HTTP_X_CLIENT_PORT") or environ.get("REMOTE_PORT")
    if port:
        return port
    import uwsgi  # Its --http-socket does not tell.

    with socket.socket(fileno=os.dup(uwsgi.connection_fd())) as client:
        return client.getpeername()[1]


def seconds_of_work():
    """Returns for how many seconds the application works after its answer."""
    return random.uniform(0.05, 0.3)


class Answer(list):
    """A body after which the application works: servers call `close` once they have sent it."""

    def close(self):
        time.sleep(seconds_of_work())


def app(environ, start_response):
    environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    note(environ["HTTP_X_SERVICE_DELIVERY_ID"], client_port(environ))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return Answer([b"ok"])


async def asgi(scope, receive, send):
    while (await receive())["more_body"]:
        pass
    note(dict(scope["headers"])[b"x-service-delivery-id"].decode(), scope["client"][1])
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})
    await asyncio.sleep(seconds_of_work())


if __name__ == "__main__":
    from werkzeug.serving import WSGIRequestHandler, run_simple

    class Handler(WSGIRequestHandler):
        protocol_version = f"HTTP/{sys.argv[1]}"

    run_simple("127.0.0.1", int(sys.argv[2]), app, threaded=True, request_handler=Handler)
