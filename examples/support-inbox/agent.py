"""Answers the questions of customers that it knows, and leaves the rest to a person. Each answer waits for an approval if the
organization wants that (policy require_send_approval): a person gives it on the page /approvals.

Run it against `npm start`, with AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL. The customers are stand-ins at the end of this
file; a model would stand where `find_answer` does.
"""

import os
import smtplib
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Optional

from agent_email import AgentEmail, APIError, types

ANSWERS = {
    "arrive": "Your order arrives within three days. The shop mails you a link to follow it.",
    "invoice": "The invoice is in your account, under Orders.",
}
QUESTIONS = [("Order 4711", "Hello, when does my order arrive?"), ("Broken", "The lamp is broken. I want my money back.")]


def main() -> None:
    with AgentEmail() as client:
        inbox = client.inboxes.create(client_id="support-example", display_name="Support")
        last = client.messages.list(inbox.id, direction="inbound", limit=1).page().data
        since = last[0].id if last else None
        # An agent that runs for good would say `while True` here, and keep `since` in a file.
        for subject, text in QUESTIONS:
            write_as_customer(inbox.email, subject, text)
            message = client.wait_for_message(inbox.id, since=since, timeout=60)
            handle(client, message)
            since = message.id


def handle(client: AgentEmail, message: types.AgentMessage) -> None:
    print(f"{message.from_.email} asks: {message.subject}")
    answer = find_answer(message)
    if answer is None:
        client.messages.add_labels(message.id, labels=["needs-person"])
        print("  left to a person")
        return
    # With a key of its own per question, an agent that starts again does not answer twice.
    sent = client.messages.reply(message.id, text_body=answer, view="agent", idempotency_key=f"answer-{message.id}")
    if sent.object == "draft":
        print(f"  waits for an approval: {sent.id}", flush=True)
        outcome = client.wait_for_decision(sent.id, timeout=600)
        if outcome.outcome != "sent" or outcome.message_id is None:
            client.messages.add_labels(message.id, labels=["needs-person"])
            print(f"  {outcome.outcome}: {outcome.note or outcome.send_error or 'no reason given'}")
            return
        message_id = outcome.message_id
    else:
        message_id = sent.id
    client.messages.add_labels(message.id, labels=["answered"])
    print(f"  answered: {client.wait_for_outcome(message_id, timeout=60).status}")


def find_answer(message: types.AgentMessage) -> Optional[str]:
    """None if the question is unknown, or the mail is an attempt to give orders to agents."""
    if message.injection and message.injection.level != "none":
        return None
    text = (message.text or "").lower()
    return next((answer for word, answer in ANSWERS.items() if word in text), None)


# What follows stands in for the customers.


def write_as_customer(to: str, subject: str, text: str) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ada <ada@people.example>", to, subject
    mail["Date"], mail["Message-ID"] = formatdate(), make_msgid()
    mail.set_content(text)
    host, _, port = os.environ.get("INBOUND_SMTP", "127.0.0.1:2526").partition(":")
    with smtplib.SMTP(host, int(port)) as smtp:
        smtp.send_message(mail)


if __name__ == "__main__":
    try:
        main()
    except APIError as error:
        raise SystemExit(f"{error}")
