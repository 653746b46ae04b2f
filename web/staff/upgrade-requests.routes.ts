import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { enumOf, strictObject } from '../../api/schemas.ts';
import type { UpgradeDecisionService } from '../../domain/upgrade-requests/upgrade-decision.service.ts';
import { UPGRADE_REQUEST_STATUSES } from '../../domain/upgrade-requests/upgrade-request.entity.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, ResourceParams, staffListQuery } from './console.ts';

export interface UpgradeRequestConsoleDependencies {
  console: Console;
  upgradeDecisions: UpgradeDecisionService;
}

/** What organizations ask for, and its approval or rejection. */
export const upgradeRequestConsole =
  ({ console, upgradeDecisions }: UpgradeRequestConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { status = 'open' } = request.query as {
        status?: (typeof UPGRADE_REQUEST_STATUSES)[number];
      };
      const page = await upgradeDecisions.list(request.staff, { status }, console.readPage(request));
      return console.send(request, reply, {
        template: 'staff/upgrade-requests',
        title: 'Upgrade requests',
        problem,
        log: { resourceType: 'upgrade_request' },
        data: {
          requests: page.items,
          status,
          statuses: UPGRADE_REQUEST_STATUSES,
          nextPage: console.nextPage(request, page),
        },
      });
    };

    app.get(
      '/admin/requests',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.upgradeRequests',
          querystring: staffListQuery({ status: Type.Optional(enumOf(UPGRADE_REQUEST_STATUSES)) }),
        },
      },
      async (request, reply) => show(request, reply),
    );

    for (const [action, decision] of [
      ['approve', 'approved'],
      ['reject', 'rejected'],
    ] as const)
      console.form(app, `/admin/requests/:id/${action}`, {
        config: { staff: 'admin' },
        schema: {
          operationId: `console.${action}Upgrade`,
          params: ResourceParams,
          body: strictObject({ note: Note }),
        },
        work: ({ staff, params, body: { note } }) =>
          upgradeDecisions.decide(staff, params.id, { decision, note }),
        show,
      });
    done();
  };
