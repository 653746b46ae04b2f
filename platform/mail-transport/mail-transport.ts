import type { Readable } from 'node:stream';

/** One SMTP transaction: one recipient, one return path, and exactly the stored bytes. */
export interface Transmission {
  /** Envelope sender (RFC 5321 reverse-path), a signed return path. */
  sender: string;
  recipient: string;
  /** Opens the stored message. Called at most once, and only when the relay is ready for the data. */
  openRaw: () => Promise<Readable>;
  /** Length of the stream from `openRaw`. If the stream has another length, the relay never receives a complete message. */
  sizeBytes: number;
  /** DSN envelope id (RFC 3461 section 4.4): printable ASCII, returned in every report. */
  envelopeId: string;
  /** `never` requests no delivery reports (RFC 3461, `NOTIFY=NEVER`); otherwise all are requested. */
  reports?: 'never';
  /** Ends the wait. A message not transferred by then is safe to resend; otherwise the result is ambiguous. */
  signal?: AbortSignal;
}

/** An outcome that the simulator reports immediately, and that a relay would report later. */
export interface ImmediateReport {
  action: 'delivered' | 'failed' | 'complained';
  /** Enhanced status code (RFC 3463). */
  status: string;
  diagnosticCode: string;
}

export type TransmissionResult =
  | {
      kind: 'accepted';
      /** The relay's queue id, if its response contains one. */
      providerMessageId: string | null;
      response: string;
      /** The relay supports DSN (RFC 3461), so a delivery report can be expected. */
      reportsDelivery: boolean;
      reports?: ImmediateReport[];
    }
  /** The message was not transferred, or the relay responded 4xx: it may be retried. */
  | { kind: 'deferred'; statusCode: string | null; response: string; cause?: unknown }
  /** The relay responded 5xx: to this recipient, or to the message for any recipient. */
  | { kind: 'refused'; scope: 'recipient' | 'message'; statusCode: string; response: string }
  /** The relay may have the complete message, but its response was lost. Only a person may decide to resend it. */
  | { kind: 'ambiguous'; response: string; cause?: unknown };

export interface MailTransport {
  readonly name: 'smtp' | 'ses' | 'simulator';
  /** Never throws for SMTP failures or an unreadable message: the result describes them. */
  transmit(transmission: Transmission): Promise<TransmissionResult>;
  /** Waits up to 10 s for transactions in flight, then closes the connections. */
  close(): Promise<void>;
}

/**
 * Removes addresses from an SMTP response. Relays often repeat the address they refuse, but operators read workflow
 * histories and logs; only the attempt's row may contain the full response.
 */
export function redactAddresses(text: string): string {
  return text.replace(
    /[^\s<>"'()[\]:;,=]{1,64}@(?:\[[^\]\s]{1,64}\]|[\p{L}\p{N}._-]{1,255})/gu,
    '<redacted>',
  );
}
