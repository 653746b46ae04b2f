import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
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
import { buildAnnouncementStart, IS_IN_AUDIENCE } from './mail-announcement.ts';

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

export type AnnouncementService = ReturnType<typeof createAnnouncementService>;

export const MAX_SHOWN = 20;
export const MAX_ORGANIZATIONS = 100;
/** A run waits until the start, and Temporal's timers are limited to 292 years. */
const MAX_DAYS_AHEAD = 366;
const DAY_MS = 86_400_000;

export function createAnnouncementService({ database, outbox }: { database: Database; outbox: Outbox }) {
  return {
    list: (staff: StaffScope, page: PageRequest): Promise<Page<Announcement>> =>
      database.staffTransaction(staff, ({ db }) =>
        findPage(
          db.selectFrom('announcements').select(columnsOf(AnnouncementEntity)),
          'announcements.id',
          page,
        ),
      ),

    /**
     * Shows an announcement, or starts the run that mails it.
     *
     * @throws AppError `validation_error` for an audience without its tier or organizations, an unknown organization, or an
     * end before the start, or a start more than a year ahead.
     */
    create: (staff: StaffScope, input: NewAnnouncement): Promise<Announcement> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const { tier, organizationIds } = await resolveAudience(db, input);
        const startsAt = input.startsAt ?? new Date();
        if (startsAt.getTime() > Date.now() + MAX_DAYS_AHEAD * DAY_MS)
          throw invalid('/body/starts_at', 'must be within a year', 'Choose an earlier start.');
        if (input.endsAt && input.endsAt <= startsAt)
          throw invalid('/body/ends_at', 'must be after the start', 'Choose a later end.');
        const announcement = await db
          .insertInto('announcements')
          .values({
            id: newId('notice'),
            title: input.title,
            text: input.text,
            audience: input.audience,
            tier,
            organization_ids: organizationIds,
            delivery: input.delivery,
            starts_at: startsAt,
            ends_at: input.endsAt ?? null,
            created_by: staff.staffId,
          })
          .returning(columnsOf(AnnouncementEntity))
          .executeTakeFirstOrThrow(() => new Error('PostgreSQL returned no announcement'));
        await recordStaffAudit(db, staff, {
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

    /** Stops showing and mailing the announcement. @throws AppError `not_found`; `conflict` if it is already withdrawn. */
    withdraw: (staff: StaffScope, announcementId: string, note: string): Promise<void> =>
      database.staffTransaction(staff, async ({ db }) => {
        const announcement = await db
          .selectFrom('announcements')
          .select(['title', 'organization_ids as organizationIds'])
          .where('id', '=', announcementId)
          .executeTakeFirst();
        if (!announcement) throw notFound('notification', announcementId);
        const { numUpdatedRows } = await db
          .updateTable('announcements')
          .set({ withdrawn_at: sql`now()` })
          .where('id', '=', announcementId)
          .where('withdrawn_at', 'is', null)
          .executeTakeFirst();
        if (numUpdatedRows === 0n)
          throw new AppError('conflict', {
            detail: 'The notification is already withdrawn.',
            fix: 'Nothing is left to do.',
          });
        await recordStaffAudit(db, staff, {
          action: 'announcement.withdrawn',
          resourceType: 'announcement',
          resourceId: announcementId,
          organizationIds: announcement.organizationIds,
          reason: note,
          details: { title: announcement.title },
        });
      }),

    /** Finds the announcements that are shown to a person now, newest first, at most {@link MAX_SHOWN}. */
    shownTo: ({ userId }: Pick<Person, 'userId'>): Promise<ShownAnnouncement[]> =>
      database.peopleTransaction(({ db }) =>
        db
          .selectFrom('announcements as a')
          .select(['a.id', 'a.title', 'a.text', 'a.starts_at as startsAt', 'a.ends_at as endsAt'])
          .where('a.delivery', '=', 'shown')
          .where('a.withdrawn_at', 'is', null)
          .where('a.starts_at', '<=', sql<Date>`now()`)
          .where((eb) => eb.or([eb('a.ends_at', 'is', null), eb('a.ends_at', '>', sql<Date>`now()`)]))
          .where((eb) =>
            eb.exists(
              eb
                .selectFrom('members as m')
                .innerJoin('organizations as o', 'o.id', 'm.org_id')
                .select('m.user_id')
                .where('m.user_id', '=', userId)
                .where(IS_IN_AUDIENCE),
            ),
          )
          .orderBy('a.starts_at', 'desc')
          .orderBy('a.id', 'desc')
          .limit(MAX_SHOWN)
          .execute(),
      ),
  };
}

async function resolveAudience(
  db: Db,
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
    const known = await db.selectFrom('organizations').select('id').where('id', '=', anyOf(ids)).execute();
    if (known.length < ids.length)
      throw invalid('/body/org_ids', 'contains an organization that does not exist', 'Check the ids.');
  }
  return { tier: tier ?? null, organizationIds: ids };
}
