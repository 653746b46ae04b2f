import type { ProviderVerdicts } from './receipt.entity.ts';

/** Where a recipient address of inbound mail leads. `feedback`: whose it is, its content has to tell. */
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

/** One SMTP transaction, its bytes already in storage. */
export interface AcceptedMail {
  /** What the provider that hands the mail over calls it: the same id comes to an inbox once. None over SMTP. */
  transportId?: string;
  rawKey: string;
  sizeBytes: number;
  sha256: Buffer;
  /** Empty string for `<>`. */
  mailFrom: string;
  /** Empty string where it is not known. */
  clientIp: string;
  helo: string | null;
  /** Of the server that took the mail in; none where that was us. */
  verdicts?: ProviderVerdicts;
  tls: boolean;
  receivedAt: Date;
  recipients: { address: string; route: InboundRoute }[];
}
