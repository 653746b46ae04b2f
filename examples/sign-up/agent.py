"""Signs up at a shop with an address of its own, and confirms it by the link in the shop's mail.

Run it against `npm start`, with AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL. The shop is a stand-in at the end of this file.
"""

import json
import os
import secrets
import smtplib
import threading
import urllib.request
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

from agent_email import AgentEmail, types


def main() -> None:
    shop = start_shop()
    with AgentEmail() as client:
        inbox = client.inboxes.create(client_id="sign-up-example", display_name="Shopper")
        last = client.messages.list(inbox.id, direction="inbound", limit=1).page().data
        print(f"Signing up as {inbox.email}")
        body = json.dumps({"email": inbox.email}).encode()
        urllib.request.urlopen(f"{shop}/sign-up", data=body)

        # Since the last message that was here before: an old confirmation does not count.
        message = client.wait_for_message(
            inbox.id, from_="shop.example", subject="confirm", since=last[0].id if last else None, timeout=60
        )
        link = confirmation_link(message, shop)
        print(f"Confirming: {message.subject}")
        with urllib.request.urlopen(link) as answer:
            print(answer.read().decode())
        client.messages.add_labels(message.id, labels=["done"])


def confirmation_link(message: types.AgentMessage, shop: str) -> str:
    """Anyone can send mail that looks like the shop's, so follow only a link to the shop, and only from mail without an alarm."""
    if message.injection and message.injection.level == "alarm":
        raise SystemExit("The mail gives orders to agents. A person should look at it.")
    for link in message.links or []:
        if link.kind == "verify" and urlsplit(link.url).netloc == urlsplit(shop).netloc:
            return link.url
    raise SystemExit("The mail has no link to the shop that confirms the address.")


# What follows stands in for the shop: it mails a link to each address that signs up, and knows who has followed it.


def start_shop() -> str:
    pending: dict[str, str] = {}

    class Shop(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            email = json.loads(self.rfile.read(int(self.headers["content-length"])))["email"]
            token = secrets.token_urlsafe()
            pending[token] = email
            send_mail(email, f"http://{self.headers['host']}/confirm?token={token}")
            self.answer(202, "Look into your mail.")

        def do_GET(self) -> None:
            email = pending.pop(urlsplit(self.path).query.removeprefix("token="), None)
            self.answer(200 if email else 404, f"{email} is confirmed." if email else "This link is not valid.")

        def answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def send_mail(to: str, link: str) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Shop <no-reply@shop.example>", to, "Please confirm your email address"
    mail["Date"], mail["Message-ID"] = formatdate(), make_msgid()
    mail.set_content(f"Welcome! Confirm your email address:\n{link}\n")
    mail.add_alternative(f'<p>Welcome!</p><p><a href="{link}">Confirm your email address</a></p>', subtype="html")
    host, _, port = os.environ.get("INBOUND_SMTP", "127.0.0.1:2526").partition(":")
    with smtplib.SMTP(host, int(port)) as smtp:
        smtp.send_message(mail)


if __name__ == "__main__":
    main()
