import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import {
  MAIL_ANNOUNCEMENT,
  mailAnnouncementWorkflowId,
} from '../../workflows/announcements/mail-announcement.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { findRequesterProblem } from '../identity/requester.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Announcement } from './announcement.entity.ts';

/**
 * SQL: the membership `m` in the organization `o` belongs to the audience of the announcement `a`. Closed organizations
 * belong to no audience.
 */
export const IS_IN_AUDIENCE = sql<boolean>`o.deleted_at is null and case a.audience
  when 'all' then true
  when 'owners' then m.role = 'owner'
  when 'tier' then o.tier = a.tier
  else o.id = any (a.organization_ids) end`;

export function buildAnnouncementStart({
  id,
  startsAt,
}: Pick<Announcement, 'id' | 'startsAt'>): StartCommand {
  return {
    workflowType: MAIL_ANNOUNCEMENT,
    workflowId: mailAnnouncementWorkflowId(id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.notification, fairnessKey: id },
    input: { announcementId: id, startsAt: startsAt.toISOString() },
    searchAttributes: { ResourceId: id, Stage: 'mailing' },
    summary: `Mail ${id} to owners`,
  };
}

/**
 * `total`: emails created so far, by all runs. `withdrawn`: the announcement was withdrawn, or its author may no longer
 * announce.
 */
export interface MailedBatch {
  kind: 'more' | 'done' | 'withdrawn';
  total: number;
}

export type AnnouncementMailing = ReturnType<typeof createAnnouncementMailing>;

export interface AnnouncementMailingOptions {
  database: Database;
  notifications: PersonNotificationService;
  outbox: Pick<Outbox, 'drain'>;
}

export const MAIL_BATCH_SIZE = 200;

/** For workers. */
export function createAnnouncementMailing({ database, notifications, outbox }: AnnouncementMailingOptions) {
  const mailNext = (announcementId: string) =>
    database.systemTransaction(async (transaction): Promise<MailedBatch> => {
      const { db } = transaction;
      const announcement = await db
        .selectFrom('announcements')
        .select([
          'title',
          'text',
          'mailed_to as mailedTo',
          'mailed_count as mailedCount',
          'withdrawn_at as withdrawnAt',
          'created_by as createdBy',
        ])
        .where('id', '=', announcementId)
        .forUpdate()
        .executeTakeFirst();
      if (!announcement || announcement.withdrawnAt)
        return { kind: 'withdrawn', total: announcement?.mailedCount ?? 0 };
      const { title, text, mailedTo, mailedCount, createdBy: id } = announcement;
      const author = { organizationId: null, actor: { kind: 'staff', id } } as const;
      if (await findRequesterProblem(db, author, { act: 'announcement' })) {
        await db
          .updateTable('announcements')
          .set({ withdrawn_at: sql`now()` })
          .where('id', '=', announcementId)
          .execute();
        return { kind: 'withdrawn', total: mailedCount };
      }
      const owners = await findNextOwners(db, announcementId, mailedTo);
      for (const { id: userId, email } of owners)
        await notifications.notify(transaction, {
          userId,
          email,
          template: 'announcement',
          params: { title, text },
          dedupeKey: `announcement/${announcementId}/${userId}`,
        });
      const total = mailedCount + owners.length;
      const isDone = owners.length < MAIL_BATCH_SIZE;
      await db
        .updateTable('announcements')
        .set({
          mailed_to: owners.at(-1)?.id ?? mailedTo,
          mailed_count: total,
          mailed_at: isDone ? sql`now()` : null,
        })
        .where('id', '=', announcementId)
        .execute();
      return { kind: isDone ? 'done' : 'more', total };
    });

  return {
    /** Creates the next emails and saves the position in one transaction. Concurrent calls wait for each other. */
    async mailBatch(announcementId: string): Promise<MailedBatch> {
      const batch = await mailNext(announcementId);
      // Backpressure: the next batch waits until Temporal has accepted this one.
      await outbox.drain();
      return batch;
    },
  };
}

/** Owners in the audience after the last one who was mailed, by id. */
function findNextOwners(
  db: Db,
  announcementId: string,
  mailedTo: string | null,
): Promise<{ id: string; email: string }[]> {
  return db
    .selectFrom('users as u')
    .select(['u.id', 'u.email'])
    .where('u.id', '>', mailedTo ?? '')
    .where('u.deleted_at', 'is', null)
    .where('u.status', '=', 'active')
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('members as m')
          .innerJoin('organizations as o', 'o.id', 'm.org_id')
          .innerJoin('announcements as a', (join) => join.on('a.id', '=', announcementId))
          .select('m.user_id')
          .whereRef('m.user_id', '=', 'u.id')
          .where('m.role', '=', 'owner')
          .where(IS_IN_AUDIENCE),
      ),
    )
    .orderBy('u.id')
    .limit(MAIL_BATCH_SIZE)
    .execute();
}

/** Announcements whose run is missing. A run that an operator stopped starts again; withdraw the announcement instead. */
export function overdueAnnouncements({ db }: Database): OverdueSource {
  return {
    name: 'announcements',
    async take(limit) {
      const overdue = db
        .selectFrom('announcements')
        .select('id')
        .where('delivery', '=', 'mailed')
        .where('withdrawn_at', 'is', null)
        .where('mailed_at', 'is', null)
        .where('starts_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('announcements')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'starts_at as startsAt'])
        .execute();
      return rows.map((row) => ({
        start: buildAnnouncementStart(row),
        whenStopped: 'restart' as const,
      }));
    },
  };
}
