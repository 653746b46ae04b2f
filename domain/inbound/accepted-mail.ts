import type { ProviderVerdicts } from './receipt.entity.ts';

/** The destination of a recipient address. For `feedback`, the content determines the organization. */
export type InboundRoute = TenantRoute | { kind: 'feedback' };

export type TenantRoute =
  | { kind: 'mail'; organizationId: string; environmentId: string; inboxId: string }
  | {
      kind: 'report';
      organizationId: string;
      environmentId: string;
      inboxId: string;
      messageId: string;
      recipientPosition: number;
    };

/** An SMTP transaction whose bytes are already in storage. */
export interface AcceptedMail {
  /**
   * The id assigned by the provider that delivered the message; an inbox accepts each id only once. Undefined for SMTP.
   */
  transportId?: string;
  rawKey: string;
  sizeBytes: number;
  sha256: Buffer;
  /** Empty string for `<>`. */
  mailFrom: string;
  /** Empty string if unknown. */
  clientIp: string;
  helo: string | null;
  /** Verdicts of the provider that received the message; undefined if this service received it. */
  verdicts?: ProviderVerdicts;
  tls: boolean;
  receivedAt: Date;
  recipients: { address: string; route: InboundRoute }[];
}
