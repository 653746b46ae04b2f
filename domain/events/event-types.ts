import type { UsageCounter } from '../usage/counters.ts';

/** Maximum size of an event's body as it is sent (UTF-8 JSON). */
export const MAX_EVENT_BYTES = 262_144;

/** Event types and the exact shape of their `data` (specification, section "Events"). Times are ISO 8601 UTC. */
export interface EventDataByType {
  'message.received': {
    message_id: string;
    thread_id: string;
    inbox_id: string;
    from_address: string;
    to_addresses: string[];
    subject: string;
    extracted_text: string;
    has_attachments: boolean;
    received_at: string;
    /** Present only if the text was truncated to keep the body within {@link MAX_EVENT_BYTES}. */
    truncated?: true;
  };
  'message.sent': {
    message_id: string;
    thread_id: string;
    inbox_id: string;
    from_address: string;
    to_addresses: string[];
    subject: string;
    provider_message_id: string;
    sent_at: string;
  };
  'message.delivered': {
    message_id: string;
    thread_id: string;
    inbox_id: string;
    to_addresses: string[];
    delivered_at: string;
    processing_time_ms: number;
  };
  'message.bounced': {
    message_id: string;
    thread_id: string;
    inbox_id: string;
    bounce_type: 'Permanent' | 'Transient';
    bounce_sub_type: 'General' | 'NoEmail' | 'Suppressed';
    bounced_recipients: { email_address: string; status: string; diagnostic_code: string }[];
    bounced_at: string;
  };
  'message.complained': {
    message_id: string;
    inbox_id: string;
    complained_recipients: string[];
    feedback_type: string;
    complained_at: string;
  };
  'message.rejected': {
    inbox_id: string;
    from_address: string;
    to_addresses: string[];
    subject: string;
    rejection_reason: RejectionReason;
    rejection_detail: string;
    rejected_at: string;
  };
  'draft.pending_approval': DraftEventData & {
    version: number;
    from_address: string;
    requested_at: string;
    expires_at: string;
  };
  'draft.approved': DraftEventData & {
    version: number;
    /** Null if the draft is scheduled. */
    message_id: string | null;
    send_at: string | null;
    note: string | null;
    /** User id. */
    approved_by: string;
    approved_at: string;
  };
  'draft.rejected': DraftEventData & {
    version: number;
    decision: 'rejected' | 'expired' | 'canceled' | 'requester_not_allowed';
    note: string | null;
    /** User id; null if the request expired or an operator decided. */
    rejected_by: string | null;
    rejected_at: string;
  };
  'domain.verified': {
    domain_id: string;
    domain_name: string;
    verification_status: 'verified';
    spf_status: DomainRecordStatus;
    dkim_status: DomainRecordStatus;
    dmarc_status: DomainRecordStatus;
    verified_at: string;
  };
  'usage.warning': UsageData;
  'usage.exceeded': UsageData;
}

/** The types `draft.*` are additions to the specification. */
interface DraftEventData {
  draft_id: string;
  inbox_id: string;
  to_addresses: string[];
  subject: string;
}

/** The specification leaves the fields of `usage.*` open. */
interface UsageData {
  counter: UsageCounter;
  current: number;
  /** `current` is `percentage` percent of this limit. */
  limit: number;
  percentage: number;
  /** The threshold that was reached: the warning threshold or 100. */
  threshold: number;
  period_start: string;
  /** Start of the next period, when every counter except `storage_bytes` resets. */
  period_end: string;
}

type DomainRecordStatus = 'pending' | 'verified' | 'failed';

export type RejectionReason = 'blocked_recipient' | 'rate_limited' | 'account_paused';

/** All types an endpoint may subscribe to. */
export const EVENT_TYPES = [
  'message.received',
  'message.sent',
  'message.delivered',
  'message.bounced',
  'message.complained',
  'message.rejected',
  'draft.pending_approval',
  'draft.approved',
  'draft.rejected',
  'domain.verified',
  'usage.warning',
  'usage.exceeded',
] as const satisfies readonly (keyof EventDataByType)[];

export type EventType = (typeof EVENT_TYPES)[number];
export type EventData = EventDataByType[keyof EventDataByType] | Record<string, unknown>;

/** An organization-wide event belongs to no inbox and is delivered in every environment. */
export function isOrganizationWide(type: EventType): boolean {
  return type.startsWith('domain.') || type.startsWith('usage.');
}
