import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { type AnnouncementService, MAX_SHOWN } from '../../domain/announcements/announcement.service.ts';
import { id, nullableTimestamp, problems, ref, resource, strictObject, text, timestamp } from '../schemas.ts';

export const NoticeList = strictObject(
  {
    data: Type.Array(
      resource('notice', {
        id: id('Id (ntc_…).'),
        title: text(200),
        text: text(5_000, { description: 'Plain text.' }),
        starts_at: timestamp(),
        ends_at: nullableTimestamp('Null: until it is withdrawn.'),
      }),
      { maxItems: MAX_SHOWN },
    ),
  },
  { $id: 'NoticeList', title: 'NoticeList' },
);

export const noticeRoutes =
  ({ announcements }: { announcements: AnnouncementService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/notices',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'notices.list',
          summary: 'List what the operator of the service announces to you now',
          tags: ['User'],
          response: { 200: ref(NoticeList), ...problems() },
        },
      },
      async ({ person }) => ({
        data: (await announcements.shownTo(person)).map((notice) => ({
          object: 'notice' as const,
          id: notice.id,
          title: notice.title,
          text: notice.text,
          starts_at: notice.startsAt.toISOString(),
          ends_at: notice.endsAt?.toISOString() ?? null,
        })),
      }),
    );
    done();
  };
