import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { OrganizationDetailsService } from '../../domain/administration/organization-details.service.ts';
import type { OrganizationDirectoryService } from '../../domain/administration/organization-directory.service.ts';
import type { OwnerAdministrationService } from '../../domain/administration/owner-administration.service.ts';
import { USAGE_COUNTERS } from '../../domain/usage/counters.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  AuditEntryRecord,
  auditFilterQuery,
  presentAuditEntry,
  readAuditFilter,
} from '../organizations/audit-log.routes.ts';
import { enumOf, id, postProblems, problems, ref, strictObject, text } from '../schemas.ts';
import { parseTime } from '../time.ts';
import {
  AdminOrganizationDetail,
  AdminOrganizationRecord,
  DirectoryQuery,
  presentDetails,
  presentDirectoryEntry,
  ReassignOwner,
  TopOrganizations,
} from './organizations.schemas.ts';

const OneOrganization = strictObject({ id: id('Organization id (org_…).') });

export const adminOrganizationRoutes =
  ({
    organizationDirectory,
    organizationDetails,
    ownerAdministration,
    lists,
  }: {
    organizationDirectory: OrganizationDirectoryService;
    organizationDetails: OrganizationDetailsService;
    ownerAdministration: OwnerAdministrationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/orgs',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.list',
          summary: 'List organizations',
          tags: ['Admin'],
          querystring: DirectoryQuery,
          response: { 200: listOf(ref(AdminOrganizationRecord)), ...problems() },
        },
      },
      async (request) => {
        const { status, tier, created_after: after, created_before: before } = request.query;
        const page = await organizationDirectory.list(
          request.staff,
          {
            status,
            tier,
            createdAfter: after === undefined ? undefined : parseTime('/query/created_after', after),
            createdBefore: before === undefined ? undefined : parseTime('/query/created_before', before),
          },
          lists.read(request),
        );
        return lists.present(request, page, presentDirectoryEntry);
      },
    );

    app.get(
      '/orgs/search',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.search',
          summary: 'Search organizations',
          description:
            'By a part of the name, the beginning of the slug, of a domain or of a member’s address, or a whole organization id or inbox address.',
          tags: ['Admin'],
          querystring: strictObject({
            ...pageQuery,
            q: text(320, {
              minLength: 2,
              description:
                'Part of the name, beginning of the slug, of a domain or of a member’s address, or a whole organization id or inbox address.',
            }),
          }),
          response: { 200: listOf(ref(AdminOrganizationRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await organizationDirectory.search(request.staff, request.query.q, lists.read(request));
        return lists.present(request, page, presentDirectoryEntry);
      },
    );

    app.get(
      '/orgs/top',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.top',
          summary: 'List the organizations with the highest usage this month',
          description: 'Without the usage of the last minute.',
          tags: ['Admin'],
          querystring: strictObject({
            counter: enumOf(USAGE_COUNTERS, {
              default: 'messages_sent',
              description: 'What they are ordered by.',
            }),
            limit: Type.Integer({ minimum: 1, maximum: 100, default: 25, description: 'How many.' }),
          }),
          response: { 200: ref(TopOrganizations), ...problems() },
        },
      },
      async ({ staff, query }) => {
        const top = await organizationDirectory.top(staff, query.counter, query.limit);
        return {
          data: top.map(({ organization, value }) => ({
            object: 'ranked_organization' as const,
            organization: presentDirectoryEntry(organization),
            value,
          })),
        };
      },
    );

    app.get(
      '/orgs/:id',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.get',
          summary: 'Get an organization with its usage, limits, owners and policies',
          tags: ['Admin'],
          params: OneOrganization,
          response: { 200: ref(AdminOrganizationDetail), ...problems() },
        },
      },
      async ({ staff, params }) => presentDetails(await organizationDetails.get(staff, params.id)),
    );

    app.get(
      '/orgs/:id/audit-log',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.listAuditLog',
          summary: 'List the changes that the organization’s own audit log has',
          tags: ['Admin'],
          params: OneOrganization,
          querystring: strictObject({ ...pageQuery, ...auditFilterQuery }),
          response: { 200: listOf(ref(AuditEntryRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await organizationDetails.listAuditEntries(
          request.staff,
          request.params.id,
          readAuditFilter(request.query),
          lists.read(request),
        );
        return lists.present(request, page, presentAuditEntry);
      },
    );

    app.post(
      '/orgs/:id/reassign-owner',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminOrganizations.reassignOwner',
          summary: 'Make a member the only owner',
          description: 'The former owners become administrators. All of them get an email.',
          tags: ['Admin'],
          params: OneOrganization,
          body: ref(ReassignOwner),
          response: { 200: ref(AdminOrganizationDetail), ...postProblems() },
        },
      },
      async ({ staff, params, body }) => {
        const { user_id: userId, note, leave_without_break_glass: leaveWithoutBreakGlass = false } = body;
        await ownerAdministration.reassign(staff, params.id, { userId, note, leaveWithoutBreakGlass });
        return presentDetails(await organizationDetails.get(staff, params.id));
      },
    );
    done();
  };
