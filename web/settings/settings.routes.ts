import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { strictObject, text } from '../../api/schemas.ts';
import type { OrganizationDeletionService } from '../../domain/deletions/organization-deletion.service.ts';
import type { OrganizationService } from '../../domain/organizations/organization.service.ts';
import type { RetentionPolicyService } from '../../domain/retention/retention-policy.service.ts';
import type { Config } from '../../platform/config.ts';
import type { AppError } from '../../platform/errors.ts';
import { NumberField, OrganizationQuery, readNumber } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { SETTINGS, settingsTabs } from './settings-tabs.ts';

export interface SettingsPageDependencies {
  pages: Pages;
  config: Config;
  organizations: OrganizationService;
  retentionPolicies: RetentionPolicyService;
  organizationDeletions: OrganizationDeletionService;
}

/** The organization itself, how long it keeps messages, and its end. */
export const settingsPages =
  (dependencies: SettingsPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, organizations, retentionPolicies, organizationDeletions } = dependencies;

    const showOrganization = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'settings/organization',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          organization: await organizations.get(request.scope),
          hasBilling: dependencies.config.BILLING_ENABLED,
        },
        apiCall: { path: '/org' },
      });

    app.get(
      '/settings',
      {
        config: { permission: 'inboxes:read' },
        schema: { operationId: 'pages.settings', querystring: OrganizationQuery },
      },
      async (request, reply) => showOrganization(request, reply),
    );

    pages.form(app, SETTINGS, {
      config: { permission: 'org:update' },
      schema: {
        operationId: 'pages.updateOrganization',
        body: strictObject({ name: text(200, { minLength: 1 }), slug: text(100, { minLength: 1 }) }),
      },
      work: async ({ scope, body }) => {
        const current = await organizations.get(scope);
        // A slug from before the present rules stays as it is.
        const slug = body.slug === current.slug ? {} : { slug: body.slug };
        await organizations.update(scope, { name: body.name, ...slug });
      },
      show: showOrganization,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, SETTINGS), 'saved'),
    });

    const RETENTION = '/settings/retention';
    const showRetention = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { organizationId } = request.scope;
      return pages.send(request, reply, {
        template: 'settings/retention',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          retention: await retentionPolicies.get(request.scope, organizationId),
        },
        apiCall: { path: `/organizations/${organizationId}/retention-policy` },
      });
    };

    app.get(
      '/settings/retention',
      {
        config: { permission: 'inboxes:read' },
        schema: { operationId: 'pages.retention', querystring: OrganizationQuery },
      },
      async (request, reply) => showRetention(request, reply),
    );

    pages.form(app, RETENTION, {
      config: { permission: 'retention:manage' },
      schema: {
        operationId: 'pages.setRetention',
        body: strictObject({ retention_days: NumberField }),
      },
      work: async ({ scope, body }) => {
        const days = readNumber('retention_days', body.retention_days, { min: 0, max: MAX_RETENTION_DAYS });
        // An empty field means the same as 0.
        await retentionPolicies.set(scope, scope.organizationId, days ?? 0);
      },
      show: showRetention,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, RETENTION), 'saved'),
    });

    pages.form(app, `${RETENTION}/postpone`, {
      config: { permission: 'retention:manage' },
      schema: { operationId: 'pages.postponeRetention', body: strictObject({}) },
      work: ({ scope }) => retentionPolicies.postpone(scope, scope.organizationId, POSTPONE_DAYS),
      show: showRetention,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, RETENTION), 'saved'),
    });

    const CLOSING = '/settings/closing';
    const showClosing = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'settings/closing',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          organization: await organizations.get(request.scope),
        },
      });

    app.get(
      '/settings/closing',
      {
        config: { permission: 'org:delete', impersonation: 'never' },
        schema: { operationId: 'pages.closing', querystring: OrganizationQuery },
      },
      async (request, reply) => showClosing(request, reply),
    );

    pages.form(app, CLOSING, {
      config: { permission: 'org:delete' },
      schema: {
        operationId: 'pages.closeOrganization',
        body: strictObject({ name: text(255, { minLength: 1 }) }),
      },
      work: ({ scope, body }) => organizationDeletions.delete(scope, body.name),
      show: showClosing,
      done: (_request, reply) => pages.seeOther(reply, '/account', 'organization-closed'),
    });
    done();
  };

const MAX_RETENTION_DAYS = 3_650;
const POSTPONE_DAYS = 30;
