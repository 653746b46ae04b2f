import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { LimitAdministrationService } from '../../domain/administration/limit-administration.service.ts';
import type { OrganizationDetailsService } from '../../domain/administration/organization-details.service.ts';
import { LIMITED_RESOURCES } from '../../domain/usage/counters.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  postProblems,
  problems,
  ref,
  strictObject,
} from '../schemas.ts';
import { parseTime } from '../time.ts';
import { Note } from './note.ts';
import {
  AdminOrganizationDetail,
  ChangeTier,
  LimitOverrideList,
  LimitOverrideRecord,
  presentDetails,
  presentOverride,
  SetLimitOverride,
} from './organizations.schemas.ts';

const OneOrganization = strictObject({ id: id('Organization id (org_…).') });

export const adminLimitRoutes =
  ({
    limitAdministration,
    organizationDetails,
  }: {
    limitAdministration: LimitAdministrationService;
    organizationDetails: OrganizationDetailsService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.patch(
      '/orgs/:id/tier',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminOrganizations.changeTier',
          summary: 'Change the tier of an organization',
          description: 'Takes effect at once. Webhook deliveries that waited for the old limit leave.',
          tags: ['Admin'],
          params: OneOrganization,
          body: ref(ChangeTier),
          response: { 200: ref(AdminOrganizationDetail), ...changeProblems() },
        },
      },
      async ({ staff, params, body }) => {
        await limitAdministration.setTier(staff, params.id, body);
        return presentDetails(await organizationDetails.get(staff, params.id));
      },
    );

    app.post(
      '/orgs/:id/limit-override',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminOrganizations.setLimitOverride',
          summary: 'Override a limit of an organization',
          description:
            'In place of the limit of its tier, until it expires. Replaces an override of the same counter.',
          tags: ['Admin'],
          params: OneOrganization,
          body: ref(SetLimitOverride),
          response: { 200: ref(LimitOverrideRecord), ...postProblems() },
        },
      },
      async ({ staff, params, body }) => {
        const { counter, limit, kind, expires_at: expiresAt, note: reason } = body;
        return presentOverride(
          await limitAdministration.setOverride(staff, params.id, {
            resource: counter,
            limit,
            kind,
            expiresAt: expiresAt === undefined ? null : parseTime('/body/expires_at', expiresAt),
            reason,
          }),
        );
      },
    );

    app.delete(
      '/orgs/:id/limit-override/:counter',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminOrganizations.removeLimitOverride',
          summary: 'Remove an override; the limit of the tier applies again',
          tags: ['Admin'],
          params: strictObject({
            ...OneOrganization.properties,
            counter: enumOf(LIMITED_RESOURCES, { description: 'What the override limits.' }),
          }),
          querystring: strictObject({ note: Note }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ staff, params, query }, reply) => {
        await limitAdministration.removeOverride(staff, params.id, {
          resource: params.counter,
          note: query.note,
        });
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/orgs/:id/limit-overrides',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.listLimitOverrides',
          summary: 'List the overrides of an organization, also expired ones',
          tags: ['Admin'],
          params: OneOrganization,
          response: { 200: ref(LimitOverrideList), ...problems() },
        },
      },
      async ({ staff, params }) => {
        const overrides = await limitAdministration.listOverrides(staff, params.id);
        return { data: overrides.map((override) => presentOverride(override)) };
      },
    );
    done();
  };
