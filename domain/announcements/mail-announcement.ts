import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { findRequesterProblem } from '../identity/requester.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { buildAnnouncementStart } from './announcement-start.ts';
import { IS_IN_AUDIENCE } from './audience.ts';

/** `total`: emails created so far, by all runs. `withdrawn`: also if its author may no longer announce anything. */
export interface MailedBatch {
  kind: 'more' | 'done' | 'withdrawn';
  total: number;
}

export interface AnnouncementMailing {
  /** Creates the next emails, in one transaction with the position after them. Concurrent calls wait for each other. */
  mailBatch(announcementId: string): Promise<MailedBatch>;
}

export interface AnnouncementMailingOptions {
  database: Database;
  notifications: PersonNotificationService;
  outbox: Pick<Outbox, 'drain'>;
}

export const MAIL_BATCH_SIZE = 200;

interface MailedAnnouncement {
  title: string;
  text: string;
  mailedTo: string | null;
  mailedCount: number;
  isWithdrawn: boolean;
  createdBy: string;
}

/** For workers. */
export function createAnnouncementMailing({
  database,
  notifications,
  outbox,
}: AnnouncementMailingOptions): AnnouncementMailing {
  const mailNext = (announcementId: string) =>
    database.systemTransaction(async (transaction): Promise<MailedBatch> => {
      const { em } = transaction;
      const [announcement] = await em.execute<MailedAnnouncement[]>(sql`
        select title, text, mailed_to as "mailedTo", mailed_count as "mailedCount",
          withdrawn_at is not null as "isWithdrawn", created_by as "createdBy"
        from announcements where id = ${announcementId} for update`);
      if (!announcement || announcement.isWithdrawn)
        return { kind: 'withdrawn', total: announcement?.mailedCount ?? 0 };
      const { title, text, mailedTo, mailedCount, createdBy: id } = announcement;
      const author = { organizationId: null, actor: { kind: 'staff', id } } as const;
      if (await findRequesterProblem(em, author, { act: 'announcement' })) {
        await em.execute(sql`update announcements set withdrawn_at = now() where id = ${announcementId}`);
        return { kind: 'withdrawn', total: mailedCount };
      }
      const owners = await em.execute<{ id: string; email: string }[]>(sql`
        select u.id, u.email from users u
        where u.id > ${mailedTo ?? ''} and u.deleted_at is null and u.status = 'active' and exists (
          select from members m join organizations o on o.id = m.org_id, announcements a
          where m.user_id = u.id and m.role = 'owner' and a.id = ${announcementId} and ${IS_IN_AUDIENCE})
        order by u.id limit ${MAIL_BATCH_SIZE}`);
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
      await em.execute(sql`
        update announcements set mailed_to = ${owners.at(-1)?.id ?? mailedTo}, mailed_count = ${total},
          mailed_at = case when ${isDone} then now() end
        where id = ${announcementId}`);
      return { kind: isDone ? 'done' : 'more', total };
    });

  return {
    async mailBatch(announcementId) {
      const batch = await mailNext(announcementId);
      // Backpressure: the next batch waits until Temporal has accepted this one.
      await outbox.drain();
      return batch;
    },
  };
}

/** Announcements whose run is missing. One that an operator stopped starts again: withdraw the announcement instead. */
export function overdueAnnouncements(database: Database): OverdueSource {
  return {
    name: 'announcements',
    async take(limit) {
      const rows = await takeOverdue<{ id: string; startsAt: string }>(database, {
        table: 'announcements',
        overdue: `delivery = 'mailed' and withdrawn_at is null and mailed_at is null
          and starts_at < now() - interval '2 minutes'`,
        columns: `id, starts_at as "startsAt"`,
        limit,
      });
      return rows.map(({ id, startsAt }) => ({
        start: buildAnnouncementStart({ id, startsAt: new Date(startsAt) }),
        whenStopped: 'restart' as const,
      }));
    },
  };
}
