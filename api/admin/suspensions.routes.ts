import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type {
  SuspensionAction,
  SuspensionAdministrationService,
} from '../../domain/administration/suspension-administration.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  BulkSuspensionRequest,
  BulkSuspensionResults,
  presentBulkResults,
  presentSuspendable,
  presentSuspension,
  SuspendableRecord,
  SuspensionRecord,
  SuspensionRequest,
} from './organizations.schemas.ts';

const organizationId = id('Organization id (org_…).');
const OneOrganization = strictObject({ id: organizationId });
const OneEnvironment = strictObject({ id: organizationId, envId: id('Environment id (env_…).') });
const OneInbox = strictObject({ id: organizationId, inboxId: id('Inbox id (inb_…).') });

const EFFECTS: Record<SuspensionAction, string> = {
  suspend:
    'Sending and changes are refused; reading, exports and incoming mail go on. What was accepted waits, except for the reason abuse, which rejects it. The owners get an email.',
  reinstate:
    'Lifts the suspension for this reason alone. With the last one, messages, scheduled drafts and webhook deliveries that waited leave.',
};
const ACTIONS = ['suspend', 'reinstate'] as const;

export const suspensionRoutes =
  ({
    suspensionAdministration,
    lists,
  }: {
    suspensionAdministration: SuspensionAdministrationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    for (const action of ACTIONS) {
      const operation = (of: string, what: string) => ({
        operationId: `${of}.${action}`,
        summary: `${action === 'suspend' ? 'Suspend' : 'Reinstate'} ${what}`,
        description: EFFECTS[action],
        tags: ['Admin'],
      });
      const response = { 200: ref(SuspendableRecord), ...postProblems() };

      app.post(
        `/orgs/:id/${action}`,
        {
          config: { staff: 'admin' },
          schema: {
            ...operation('adminOrganizations', 'an organization'),
            params: OneOrganization,
            body: ref(SuspensionRequest),
            response,
          },
        },
        async ({ staff, params, body }) => {
          const target = { type: 'organization', id: params.id, organizationId: params.id } as const;
          return presentSuspendable(await suspensionAdministration.change(staff, action, target, body));
        },
      );

      app.post(
        `/orgs/:id/environments/:envId/${action}`,
        {
          config: { staff: 'admin' },
          schema: {
            ...operation('adminEnvironments', 'an environment'),
            params: OneEnvironment,
            body: ref(SuspensionRequest),
            response,
          },
        },
        async ({ staff, params, body }) => {
          const target = { type: 'environment', id: params.envId, organizationId: params.id } as const;
          return presentSuspendable(await suspensionAdministration.change(staff, action, target, body));
        },
      );

      app.post(
        `/orgs/:id/inboxes/:inboxId/${action}`,
        {
          config: { staff: 'admin' },
          schema: {
            ...operation('adminInboxes', 'an inbox'),
            params: OneInbox,
            body: ref(SuspensionRequest),
            response,
          },
        },
        async ({ staff, params, body }) => {
          const target = { type: 'inbox', id: params.inboxId, organizationId: params.id } as const;
          return presentSuspendable(await suspensionAdministration.change(staff, action, target, body));
        },
      );

      app.post(
        `/bulk/${action}`,
        {
          config: { staff: 'admin' },
          schema: {
            ...operation('adminBulk', 'organizations, environments and inboxes'),
            description: `At most 100, each on its own: one that fails does not affect the others. ${EFFECTS[action]}`,
            body: ref(BulkSuspensionRequest),
            response: { 200: ref(BulkSuspensionResults), ...postProblems() },
          },
        },
        async ({ staff, body: { items, ...request } }) =>
          presentBulkResults(await suspensionAdministration.changeMany(staff, action, items, request)),
      );
    }

    app.get(
      '/orgs/:id/suspensions',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.listSuspensions',
          summary: 'List the suspensions of an organization, its environments and inboxes, also past ones',
          tags: ['Admin'],
          params: OneOrganization,
          querystring: strictObject({
            ...pageQuery,
            open: Type.Optional(Type.Boolean({ description: 'Only those in force, or only past ones.' })),
          }),
          response: { 200: listOf(ref(SuspensionRecord)), ...problems() },
        },
      },
      async (request) => {
        const { staff, params, query } = request;
        const page = await suspensionAdministration.list(
          staff,
          params.id,
          { isOpen: query.open },
          lists.read(request),
        );
        return lists.present(request, page, presentSuspension);
      },
    );
    done();
  };
