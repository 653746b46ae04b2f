import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { EventStreams } from '../events/event-stream.ts';
import { type Wait, waitForState } from '../events/wait.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';

export interface DecisionWaitOptions {
  database: Database;
  eventStreams: Pick<EventStreams, 'follow'>;
}

/** What became known about a draft. */
export interface DraftOutcome {
  draftId: string;
  /** `approved`: it is scheduled, and needs no further approval. */
  outcome: 'sent' | 'approved' | 'rejected' | 'failed' | 'deleted';
  /** The message that the draft became; null if it was not sent. */
  messageId: string | null;
  sendAt: Date | null;
  sendError: string | null;
  /** Why the approver decided so. */
  note: string | null;
}

/** A draft that is sent without approval, or deleted, has none of these events. */
const DECISION_EVENTS = { types: ['draft.approved', 'draft.rejected'] } as const;

export type DecisionWaitService = ReturnType<typeof createDecisionWaitService>;

export function createDecisionWaitService({ database, eventStreams }: DecisionWaitOptions) {
  return {
    /**
     * Waits until a person has decided about a draft, or the draft has ended in another way. The outcome of a draft that was
     * sent before is known at once.
     *
     * @throws AppError `not_found`.
     */
    async begin(scope: Scope, draftId: string): Promise<Wait<DraftOutcome>> {
      const found = await database.read(scope, ({ db }) => findState(db, scope, draftId));
      if (!found) throw notFound('draft', draftId);
      return waitForState({
        follower: await eventStreams.follow(scope, { ...DECISION_EVENTS, inboxIds: [found.inboxId] }),
        concerns: ({ data }) => 'draft_id' in data && data.draft_id === draftId,
        async read() {
          const state = await database.read(scope, ({ db }) => findState(db, scope, draftId));
          return state ? state.outcome : { ...NOTHING_ELSE, draftId, outcome: 'deleted' };
        },
      });
    },
  };
}

const NOTHING_ELSE = { messageId: null, sendAt: null, sendError: null, note: null };

interface DraftState {
  inboxId: string;
  /** Undefined while it is open. */
  outcome: DraftOutcome | undefined;
}

/** Undefined if there is neither the draft nor a message that it became. */
async function findState(db: Db, scope: Scope, draftId: string): Promise<DraftState | undefined> {
  const draft = await db
    .selectFrom('drafts')
    .select([
      'inbox_id as inboxId',
      'send_status as sendStatus',
      'send_at as sendAt',
      'send_error as sendError',
      'decision_note as note',
      'approved_version as approvedVersion',
      'version',
    ])
    .where('id', '=', draftId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .executeTakeFirst();
  if (!draft) return findSent(db, scope, draftId);
  const { inboxId, sendStatus, sendAt, sendError, note, approvedVersion, version } = draft;
  const isApproved = sendStatus === 'scheduled' && approvedVersion === version;
  const outcome = isApproved
    ? 'approved'
    : sendStatus === 'rejected' || sendStatus === 'failed'
      ? sendStatus
      : undefined;
  return { inboxId, outcome: outcome && { draftId, outcome, messageId: null, sendAt, sendError, note } };
}

async function findSent(db: Db, scope: Scope, draftId: string): Promise<DraftState | undefined> {
  const message = await db
    .selectFrom('messages')
    .select(['id', 'inbox_id as inboxId'])
    .where('draft_id', '=', draftId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .limit(1)
    .executeTakeFirst();
  return (
    message && {
      inboxId: message.inboxId,
      outcome: {
        ...NOTHING_ELSE,
        draftId,
        outcome: 'sent',
        messageId: message.id,
        note: await findApprovalNote(db, draftId),
      },
    }
  );
}

/** From the event, as long as it is kept: the draft has become a message, which has no note. */
async function findApprovalNote(db: Db, draftId: string): Promise<string | null> {
  const approval = await db
    .selectFrom('events')
    .select(sql<string | null>`nullif(data ->> 'note', '')`.as('note'))
    .where('about_id', '=', draftId)
    .where('type', '=', 'draft.approved')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return approval?.note ?? null;
}
