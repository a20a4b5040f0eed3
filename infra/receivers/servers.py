"""The servers that receive the webhooks, and how they are started. Each keeps connections as it does by default. It has
enough processes or threads to answer a burst in time, although most applications go on working after an answer.
"""

import asyncio
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent
# Seconds within which a server must accept connections.
START_LIMIT = 30

UWSGI = "127.0.0.1:$port --processes 16 --need-app --wsgi-file $here/app.py --callable app"
GUNICORN = "gunicorn --no-control-socket --bind 127.0.0.1:$port"
APACHE = "apache2 -DFOREGROUND -d $folder -f $folder/apache.conf"
BEHIND = "waitress-serve --listen=127.0.0.1:$behind --threads=32 app:app"
# The name of each server, its version (that of a Python package, or what a command prints), and the command that starts
# it. For a proxy, a second command starts the application behind it.
SERVERS = [
    ("uWSGI, http-socket", "pyuwsgi", f"uwsgi --http-socket {UWSGI}"),
    ("uWSGI, http", "pyuwsgi", f"uwsgi --http {UWSGI}"),
    ("gunicorn, sync", "gunicorn", f"{GUNICORN} --workers 16 app:app"),
    ("gunicorn, gthread", "gunicorn", f"{GUNICORN} --workers 2 --threads 16 app:app"),
    ("waitress", "waitress", "waitress-serve --listen=127.0.0.1:$port --threads=32 app:app"),
    ("uvicorn", "uvicorn", "uvicorn --port $port app:asgi"),
    ("Werkzeug", "werkzeug", "python -B $here/app.py 1.1 $port"),
    ("Werkzeug, HTTP/1.0", "werkzeug", "python -B $here/app.py 1.0 $port"),
    ("Node", "node --version", "node $made/server.mjs http $port"),
    ("Express", "node -p require('express/package.json').version", "node $made/server.mjs express $port"),
    ("PHP", "php --version", "php -S 127.0.0.1:$port $here/index.php"),
    ("Go", "go version", "$made/go-server $port"),
    ("nginx", "nginx -v", "nginx -e stderr -p $folder -c $folder/nginx.conf", BEHIND),
    ("Apache, event", "apache2 -v", f"{APACHE} -D event", BEHIND),
    ("Apache, prefork", "apache2 -v", f"{APACHE} -D prefork", BEHIND),
]


class Failed(Exception):
    """Why the check cannot go on."""


class Server:
    """A server that runs in a folder of its own, `target/receivers/servers/NAME`, where its log is."""

    def __init__(self, made, name, version_of, *commands):
        self.name = name
        self.version = find_version(version_of, made)
        self.folder = made / "servers" / re.sub(r"\W+", "-", name)
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        self.received = self.folder / "received"
        self.received.touch()
        self.held = [hold_a_port() for _ in commands]
        self.ports = [each.getsockname()[1] for each in self.held]
        self.url = f"http://127.0.0.1:{self.ports[0]}/"
        self.commands = commands
        self.processes = []

    def start(self, made):
        words = {"here": HERE, "made": made, "folder": self.folder, "port": self.ports[0], "behind": self.ports[-1]}
        for config in HERE.glob("*.conf"):
            if config.name in self.commands[0]:
                # nginx has variables of its own.
                (self.folder / config.name).write_text(Template(config.read_text()).safe_substitute(words))
        env = os.environ | {"RECEIVED": str(self.received), "PHP_CLI_SERVER_WORKERS": "16"}
        env |= {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        for command, held in zip(self.commands, self.held, strict=True):
            held.close()
            arguments = [Template(word).substitute(words) for word in command.split()]
            with self.log.open("a") as log:
                process = subprocess.Popen(
                    arguments,
                    cwd=self.folder,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # So `kill` ends the processes that this one starts, too.
                    start_new_session=True,
                )
            self.processes.append(process)

    async def ready(self):
        """Returns once the server accepts connections."""
        limit = time.monotonic() + START_LIMIT
        for port in self.ports:
            while not accepts(port):
                if time.monotonic() > limit or any(process.poll() is not None for process in self.processes):
                    raise Failed(f"{self.name} does not start: see {os.path.relpath(self.log)}")
                await asyncio.sleep(0.05)

    def kill(self):
        """Ends the server's processes, which have nothing to lose."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def running(made):
    """Starts all servers, and ends them when the block ends."""
    shutil.rmtree(made / "servers", ignore_errors=True)
    servers = [Server(made, *entry) for entry in SERVERS]
    try:
        for server in servers:
            server.start(made)
        yield servers
    finally:
        for server in servers:
            server.kill()


def find_version(of, made):
    if " " not in of:
        return version(of)
    done = subprocess.run(of.split(), cwd=made, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return re.search(r"\d+(\.\d+)+", done.stdout)[0]


def hold_a_port():
    """Returns a socket that listens on a free port, below those that Linux gives to connections: before the server
    listens, a connection of somebody else could otherwise take it.
    """
    while True:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", random.randrange(20_000, 30_000)))


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
