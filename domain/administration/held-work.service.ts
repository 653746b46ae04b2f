import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { SuspensionRun } from '../../workflows/suspensions/settle-held-work.contract.ts';
import type { DraftService } from '../drafts/draft.service.ts';
import { findDraftsSuspendedForAbuse, releaseHeldDrafts } from '../drafts/held-drafts.ts';
import type { EventService } from '../events/event.service.ts';
import { awaitSuspensionHolds } from '../events/event-suspension.ts';
import { releaseHeldSends } from '../outbound/held-sends.ts';
import { rejectSuspendedSends } from '../outbound/reject-suspended-sends.ts';
import { markSettled } from '../suspensions/suspension-run.ts';
import { releaseSuspendedDeliveries } from '../webhooks/release-held-deliveries.ts';
import { releaseUsageLimited } from '../webhooks/release-usage-limited.ts';

export interface HeldWorkCounts {
  messages: number;
  drafts: number;
  deliveries: number;
}

type OnProgress = (counts: HeldWorkCounts) => void;

export type HeldWorkService = ReturnType<typeof createHeldWorkService>;

export interface HeldWorkOptions {
  database: Database;
  outbox: Outbox;
  events: EventService;
  drafts: Pick<DraftService, 'sendDue'>;
  now?: () => Date;
}

/** Settles an organization's held work in batches of one transaction each. Every method can be repeated at any point. */
export function createHeldWorkService(options: HeldWorkOptions) {
  const { database, outbox, events, drafts, now = () => new Date() } = options;

  async function rejectMessages(organizationId: string, onBatch: (count: number) => void): Promise<void> {
    for (let after: string | null = ''; after !== null; ) {
      const position: string = after;
      const batch = await database.systemTransaction((transaction) =>
        rejectSuspendedSends(transaction, { events, outbox }, { organizationId, after: position }),
      );
      onBatch(batch.rejected);
      after = batch.last;
    }
  }

  async function rejectDrafts(organizationId: string, onBatch: (count: number) => void): Promise<void> {
    for (;;) {
      const found = await findDraftsSuspendedForAbuse(database.db, organizationId);
      let refused = 0;
      // The send gate refuses the drafts, with the event. If a suspension has just been lifted, the gate sends the draft.
      for (const { id, scheduleVersion } of found)
        if ((await drafts.sendDue(id, scheduleVersion)) === 'refused') refused += 1;
      onBatch(refused);
      if (refused === 0) return;
    }
  }

  async function releaseAll(
    release: (transaction: Transaction) => Promise<number>,
    onBatch: (count: number) => void,
  ): Promise<void> {
    for (;;) {
      const released = await database.systemTransaction(release);
      if (released === 0) return;
      onBatch(released);
      // Backpressure: the next batch waits until Temporal has accepted this one.
      await outbox.drain();
    }
  }

  return {
    /** Rejects accepted messages and due drafts that an open suspension for abuse affects, each with its event. */
    async reject(organizationId: string, onProgress: OnProgress): Promise<HeldWorkCounts> {
      const counts = createCounter(onProgress);
      await rejectMessages(organizationId, counts.add('messages'));
      await rejectDrafts(organizationId, counts.add('drafts'));
      return counts.total;
    },

    /** Starts messages, drafts and deliveries that no suspension and no limit holds. */
    async release(organizationId: string, onProgress: OnProgress): Promise<HeldWorkCounts> {
      const counts = createCounter(onProgress);
      await releaseAll((tx) => releaseHeldSends(tx, outbox, organizationId), counts.add('messages'));
      await releaseAll((tx) => releaseHeldDrafts(tx, outbox, organizationId), counts.add('drafts'));
      await database.systemTransaction(({ db }) => awaitSuspensionHolds(db, organizationId));
      await releaseAll(
        (tx) => releaseSuspendedDeliveries(tx, outbox, organizationId),
        counts.add('deliveries'),
      );
      await releaseAll(
        (tx) => releaseUsageLimited(tx, outbox, { organizationId, now: now() }),
        counts.add('deliveries'),
      );
      return counts.total;
    },

    /** See {@link markSettled}. */
    markSettled: (suspension: SuspensionRun): Promise<void> => markSettled(database, suspension),
  };
}

function createCounter(onProgress: OnProgress) {
  const total: HeldWorkCounts = { messages: 0, drafts: 0, deliveries: 0 };
  return {
    total,
    add: (kind: keyof HeldWorkCounts) => (count: number) => {
      total[kind] += count;
      onProgress({ ...total });
    },
  };
}
