import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AnnouncementText, Title } from '../../api/admin/announcement-texts.ts';
import { Note } from '../../api/admin/note.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { parseDay } from '../../api/time.ts';
import { ANNOUNCEMENT_DELIVERIES, AUDIENCES } from '../../domain/announcements/announcement.entity.ts';
import type { AnnouncementService } from '../../domain/announcements/announcement.service.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, NoticeQuery, ResourceParams } from './console.ts';
import { nextPage } from './filters.ts';

export interface AnnouncementConsoleDependencies {
  console: Console;
  announcements: AnnouncementService;
  lists: Lists;
}

const LATEST = { limit: 25, order: 'desc' } as const;
/** As `datetime-local` inputs send it; empty if it was left empty. */
const LocalTime = Type.Unsafe<string>({
  type: 'string',
  maxLength: 16,
  pattern: '^(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d)?$',
});

/** What staff announce to people. */
export const announcementConsole =
  ({ console, announcements, lists }: AnnouncementConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const page = await announcements.list(request.staff, problem ? LATEST : lists.read(request));
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
          nextPage: problem
            ? undefined
            : nextPage(
                request,
                lists.present(request, page, () => null),
              ),
        },
      });
    };
    const finish = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>) =>
      console.finish(reply, {
        work,
        back: '/admin/announcements',
        show: (problem) => show(request, reply, problem),
      });

    app.get(
      '/admin/announcements',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.announcements',
          querystring: strictObject({ ...pageQuery, ...NoticeQuery.properties }),
        },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/admin/announcements',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.announce',
          body: strictObject({
            title: Title,
            text: AnnouncementText,
            audience: enumOf(AUDIENCES),
            tier: enumOf(['', ...TIERS]),
            organization_ids: text(8_000),
            delivery: enumOf(ANNOUNCEMENT_DELIVERIES),
            starts_at: LocalTime,
            ends_at: LocalTime,
            note: Note,
          }),
        },
      },
      async (request, reply) => {
        const { title, text: content, audience, tier, delivery, note, ...form } = request.body;
        const organizationIds = form.organization_ids.split(/[\s,]+/).filter(Boolean);
        const announce = async () =>
          announcements.create(request.staff, {
            title,
            text: content,
            audience,
            delivery,
            note,
            ...(audience === 'tier' && tier ? { tier } : {}),
            ...(audience === 'organizations' ? { organizationIds } : {}),
            ...(form.starts_at ? { startsAt: parseDay('/body/starts_at', `${form.starts_at}:00Z`) } : {}),
            ...(form.ends_at ? { endsAt: parseDay('/body/ends_at', `${form.ends_at}:00Z`) } : {}),
          });
        return finish(request, reply, announce());
      },
    );

    app.post(
      '/admin/announcements/:id/withdraw',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.withdrawAnnouncement',
          params: ResourceParams,
          body: strictObject({ note: Note }),
        },
      },
      async (request, reply) =>
        finish(request, reply, announcements.withdraw(request.staff, request.params.id, request.body.note)),
    );
    done();
  };
