import type { Readable } from 'node:stream';

/** One SMTP transaction: one recipient, one return path, exactly the stored bytes. */
export interface Transmission {
  /** Envelope sender (RFC 5321 reverse-path), a signed return path. */
  sender: string;
  recipient: string;
  /** Opens the stored message. Called once at most, and only when the relay asked for the data. */
  openRaw: () => Promise<Readable>;
  /** Length of what `openRaw` yields; a stream of another length is never completed towards the relay. */
  sizeBytes: number;
  /** DSN envelope id (RFC 3461 section 4.4): printable ASCII, comes back in every report. */
  envelopeId: string;
  /** `never`: nobody waits for reports of this mail (RFC 3461, `NOTIFY=NEVER`). All are asked for otherwise. */
  reports?: 'never';
  /** Ends the wait. What was not handed over by then is safe to send again, everything else is ambiguous. */
  signal?: AbortSignal;
}

/** What a simulator knows at once and a relay tells later in a report. */
export interface ImmediateReport {
  action: 'delivered' | 'failed' | 'complained';
  /** Enhanced status code (RFC 3463). */
  status: string;
  diagnosticCode: string;
}

export type TransmissionResult =
  | {
      kind: 'accepted';
      /** The relay's queue id, where its answer names one. */
      providerMessageId: string | null;
      response: string;
      /** The relay will tell what became of it (DSN, RFC 3461): an outcome is worth waiting for. */
      reportsDelivery: boolean;
      reports?: ImmediateReport[];
    }
  /** Nothing left, or the relay said "later" (4xx): it may be tried again. */
  | { kind: 'deferred'; statusCode: string | null; response: string; cause?: unknown }
  /** The relay said no (5xx): to this recipient, or to the message whoever it is for. */
  | { kind: 'refused'; scope: 'recipient' | 'message'; statusCode: string; response: string }
  /** The relay may have the whole message and its answer was lost. Nobody but a person may send it again. */
  | { kind: 'ambiguous'; response: string; cause?: unknown };

export interface MailTransport {
  readonly name: 'smtp' | 'ses' | 'simulator';
  /** Never throws for what happens in the dialogue, nor for a message that cannot be read: the result says it. */
  transmit(transmission: Transmission): Promise<TransmissionResult>;
  /** Lets transactions in flight end (10 s at most), then closes the connections. */
  close(): Promise<void>;
}

/**
 * An SMTP answer without the addresses in it. Workflow histories and logs are read by operators, and relays like to
 * repeat the address they refuse; the full answer belongs in the attempt's row alone.
 */
export function redactAddresses(text: string): string {
  return text.replace(
    /[^\s<>"'()[\]:;,=]{1,64}@(?:\[[^\]\s]{1,64}\]|[\p{L}\p{N}._-]{1,255})/gu,
    '<redacted>',
  );
}
