"""A webhook receiver. Run: WEBHOOK_SECRET=whsec_… PORT=8080 python3 receive.py (Python 3.9, standard library only)"""

import base64
import hashlib
import hmac
import json
import os
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300


def is_genuine(secret, headers, body):
    """Return whether the service sent the body, unchanged and recently. `body` is the raw bytes, before any parsing."""
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # During a secret rotation there are several signatures, separated by spaces; one valid signature is enough.
    given = headers.get("webhook-signature", "").split(" ")
    return any([hmac.compare_digest(one.encode(), expected.encode()) for one in given])


# An event may arrive more than once. Store its id with your data, in the transaction that handles the event.
handled = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if not is_genuine(SECRET, self.headers, body):
            return self.answer(400)
        event = json.loads(body)
        if event["id"] not in handled:
            handled.add(event["id"])
            print(event["id"], event["type"], flush=True)
        # Respond immediately and work later: after 15 seconds the attempt counts as failed and the event is sent again.
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_arguments):
        pass


if __name__ == "__main__":
    SECRET = os.environ.get("WEBHOOK_SECRET", "")
    if not SECRET.startswith("whsec_"):
        raise SystemExit("Set WEBHOOK_SECRET to the secret of the endpoint")
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Receiver)
    print("listening", flush=True)
    server.serve_forever()
