import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import {
  ANNOUNCEMENT_DELIVERIES,
  type Announcement,
  AUDIENCES,
} from '../../domain/announcements/announcement.entity.ts';
import {
  type AnnouncementService,
  MAX_ORGANIZATIONS,
} from '../../domain/announcements/announcement.service.ts';
import { TIERS, type Tier } from '../../domain/organizations/tier.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  nullableTimestamp,
  orNull,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { parseTime } from '../time.ts';
import { AnnouncementText, MAX_TEXT, Title } from './announcement-texts.ts';
import { Note } from './note.ts';

const AudienceName = enumOf(AUDIENCES, {
  description:
    'all: every person. tier, organizations: their members. owners: the owners of every organization. Emails go to owners only.',
});
const Delivery = enumOf(ANNOUNCEMENT_DELIVERIES, {
  description: 'shown: on the pages and by GET /notices. mailed: to the owners of the audience, once each.',
});
const instant = (description: string) =>
  Type.Optional(orNull(Type.String({ format: 'date-time', maxLength: 40, description })));

export const AdminNotificationRecord = resource(
  'notification',
  {
    id: id('Id (ntc_…).'),
    title: Title,
    text: text(MAX_TEXT),
    audience: AudienceName,
    tier: Type.Unsafe<Tier | null>({ type: ['string', 'null'], enum: [...TIERS, null] }),
    org_ids: Type.Array(text(128), { maxItems: MAX_ORGANIZATIONS }),
    delivery: Delivery,
    status: enumOf(['scheduled', 'active', 'ended', 'withdrawn'], {
      description: 'A mailed one is active while emails are created, and has ended then.',
    }),
    starts_at: timestamp(),
    ends_at: nullableTimestamp('Null: shown until it is withdrawn.'),
    mailed_count: Type.Integer({ minimum: 0, description: 'Emails created so far.' }),
    created_by: text(128),
    created_at: timestamp(),
    withdrawn_at: nullableTimestamp(),
  },
  { $id: 'AdminNotification', title: 'AdminNotification' },
);

const NewNotification = strictObject(
  {
    title: Title,
    text: AnnouncementText,
    audience: AudienceName,
    tier: Type.Optional(Type.Unsafe<Tier>({ type: ['string', 'null'], enum: [...TIERS, null] })),
    org_ids: Type.Optional(
      Type.Array(id('Organization (org_…).'), { minItems: 1, maxItems: MAX_ORGANIZATIONS }),
    ),
    delivery: Delivery,
    starts_at: instant('When it is shown or mailed, within a year. Default: now.'),
    ends_at: instant('Until when it is shown. Default: until it is withdrawn.'),
    note: Note,
  },
  { title: 'CreateAdminNotification' },
);

export const adminNotificationRoutes =
  ({
    announcements,
    lists,
  }: {
    announcements: AnnouncementService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/notifications',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminNotifications.list',
          summary: 'List what staff announced',
          tags: ['Admin'],
          querystring: strictObject(pageQuery),
          response: { 200: listOf(ref(AdminNotificationRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(
          request,
          await announcements.list(request.staff, lists.read(request)),
          presentNotification,
        ),
    );

    app.post(
      '/notifications',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminNotifications.create',
          summary: 'Announce something to people',
          tags: ['Admin'],
          body: NewNotification,
          response: { 201: ref(AdminNotificationRecord), ...postProblems() },
        },
      },
      async ({ staff, body }, reply) => {
        const { org_ids, starts_at, ends_at, ...input } = body;
        const created = await announcements.create(staff, {
          ...input,
          ...(org_ids === undefined ? {} : { organizationIds: org_ids }),
          ...(starts_at === undefined ? {} : { startsAt: parseTime('/body/starts_at', starts_at) }),
          ...(ends_at === undefined ? {} : { endsAt: parseTime('/body/ends_at', ends_at) }),
        });
        reply.code(201);
        return presentNotification(created);
      },
    );

    app.delete(
      '/notifications/:id',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminNotifications.withdraw',
          summary: 'Withdraw an announcement',
          description: 'It is shown no longer, and no further email is created. It stays in the list.',
          tags: ['Admin'],
          params: strictObject({ id: id('Id (ntc_…).') }),
          querystring: strictObject({ note: Note }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ staff, params, query }, reply) => {
        await announcements.withdraw(staff, params.id, query.note);
        return reply.code(204).send(null);
      },
    );
    done();
  };

function presentNotification(row: Announcement): Static<typeof AdminNotificationRecord> {
  return {
    object: 'notification',
    id: row.id,
    title: row.title,
    text: row.text,
    audience: row.audience,
    tier: row.tier,
    org_ids: row.organizationIds,
    delivery: row.delivery,
    status: statusOf(row),
    starts_at: row.startsAt.toISOString(),
    ends_at: row.endsAt?.toISOString() ?? null,
    mailed_count: row.mailedCount,
    created_by: row.createdBy,
    created_at: row.createdAt.toISOString(),
    withdrawn_at: row.withdrawnAt?.toISOString() ?? null,
  };
}

function statusOf({ withdrawnAt, startsAt, endsAt, delivery, mailedAt }: Announcement) {
  const now = Date.now();
  if (withdrawnAt) return 'withdrawn';
  if (startsAt.getTime() > now) return 'scheduled';
  const hasEnded = delivery === 'mailed' ? mailedAt !== null : endsAt !== null && endsAt.getTime() <= now;
  return hasEnded ? 'ended' : 'active';
}
