"""Runs the programs of the clients against a running service."""

import socket
import subprocess
from threading import Timer

from tools import ENVIRONMENT, MADE, Failed

# Seconds that a program may take.
LIMIT = 120
EVENT = "listing.sold"


def exercise(service, command):
    """Runs a client's program with a key and a webhook endpoint of its own. Sends the event once the program listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    user, url = service.user_id, f"http://127.0.0.1:{port}/hooks"
    endpoint = service.marketctl("webhooks", "add", "--user", user, "--url", url, "--event", EVENT)
    own = {
        "API_BASE_URL": service.base_url,
        "API_KEY": service.new_key(),
        "WEBHOOK_PORT": str(port),
        "WEBHOOK_SECRET": endpoint["secret"],
    }
    with subprocess.Popen(command, env=ENVIRONMENT | own, cwd=MADE, stdout=subprocess.PIPE, text=True) as process:
        timer = Timer(LIMIT, process.kill)
        timer.start()
        for line in process.stdout:
            print(f"   {line}", end="", flush=True)
            if line == "listening\n":
                service.marketctl("webhooks", "test", endpoint["id"], "--event", EVENT)
        timer.cancel()
    if process.returncode != 0:
        raise Failed(f"{command[-1]} ended with {process.returncode}")
    service.marketctl("webhooks", "remove", "--yes", endpoint["id"])
