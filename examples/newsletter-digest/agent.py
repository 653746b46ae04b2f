"""Reads the newsletters of an inbox, and sends one person a digest of them: each newsletter stands in one digest.

Run it against `npm start`, with AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL. The newsletters are stand-ins at the end of this
file; a model would stand where `first_sentence` does.
"""

import hashlib
import os
import re
import smtplib
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from html import escape
from typing import List

from agent_email import AgentEmail, types

READER = os.environ.get("READER", "ada@people.example")
LABEL = "digested"


def main() -> None:
    with AgentEmail() as client:
        inbox = client.inboxes.create(client_id="digest-example", display_name="Digest")
        receive_newsletters(client, inbox)
        messages = client.messages.list(inbox.id, direction="inbound", view="agent", order="asc")
        new = [message for message in messages if LABEL not in (message.labels or [])]
        if not new:
            print("Nothing new")
            return
        # The key names what is in it: an agent that crashed after the send does not send it twice.
        key = hashlib.sha256(" ".join(message.id for message in new).encode()).hexdigest()
        sent = client.messages.send(
            inbox.id,
            to=[READER],
            subject=f"{len(new)} newsletters for you",
            text_body="\n\n".join(f"{message.subject}\n{first_sentence(message)}" for message in new),
            html_body="".join(as_html(message) for message in new),
            view="agent",
            idempotency_key=f"digest-{key}",
        )
        for start in range(0, len(new), 100):
            client.messages.change_labels(ids=[message.id for message in new[start : start + 100]], add=[LABEL])
        print(f"{len(new)} newsletters in {sent.id}")
        if sent.object == "message":
            print(f"The digest: {client.wait_for_outcome(sent.id, timeout=60).status}")


def first_sentence(message: types.AgentMessage) -> str:
    text = " ".join((message.text or "").split())
    return re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0][:200]


def as_html(message: types.AgentMessage) -> str:
    """What strangers wrote is text, never markup."""
    sender = message.from_.name or message.from_.email
    return f"<h3>{escape(message.subject or '')}</h3><p>{escape(sender or '')}: {escape(first_sentence(message))}</p>"


# What follows stands in for the publishers.

NEWSLETTERS = [
    ("Garden <news@garden.example>", "Tulips in autumn", "Plant tulips before the first frost. They need sun."),
    ("Harbour <news@harbour.example>", "Three ships & a storm", "Three ships waited out the <b>storm</b>. All are well."),
    ("Weather <news@weather.example>", "A mild winter", "Forecasters expect a mild winter! Rain in the west."),
]


def receive_newsletters(client: AgentEmail, inbox: types.Inbox) -> None:
    newest: List[types.AgentMessage] = client.messages.list(inbox.id, direction="inbound", view="agent", limit=1).page().data
    since = newest[0].id if newest else None
    host, _, port = os.environ.get("INBOUND_SMTP", "127.0.0.1:2526").partition(":")
    for sender, subject, text in NEWSLETTERS:
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = sender, inbox.email, subject
        mail["Date"], mail["Message-ID"] = formatdate(), make_msgid()
        mail.set_content(text)
        with smtplib.SMTP(host, int(port)) as smtp:
            smtp.send_message(mail)
        since = client.wait_for_message(inbox.id, since=since, timeout=60).id


if __name__ == "__main__":
    main()
