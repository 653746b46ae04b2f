import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, type Row } from '../../platform/database/find-rows.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Person } from '../identity/person.ts';
import type { Tier } from '../organizations/tier.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import {
  type Announcement,
  type AnnouncementDelivery,
  AnnouncementEntity,
  type Audience,
} from './announcement.entity.ts';
import { buildAnnouncementStart } from './announcement-start.ts';
import { IS_IN_AUDIENCE } from './audience.ts';

export interface NewAnnouncement {
  title: string;
  text: string;
  audience: Audience;
  tier?: Tier;
  organizationIds?: string[];
  delivery: AnnouncementDelivery;
  /** Default: now. */
  startsAt?: Date;
  endsAt?: Date;
  note: string;
}

/** An announcement as the people of its audience see it. */
export interface ShownAnnouncement {
  id: string;
  title: string;
  text: string;
  startsAt: Date;
  endsAt: Date | null;
}

export interface AnnouncementService {
  list(staff: StaffScope, page: PageRequest): Promise<Page<Row<Announcement>>>;
  /**
   * Shows an announcement, or starts the run that mails it.
   *
   * @throws AppError `validation_error` for an audience without its tier or organizations, an unknown organization, or an
   * end before the start, or a start more than a year ahead.
   */
  create(staff: StaffScope, input: NewAnnouncement): Promise<Row<Announcement>>;
  /** Shows it no longer, and mails no one else. @throws AppError `not_found`; `conflict` if it is withdrawn already. */
  withdraw(staff: StaffScope, announcementId: string, note: string): Promise<void>;
  /** What is shown to a person now, newest first, at most {@link MAX_SHOWN}. */
  shownTo(person: Pick<Person, 'userId'>): Promise<ShownAnnouncement[]>;
}

export const MAX_SHOWN = 20;
export const MAX_ORGANIZATIONS = 100;
/** A run waits until then, and Temporal's timers end after 292 years at the latest. */
const MAX_DAYS_AHEAD = 366;
const DAY_MS = 86_400_000;

export function createAnnouncementService({
  database,
  outbox,
}: {
  database: Database;
  outbox: Outbox;
}): AnnouncementService {
  return {
    list: (staff, page) =>
      database.staffTransaction(staff, ({ em }) => findPage(em, AnnouncementEntity, { where: {}, page })),

    create: (staff, input) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const { tier, organizationIds } = await resolveAudience(em, input);
        const startsAt = input.startsAt ?? new Date();
        if (startsAt.getTime() > Date.now() + MAX_DAYS_AHEAD * DAY_MS)
          throw invalid('/body/starts_at', 'must be within a year', 'Choose an earlier start.');
        if (input.endsAt && input.endsAt <= startsAt)
          throw invalid('/body/ends_at', 'must be after the start', 'Choose a later end.');
        const announcement = em.create(AnnouncementEntity, {
          id: newId('notice'),
          title: input.title,
          text: input.text,
          audience: input.audience,
          tier,
          organizationIds,
          delivery: input.delivery,
          startsAt,
          endsAt: input.endsAt ?? null,
          createdBy: staff.staffId,
          withdrawnAt: null,
          mailedTo: null,
          mailedAt: null,
          reconciledAt: null,
        });
        em.persist(announcement);
        await em.flush();
        await recordStaffAudit(em, staff, {
          action: 'announcement.created',
          resourceType: 'announcement',
          resourceId: announcement.id,
          organizationIds,
          reason: input.note,
          details: { title: input.title, audience: input.audience, tier, delivery: input.delivery },
        });
        if (input.delivery === 'mailed')
          outbox.enqueue(transaction, announcement.id, { start: buildAnnouncementStart(announcement) });
        return announcement;
      }),

    withdraw: (staff, announcementId, note) =>
      database.staffTransaction(staff, async ({ em }) => {
        const announcement = await findRow(em, AnnouncementEntity, { where: { id: announcementId } });
        if (!announcement) throw notFound('notification', announcementId);
        const withdrawn = await em.execute<object[]>(sql`
          update announcements set withdrawn_at = now() where id = ${announcementId} and withdrawn_at is null
          returning id`);
        if (withdrawn.length === 0)
          throw new AppError('conflict', {
            detail: 'The notification is withdrawn already.',
            fix: 'Nothing is left to do.',
          });
        await recordStaffAudit(em, staff, {
          action: 'announcement.withdrawn',
          resourceType: 'announcement',
          resourceId: announcementId,
          organizationIds: announcement.organizationIds,
          reason: note,
          details: { title: announcement.title },
        });
      }),

    shownTo: ({ userId }) =>
      database.peopleTransaction(async ({ em }) => {
        const rows = await em.execute<
          (Omit<ShownAnnouncement, 'startsAt' | 'endsAt'> & { startsAt: string; endsAt: string | null })[]
        >(sql`
          select a.id, a.title, a.text, a.starts_at as "startsAt", a.ends_at as "endsAt" from announcements a
          where a.delivery = 'shown' and a.withdrawn_at is null and a.starts_at <= now()
            and (a.ends_at is null or a.ends_at > now())
            and exists (select from members m join organizations o on o.id = m.org_id
              where m.user_id = ${userId} and ${IS_IN_AUDIENCE})
          order by a.starts_at desc, a.id desc limit ${MAX_SHOWN}`);
        return rows.map((row) => ({
          ...row,
          startsAt: new Date(row.startsAt),
          endsAt: row.endsAt === null ? null : new Date(row.endsAt),
        }));
      }),
  };
}

async function resolveAudience(
  em: EntityManager,
  { audience, tier, organizationIds = [] }: NewAnnouncement,
): Promise<{ tier: Tier | null; organizationIds: string[] }> {
  if ((audience === 'tier') !== (tier !== undefined))
    throw invalid(
      '/body/tier',
      'belongs to the audience tier, which needs it',
      'Name a tier, or another audience.',
    );
  const ids = [...new Set(organizationIds)];
  if ((audience === 'organizations') !== ids.length > 0)
    throw invalid(
      '/body/org_ids',
      'belongs to the audience organizations, which needs it',
      'Name organizations, or another audience.',
    );
  if (ids.length > MAX_ORGANIZATIONS)
    throw invalid(
      '/body/org_ids',
      `must name at most ${MAX_ORGANIZATIONS} organizations`,
      'Announce it twice, or to a tier.',
    );
  if (ids.length > 0) {
    const known = await em.execute<object[]>(sql`select from organizations where id in (${ids})`);
    if (known.length < ids.length)
      throw invalid('/body/org_ids', 'contains an organization that does not exist', 'Check the ids.');
  }
  return { tier: tier ?? null, organizationIds: ids };
}
