import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { enumOf, strictObject } from '../../api/schemas.ts';
import type { UpgradeDecisionService } from '../../domain/upgrade-requests/upgrade-decision.service.ts';
import { UPGRADE_REQUEST_STATUSES } from '../../domain/upgrade-requests/upgrade-request.entity.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, NoticeQuery, ResourceParams } from './console.ts';
import { nextPage } from './filters.ts';

export interface UpgradeRequestConsoleDependencies {
  console: Console;
  upgradeDecisions: UpgradeDecisionService;
  lists: Lists;
}

/** What organizations ask for, and its approval or rejection. */
export const upgradeRequestConsole =
  ({ console, upgradeDecisions, lists }: UpgradeRequestConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { status = 'open' } = request.query as {
        status?: (typeof UPGRADE_REQUEST_STATUSES)[number];
      };
      const pageRequest = problem ? ({ limit: 25, order: 'desc' } as const) : lists.read(request);
      const page = await upgradeDecisions.list(request.staff, { status }, pageRequest);
      return console.send(request, reply, {
        template: 'staff/upgrade-requests',
        title: 'Upgrade requests',
        problem,
        log: { resourceType: 'upgrade_request' },
        data: {
          requests: page.items,
          status,
          statuses: UPGRADE_REQUEST_STATUSES,
          nextPage: problem
            ? undefined
            : nextPage(
                request,
                lists.present(request, page, () => null),
              ),
        },
      });
    };

    app.get(
      '/admin/requests',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.upgradeRequests',
          querystring: strictObject({
            ...pageQuery,
            ...NoticeQuery.properties,
            status: Type.Optional(enumOf(UPGRADE_REQUEST_STATUSES)),
          }),
        },
      },
      async (request, reply) => show(request, reply),
    );

    for (const [action, decision] of [
      ['approve', 'approved'],
      ['reject', 'rejected'],
    ] as const)
      app.post(
        `/admin/requests/:id/${action}`,
        {
          config: { staff: 'admin' },
          schema: {
            operationId: `console.${action}Upgrade`,
            params: ResourceParams,
            body: strictObject({ note: Note }),
          },
        },
        async (request, reply) =>
          console.finish(reply, {
            work: upgradeDecisions.decide(request.staff, request.params.id, {
              decision,
              note: request.body.note,
            }),
            back: '/admin/requests',
            show: (problem) => show(request, reply, problem),
          }),
      );
    done();
  };
