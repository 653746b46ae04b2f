"""The types of arguments.

Generated from the OpenAPI document by `npm run generate:clients`: do not edit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Mapping, Optional, Sequence, TypedDict, Union


class _RequiredAddressValue(TypedDict):
    #: ASCII, RFC 5321, without a quoted local part.
    email: str


class AddressValue(_RequiredAddressValue, total=False):
    """An object, or a string with or without a display name: "Ada <ada@people.example>"."""

    #: Display name.
    name: str


class AttachmentInput(TypedDict, total=False):
    #: Required with content. A path is reduced to its file name.
    filename: str
    #: Media type (RFC 2045), not multipart/*. Default: application/octet-stream.
    content_type: str
    #: The bytes in base64 (RFC 4648 section 4, with padding, without line ends), at most 5 MiB decoded.
    content: str
    #: Instead of content: an upload, or an attachment of any accessible message or draft (att_…).
    attachment_id: str
    #: Content-ID for <img src="cid:…"> in the HTML; without angle brackets.
    content_id: Optional[str]
    #: Default: inline with content_id, otherwise attachment.
    disposition: Disposition


class _RequiredSendMessage(TypedDict):
    #: Recipients; empty if only cc or bcc have some.
    to: Sequence[Address]


class SendMessage(_RequiredSendMessage, total=False):
    #: Copies.
    cc: Optional[Sequence[Address]]
    #: Blind copies.
    bcc: Optional[Sequence[Address]]
    #: Reply-To addresses; replies go to the inbox if empty.
    reply_to: Optional[Sequence[Address]]
    subject: Optional[str]
    text_body: Optional[str]
    html_body: Optional[str]
    labels: Optional[Sequence[str]]
    headers: Optional[Mapping[str, str]]
    #: Add List-Unsubscribe and List-Unsubscribe-Post (RFC 8058), so that the recipient can unsubscribe with one click.
    #: Needs a single recipient. Default: false.
    unsubscribe: Optional[bool]
    #: Files, at most 25 MiB in total.
    attachments: Optional[Sequence[AttachmentInput]]
    #: Sends automatically at this time, or immediately if it is in the past: the response is 202 with the scheduled
    #: draft.
    send_at: Optional[Union[str, datetime]]


class SetLimitsCounters(TypedDict, total=False):
    messages_sent: SetLimitsCountersMessagesSent
    messages_received: SetLimitsCountersMessagesReceived
    storage_bytes: SetLimitsCountersStorageBytes
    api_calls: SetLimitsCountersApiCalls
    webhook_deliveries: SetLimitsCountersWebhookDeliveries


class SetLimitsCountersApiCalls(TypedDict, total=False):
    #: Usage beyond it is rejected; null removes it.
    own_limit: Optional[int]
    #: Percent of the limit at which owners are warned; null: 80.
    warning_threshold: Optional[int]


class SetLimitsCountersMessagesReceived(TypedDict, total=False):
    #: Usage beyond it is rejected; null removes it.
    own_limit: Optional[int]
    #: Percent of the limit at which owners are warned; null: 80.
    warning_threshold: Optional[int]


class SetLimitsCountersMessagesSent(TypedDict, total=False):
    #: Usage beyond it is rejected; null removes it.
    own_limit: Optional[int]
    #: Percent of the limit at which owners are warned; null: 80.
    warning_threshold: Optional[int]


class SetLimitsCountersStorageBytes(TypedDict, total=False):
    #: Usage beyond it is rejected; null removes it.
    own_limit: Optional[int]
    #: Percent of the limit at which owners are warned; null: 80.
    warning_threshold: Optional[int]


class SetLimitsCountersWebhookDeliveries(TypedDict, total=False):
    #: Usage beyond it is rejected; null removes it.
    own_limit: Optional[int]
    #: Percent of the limit at which owners are warned; null: 80.
    warning_threshold: Optional[int]


#: An object, or a string with or without a display name: "Ada <ada@people.example>".
Address = Union[
    AddressValue,
    str,
]


DeliveryStatus = Literal[
    "pending",
    "delivered",
    "exhausted",
    "held",
    "canceled",
    "blocked",
]


Disposition = Literal[
    "attachment",
    "inline",
]


DraftSendStatus = Literal[
    "draft",
    "scheduled",
    "pending_approval",
    "rejected",
    "failed",
]


EnvironmentKind = Literal[
    "production",
    "sandbox",
]


EventType = Literal[
    "message.received",
    "message.sent",
    "message.delivered",
    "message.bounced",
    "message.complained",
    "message.rejected",
    "draft.pending_approval",
    "draft.approved",
    "draft.rejected",
    "domain.verified",
    "usage.warning",
    "usage.exceeded",
]


InvitationStatus = Literal[
    "pending",
    "accepted",
    "revoked",
    "expired",
]


JoiningRole = Literal[
    "admin",
    "developer",
    "viewer",
]


MemberRole = Literal[
    "owner",
    "admin",
    "developer",
    "viewer",
]


MessageDirection = Literal[
    "inbound",
    "outbound",
]


MessageStatus = Literal[
    "queued",
    "sending",
    "deferred",
    "sent",
    "delivered",
    "bounced",
    "complained",
    "rejected",
    "failed",
    "canceled",
    "needs_attention",
    "received",
]


MessageView = Literal[
    "full",
    "agent",
]


Permission = Literal[
    "inboxes:read",
    "inboxes:write",
    "inboxes:manage",
    "drafts:read",
    "drafts:write",
    "messages:read",
    "messages:write",
    "messages:send",
    "threads:read",
    "webhooks:read",
    "webhooks:manage",
    "events:read",
    "metrics:read",
    "suppressions:read",
    "suppressions:manage",
    "lists:read",
    "lists:manage",
    "domains:read",
    "domains:manage",
    "usage:read",
    "usage:manage",
    "keys:manage",
    "members:read",
    "members:manage",
    "audit:read",
    "policies:manage",
    "sso:manage",
    "environments:manage",
    "retention:manage",
    "export:create",
    "org:update",
    "billing:manage",
]


SortOrder = Literal[
    "asc",
    "desc",
]


SuspendableStatus = Literal[
    "active",
    "suspended",
]


TextFormat = Literal[
    "text",
    "markdown",
]


Tier = Literal[
    "free",
    "developer",
    "business",
    "enterprise",
]


UsageEventType = Literal[
    "threshold_crossed",
    "tier_changed",
    "override_set",
    "override_removed",
    "own_limit_changed",
    "period_closed",
    "hourly_sum",
]
