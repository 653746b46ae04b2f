import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnnouncementText, Title } from '../../api/admin/announcement-texts.ts';
import { Note } from '../../api/admin/note.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { ANNOUNCEMENT_DELIVERIES, AUDIENCES } from '../../domain/announcements/announcement.entity.ts';
import type { AnnouncementService } from '../../domain/announcements/announcement.service.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, LocalTime, ResourceParams, readLocalTime, staffListQuery } from './console.ts';

export interface AnnouncementConsoleDependencies {
  console: Console;
  announcements: AnnouncementService;
}

/** What staff announce to people. */
export const announcementConsole =
  ({ console, announcements }: AnnouncementConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const page = await announcements.list(request.staff, console.readPage(request));
      return console.send(request, reply, {
        template: 'staff/announcements',
        title: 'Announcements',
        problem,
        log: { resourceType: 'announcement' },
        data: {
          announcements: page.items,
          audiences: AUDIENCES,
          deliveries: ANNOUNCEMENT_DELIVERIES,
          tiers: TIERS,
          nextPage: console.nextPage(request, page),
        },
      });
    };

    app.get(
      '/admin/announcements',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.announcements',
          querystring: staffListQuery({}),
        },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/announcements', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.announce',
        body: strictObject({
          title: Title,
          text: AnnouncementText,
          audience: enumOf(AUDIENCES),
          tier: enumOf(['', ...TIERS]),
          org_ids: text(8_000),
          delivery: enumOf(ANNOUNCEMENT_DELIVERIES),
          starts_at: LocalTime,
          ends_at: LocalTime,
          note: Note,
        }),
      },
      work: async ({ staff, body }) => {
        const { title, text: content, audience, tier, delivery, note } = body;
        return announcements.create(staff, {
          title,
          text: content,
          audience,
          delivery,
          note,
          ...(audience === 'tier' && tier ? { tier } : {}),
          ...(audience === 'organizations'
            ? { organizationIds: body.org_ids.split(/[\s,]+/).filter(Boolean) }
            : {}),
          ...(body.starts_at ? { startsAt: readLocalTime('starts_at', body.starts_at) } : {}),
          ...(body.ends_at ? { endsAt: readLocalTime('ends_at', body.ends_at) } : {}),
        });
      },
      show,
    });

    console.form(app, '/admin/announcements/:id/withdraw', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.withdrawAnnouncement',
        params: ResourceParams,
        body: strictObject({ note: Note }),
      },
      work: ({ staff, params, body }) => announcements.withdraw(staff, params.id, body.note),
      show,
    });
    done();
  };
