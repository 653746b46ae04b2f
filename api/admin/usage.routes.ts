import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { OrganizationDetailsService } from '../../domain/administration/organization-details.service.ts';
import { type Lists, listOf } from '../lists.ts';
import { id, problems, ref, strictObject } from '../schemas.ts';
import {
  LedgerQuery,
  presentLedgerEntry,
  presentUsage,
  UsageEventRecord,
  UsageRecord,
} from '../usage/usage.schemas.ts';

const OneOrganization = strictObject({ orgId: id('Organization id (org_…).') });

export const adminUsageRoutes =
  ({
    organizationDetails,
    lists,
    unversioned = false,
  }: {
    organizationDetails: OrganizationDetailsService;
    lists: Lists;
    /** Registers the same operations without the /api/v1 prefix, which the OpenAPI document leaves out. */
    unversioned?: boolean;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const operation = (name: string, summary: string) => ({
      operationId: `${unversioned ? 'adminUsageUnversioned' : 'adminUsage'}.${name}`,
      summary,
      tags: ['Admin'],
      hide: unversioned,
      params: OneOrganization,
    });

    app.get(
      '/usage/:orgId',
      {
        config: { staff: 'support' },
        schema: {
          ...operation('get', 'Get an organization’s usage this month'),
          response: { 200: ref(UsageRecord), ...problems() },
        },
      },
      async ({ staff, params }) => presentUsage(await organizationDetails.getUsage(staff, params.orgId)),
    );

    app.get(
      '/usage/:orgId/events',
      {
        config: { staff: 'support' },
        schema: {
          ...operation('listEvents', 'List an organization’s usage events'),
          querystring: LedgerQuery,
          response: { 200: listOf(ref(UsageEventRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await organizationDetails.listUsageEvents(
          request.staff,
          request.params.orgId,
          { kind: request.query.type },
          lists.read(request),
        );
        return lists.present(request, page, presentLedgerEntry);
      },
    );
    done();
  };
