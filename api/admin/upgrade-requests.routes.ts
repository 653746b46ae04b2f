import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { UpgradeDecisionService } from '../../domain/upgrade-requests/upgrade-decision.service.ts';
import { UPGRADE_REQUEST_STATUSES } from '../../domain/upgrade-requests/upgrade-request.entity.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { presentUpgradeRequest, UpgradeRequestRecord } from '../organizations/upgrade-requests.routes.ts';
import { enumOf, id, nullableText, postProblems, problems, ref, resource, strictObject } from '../schemas.ts';
import { AdminNote } from './organizations.schemas.ts';

const DECISIONS = [
  ['approve', 'approved', 'Approve a request and grant the tier'],
  ['reject', 'rejected', 'Reject a request'],
] as const;

export const UpgradeDecisionRecord = resource(
  'upgrade_request',
  {
    ...UpgradeRequestRecord.properties,
    checkout_url: nullableText(2_048, {
      description:
        'Where the owners pay for an approved tier, to pass on to them; null if nothing has to be paid. The tier follows the payment.',
    }),
  },
  { $id: 'UpgradeDecision', title: 'UpgradeDecision' },
);

export const adminUpgradeRequestRoutes =
  ({
    upgradeDecisions,
    lists,
  }: {
    upgradeDecisions: UpgradeDecisionService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/upgrade-requests',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminUpgradeRequests.list',
          summary: 'List the requests of organizations for another tier',
          tags: ['Admin'],
          querystring: strictObject({
            ...pageQuery,
            status: Type.Optional(
              enumOf(UPGRADE_REQUEST_STATUSES, { description: 'Only those with this status.' }),
            ),
            org_id: Type.Optional(id('Organization id (org_…).')),
          }),
          response: { 200: listOf(ref(UpgradeRequestRecord)), ...problems() },
        },
      },
      async (request) => {
        const { status, org_id: organizationId } = request.query;
        const page = await upgradeDecisions.list(
          request.staff,
          { status, organizationId },
          lists.read(request),
        );
        return lists.present(request, page, presentUpgradeRequest);
      },
    );

    for (const [name, decision, summary] of DECISIONS)
      app.post(
        `/upgrade-requests/:id/${name}`,
        {
          config: { staff: 'admin' },
          schema: {
            operationId: `adminUpgradeRequests.${name}`,
            summary,
            description: 'The owners get an email with the note.',
            tags: ['Admin'],
            params: strictObject({ id: id('Id of the request (upg_…).') }),
            body: ref(AdminNote),
            response: { 200: ref(UpgradeDecisionRecord), ...postProblems() },
          },
        },
        async ({ staff, params, body }) => {
          const { note } = body;
          const { request, checkoutUrl } = await upgradeDecisions.decide(staff, params.id, {
            decision,
            note,
          });
          return { ...presentUpgradeRequest(request), checkout_url: checkoutUrl };
        },
      );
    done();
  };
