"""Runs the programs of the clients against a running service."""

import json
import socket
import subprocess
from threading import Timer
from urllib.request import Request, urlopen

from clients import COLLECTION
from tools import ENVIRONMENT, MADE, Failed, run

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
    service.marketctl("webhooks", "remove", endpoint["id"])


def collection(service):
    """Runs the Postman collection. Every request must be answered with 200."""
    key = service.new_key()
    request = Request(f"{service.base_url}/v1/public/listings?sort=price_asc&page_size=1")
    request.add_header("Authorization", f"Bearer {key}")
    with urlopen(request) as response:
        listing = json.load(response)["items"][0]
    document = json.loads(COLLECTION.read_text())
    # The examples in the description are of records that the demo market may not have.
    for folder in document["item"]:
        for entry in folder["item"]:
            for variable in entry.get("request", {}).get("url", {}).get("variable", []):
                variable["value"] = {"id": listing["item_id"], "variant_id": listing["variant_id"]}[variable["key"]]
    accepted = "pm.test('is answered with 200', () => pm.response.to.have.status(200));"
    document["event"] = [{"listen": "test", "script": {"type": "text/javascript", "exec": [accepted]}}]
    exercised = COLLECTION.with_suffix(".exercised.json")
    exercised.write_text(json.dumps(document))
    values = {"baseUrl": service.base_url, "bearerToken": key}
    flags = [word for name, value in values.items() for word in ("--env-var", f"{name}={value}")]
    run("newman", "run", exercised, *flags)
