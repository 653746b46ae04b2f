import { pipeline, type Readable } from 'node:stream';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import type { AttachmentService } from '../attachments/attachment.service.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/daily-allowances.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import type { CredentialService } from '../inboxes/credential.service.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import type { ParsedInboundMail, ParserPool } from '../mime/parser/pool.ts';
import { registerObjects } from '../stored-objects/unclaimed-objects.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';
import { queueSubmission, type Submitter } from './queue-submission.ts';
import { checkSubmission } from './rewrite-submission.ts';
import type { DraftCreation } from './send.service.ts';

export interface SubmittedMessage {
  /** Envelope recipients, each valid for the API. */
  recipients: string[];
  raw: Readable;
}

export interface SubmissionServiceOptions {
  database: Database;
  storage: Pick<Storage, 'putStream' | 'getStream'>;
  outbox: Outbox;
  events: EventService;
  drafts: Pick<DraftCreation<string>, 'requestApproval'>;
  sharedDomainLimit?: SharedDomainLimit | undefined;
  credentials: Pick<CredentialService, 'authenticate'>;
  attachments: Pick<AttachmentService, 'storeUpload'>;
  parserPool: Pick<ParserPool, 'parse'>;
}

const UNCLAIMED_GRACE_MS = 3_600_000;

export type SubmissionService = ReturnType<typeof createSubmissionService>;

export function createSubmissionService(options: SubmissionServiceOptions) {
  const { database, storage, credentials } = options;
  return {
    /** @returns null if the address or password is wrong. */
    async authenticate(username: string, password: string): Promise<Submitter | null> {
      const authenticated = await credentials.authenticate(username, password);
      if (!authenticated) return null;
      const { id: inboxId, email, organizationId, environmentId } = authenticated.inbox;
      const scope: Scope = {
        organizationId,
        environmentId,
        environmentBound: true,
        inboxId,
        permissions: new Set(['messages:send'] as const),
        actor: { kind: 'system', id: inboxId },
        requestId: newId('request'),
      };
      return { inboxId, email, rotatedAt: authenticated.rotatedAt, scope };
    },

    /** Whether MAIL FROM is the inbox's address, with or without a plus tag. */
    maySendAs: ({ email }: Submitter, mailFrom: string): boolean => baseAddress(mailFrom) === email,

    /**
     * Queues a submitted message and preserves the sender's MIME. Gate, thread, events and workflow are the same as for a
     * send through the API. The same Message-ID to the same recipients within a day is a duplicate, because a client that
     * missed the response submits the message again.
     *
     * @returns the id of the message, or of the draft that waits for approval.
     * @throws AppError `permission_denied` for a different From, `validation_error` for a malformed message,
     * `unauthenticated` if the password was changed in the meantime, and `message_rejected`, `usage_limit_exceeded` and
     * `*_suspended` as for the API; errors that `raw` emits. Nothing is queued in these cases.
     */
    async submit(submitter: Submitter, { raw, recipients }: SubmittedMessage): Promise<string> {
      const { scope } = submitter;
      const submittedKey = `raw/submitted/${newId('receipt')}.eml`;
      await registerObjects(database, scope, [submittedKey], UNCLAIMED_GRACE_MS);
      await storeChecked(storage, submittedKey, { raw, inboxEmail: submitter.email });
      const { mail, files } = await parseSubmission(options, submitter, submittedKey);
      validateSubmission(mail, submitter);
      const submission = { mail, files, submittedKey, recipients: uniqueAddresses(recipients) };
      const queue = (as: Submitter) =>
        database.transaction(as.scope, (transaction) =>
          queueSubmission(transaction, options, { submitter: as, ...submission }),
        );
      try {
        return await queue(submitter);
      } catch (error) {
        // The limit has rolled back the transaction, so the event is recorded in another one.
        if (isUsageLimitExceeded(error))
          await queue({ ...submitter, scope: { ...scope, sendRefusal: { reason: 'rate_limited', error } } });
        throw error;
      }
    },
  };
}

/** @throws AppError of {@link checkSubmission}; errors of `raw` and of storage. */
async function storeChecked(
  storage: Pick<Storage, 'putStream'>,
  key: string,
  { raw, inboxEmail }: { raw: Readable; inboxEmail: string },
): Promise<void> {
  const checked = checkSubmission(inboxEmail);
  let failure: Error | undefined;
  pipeline(raw, checked, (error) => {
    failure = error ?? undefined;
  });
  try {
    await storage.putStream(key, checked, { contentType: 'message/rfc822' });
  } catch (error) {
    // Storage does not report why its source failed.
    throw failure ?? error;
  }
}

async function parseSubmission(
  { storage, parserPool, attachments }: SubmissionServiceOptions,
  { scope, inboxId }: Submitter,
  submittedKey: string,
): Promise<{ mail: ParsedInboundMail; files: FileToAttach[] }> {
  const mail = await parserPool.parse(await storage.getStream(submittedKey), {
    organizationId: scope.organizationId,
    async storeFile(_index, content, contentType) {
      const metadata = { filename: '', contentType, contentId: null, disposition: 'attachment' as const };
      const { storageKey, sizeBytes, sha256 } = await attachments.storeUpload(
        scope,
        inboxId,
        metadata,
        content,
      );
      return { key: storageKey, stored: { sizeBytes, sha256: Buffer.from(sha256) } };
    },
  });
  const files = mail.attachments.map(({ stored, ...metadata }) => ({
    kind: 'stored' as const,
    file: { ...metadata, ...stored },
  }));
  return { mail, files };
}

function validateSubmission({ from, parseError }: ParsedInboundMail, { email }: Submitter): void {
  if (parseError !== null)
    throw new AppError('validation_error', { detail: parseError, fix: 'Send a well-formed MIME message.' });
  if (!from || baseAddress(from.email) !== email)
    throw new AppError('permission_denied', {
      detail: `From must be ${email}.`,
      fix: 'Set the sender address of the account to the address of the inbox.',
    });
}

function uniqueAddresses(addresses: string[]): string[] {
  return [...new Map(addresses.map((address) => [address.toLowerCase(), address])).values()];
}
