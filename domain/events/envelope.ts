import type { Event } from './event.entity.ts';
import { type EventDataByType, type EventType, MAX_EVENT_BYTES } from './event-types.ts';

/** The body of a webhook request (specification, section "Envelope"). */
export interface Envelope {
  id: string;
  type: EventType;
  timestamp: string;
  org_id: string;
  env_id: string;
  data: Event['data'];
  /** Present only if the subject of the event was deleted. */
  redacted?: true;
}

export function buildEnvelope(
  event: Pick<Event, 'id' | 'type' | 'createdAt' | 'organizationId' | 'environmentId' | 'data'> &
    Partial<Pick<Event, 'redacted'>>,
): Envelope {
  return {
    id: event.id,
    type: event.type,
    timestamp: event.createdAt.toISOString(),
    org_id: event.organizationId,
    env_id: event.environmentId,
    data: event.data,
    ...(event.redacted ? { redacted: true } : {}),
  };
}

/** The envelope as the bytes that are signed and sent. */
export function serializeEnvelope(event: Parameters<typeof buildEnvelope>[0]): string {
  return JSON.stringify(buildEnvelope(event));
}

/**
 * Keeps an event's body within {@link MAX_EVENT_BYTES}: truncates `extracted_text`, the only unbounded field, between two
 * characters and sets `truncated`. An envelope that fits is returned unchanged.
 */
export function truncateToFit(envelope: Envelope): Envelope {
  if (jsonBytes(envelope) <= MAX_EVENT_BYTES || !hasText(envelope.data)) return envelope;
  const withText = (text: string): Envelope => ({
    ...envelope,
    data: { ...envelope.data, extracted_text: text, truncated: true },
  });
  const availableBytes = MAX_EVENT_BYTES - jsonBytes(withText(''));
  return withText(cutToBytes(envelope.data.extracted_text, availableBytes));
}

function hasText(data: Event['data']): data is EventDataByType['message.received'] {
  return 'extracted_text' in data && typeof data.extracted_text === 'string';
}

/** The longest prefix of whole characters whose JSON, without its quotes, has at most `maxBytes` bytes. */
function cutToBytes(text: string, maxBytes: number): string {
  let fittingLength = 0;
  // Each UTF-16 code unit takes at least one byte, so a longer prefix never fits.
  let excessiveLength = Math.min(text.length, Math.max(0, maxBytes)) + 1;
  while (excessiveLength - fittingLength > 1) {
    const middle = (fittingLength + excessiveLength) >> 1;
    if (jsonBytes(wholeCharacters(text, middle)) - QUOTE_BYTES <= maxBytes) fittingLength = middle;
    else excessiveLength = middle;
  }
  return wholeCharacters(text, fittingLength);
}

const QUOTE_BYTES = 2;

/** Cuts the text without leaving half a surrogate pair at the end. */
function wholeCharacters(text: string, units: number): string {
  const last = text.charCodeAt(units - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? units - 1 : units);
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
