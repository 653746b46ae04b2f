import { validateHeaderValue } from 'node:http';
import { Readable } from 'node:stream';
import { pino } from 'pino';
import { createUnsubscribeLinks } from '../../domain/deliverability/unsubscribe-links.ts';
import type { DkimKeys } from '../../domain/domains/dkim-keys.ts';
import type { EventService } from '../../domain/events/event.service.ts';
import { skipAuthentication } from '../../domain/inbound/mail-authentication.ts';
import { createReceiptService, type ReceiptServiceOptions } from '../../domain/inbound/receipt.service.ts';
import { cancelOpenRecipients } from '../../domain/outbound/cancel-send.ts';
import {
  createOutcomeService,
  type OutcomeService,
  recordSend,
  resolveAmbiguity,
} from '../../domain/outbound/outcome.service.ts';
import { prepareSend } from '../../domain/outbound/prepare-send.ts';
import type { DraftCreation } from '../../domain/outbound/send.service.ts';
import { type StoppedSend, stopSend } from '../../domain/outbound/stop-send.ts';
import { type TransmissionOptions, transmitMessage } from '../../domain/outbound/transmit-message.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type {
  MailTransport,
  Transmission,
  TransmissionResult,
} from '../../platform/mail-transport/mail-transport.ts';
import { createSimulatorTransport } from '../../platform/mail-transport/simulator-transport.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { createRateLimiter, leaseFromDatabase } from '../../platform/rate-limit/rate-limiter.ts';
import { createReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import type { AmbiguityDecision } from '../../workflows/outbound/send-message.contract.ts';

const TEST_KEY = Buffer.alloc(32, 7).toString('base64');

/** For services that send without an approval policy. */
export const noApprovals: DraftCreation<never> = {
  schedule: () => Promise.reject(new Error('nothing is scheduled here')),
  requestApproval: () => Promise.reject(new Error('no approval is required here')),
};
export const TEST_APPROVAL_MS = 7 * 86_400_000;

/** The return paths of the services below. */
export const testUnsubscribeLinks = createUnsubscribeLinks({
  signingKey: TEST_KEY,
  publicUrl: 'https://mail.test',
});
export const testReturnPaths = createReturnPaths({ signingKey: TEST_KEY, domain: 'bounces.mail.test' });

/** A fake relay: `answer` returns its result, `transmissions` records the calls. */
export class ScriptedTransport implements MailTransport {
  readonly name = 'smtp';
  readonly transmissions: Transmission[] = [];
  #answer: (transmission: Transmission) => Promise<TransmissionResult>;

  constructor(answer: (transmission: Transmission) => Promise<TransmissionResult>) {
    this.#answer = answer;
  }

  answerWith(answer: (transmission: Transmission) => Promise<TransmissionResult>): void {
    this.#answer = answer;
  }

  transmit(transmission: Transmission): Promise<TransmissionResult> {
    this.transmissions.push(transmission);
    return this.#answer(transmission);
  }

  async close(): Promise<void> {}
}

export const accepted: TransmissionResult = {
  kind: 'accepted',
  providerMessageId: 'queue-1',
  response: '250 2.0.0 queued as queue-1',
  reportsDelivery: true,
};
export const deferred: TransmissionResult = {
  kind: 'deferred',
  statusCode: '4.7.1',
  response: '451 4.7.1 greylisted',
};
export const refused: TransmissionResult = {
  kind: 'refused',
  scope: 'recipient',
  statusCode: '5.1.1',
  response: '550 5.1.1 no such user',
};
export const ambiguous: TransmissionResult = {
  kind: 'ambiguous',
  response: 'connection lost after the final dot',
};

/** The steps of a send, as the run calls them. */
type SendSteps = ReturnType<typeof createSendSteps>;

function createSendSteps(options: TransmissionOptions, events: EventService) {
  const { database, outcomes } = options;
  const allowed = new Set<string>();
  return {
    async prepare(messageId: string) {
      const prepared = await prepareSend(database, events, messageId);
      if (prepared === 'allowed') allowed.add(messageId);
      else allowed.delete(messageId);
      return prepared;
    },
    /** With what `prepare` last returned for the message, as the activity does. */
    transmit: (messageId: string, isAborted: () => boolean) =>
      transmitMessage(options, messageId, isAborted, { marksSending: allowed.has(messageId) }),
    record: (messageId: string) => recordSend(database, outcomes, messageId),
    resolveAmbiguity: (messageId: string, decision: AmbiguityDecision) =>
      resolveAmbiguity(database, outcomes, messageId, decision),
    cancel: (messageId: string, detail: string) =>
      cancelOpenRecipients(database, outcomes, messageId, detail),
    stop: (messageId: string, stopped: StoppedSend) => stopSend(database, events, messageId, stopped),
  };
}

export interface MailServices {
  dispatch: SendSteps;
  /** What the steps of {@link dispatch} are built from. */
  sendOptions: TransmissionOptions & { events: EventService };
  outcomes: OutcomeService;
  /** Stored objects by key. */
  objects: Map<string, Buffer>;
}

/** No domain has a key, for tests that are not about signatures. */
export const unsigned: DkimKeys = { findSigningKey: async () => null };

/** Dispatch and outcomes with a real database, a fake relay and storage in memory. */
export function createMailServices(
  database: Database,
  mailTransport: MailTransport,
  {
    outbox,
    retryWindowMs = 24 * 3_600_000,
    dkimKeys = unsigned,
  }: { outbox: Outbox; retryWindowMs?: number; dkimKeys?: DkimKeys },
): MailServices {
  const events = createWebhookEvents({ outbox });
  const outcomes = createOutcomeService({
    events,
    outbox,
    retryWindowMs,
    simulatorDomain: 'simulator.mail.test',
  });
  const objects = new Map<string, Buffer>();
  const options: TransmissionOptions = {
    database,
    dkimKeys,
    storage: createMemoryStorage(objects),
    mailTransport,
    simulator: createSimulatorTransport({ mailDomain: 'mail.test' }),
    returnPaths: testReturnPaths,
    outcomes,
  };
  const dispatch = createSendSteps(options, events);
  return { dispatch, sendOptions: { ...options, events }, outcomes, objects };
}

/** Storage in a map, for tests that are not about storage. */
export function createMemoryStorage(
  objects: Map<string, Buffer>,
): Pick<Storage, 'putBytes' | 'putStream' | 'getStream' | 'getBytes'> {
  return {
    async putBytes(key, bytes) {
      objects.set(key, Buffer.from(bytes));
      return { sizeBytes: bytes.length, sha256: sha256(bytes) };
    },
    async putStream(key, source, { contentType }) {
      // S3 receives the type in a header, which must be valid.
      validateHeaderValue('content-type', contentType);
      const chunks: Buffer[] = [];
      for await (const chunk of source) chunks.push(Buffer.from(chunk));
      const bytes = Buffer.concat(chunks);
      objects.set(key, bytes);
      return { sizeBytes: bytes.length, sha256: sha256(bytes) };
    },
    getStream: async (key) => Readable.from([objects.get(key) ?? Buffer.alloc(0)]),
    getBytes: async (key) => objects.get(key) ?? Buffer.alloc(0),
  };
}

/** The listener's address resolution and receipts with a real database. Complaints go to complaints@bounces.mail.test. */
export function createTestReceiptService(
  options: Pick<ReceiptServiceOptions, 'database' | 'outbox'> & Partial<ReceiptServiceOptions>,
) {
  return createReceiptService({
    returnPaths: testReturnPaths,
    storage: createMemoryStorage(new Map()),
    feedbackAddress: 'complaints@bounces.mail.test',
    authenticate: skipAuthentication,
    rateLimiter: createRateLimiter({
      lease: leaseFromDatabase(options.database),
      logger: pino({ level: 'silent' }),
    }),
    catchAllPerHour: 600,
    ...options,
  });
}
