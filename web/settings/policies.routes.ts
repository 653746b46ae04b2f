import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { PolicyPreviewService } from '../../domain/people/policy-preview.service.ts';
import type { Policies } from '../../domain/policies/find-policies.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { NumberField, OrganizationQuery, readNumber } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { settingsTabs } from './settings-tabs.ts';

export interface PolicyPageDependencies {
  pages: Pages;
  policies: PolicyService;
  policyPreviews: PolicyPreviewService;
}

const PATH = '/settings/policies';
const permission = 'policies:manage';
const MAX_SESSION_HOURS = 720;

const PoliciesForm = strictObject({
  require_mfa: Type.Optional(Type.Literal('on')),
  session_max_age_hours: NumberField,
  allowed_cidrs: text(6_500),
});
const readPolicies = (form: Static<typeof PoliciesForm>) => ({
  requireMfa: form.require_mfa === 'on',
  sessionMaxAgeHours: readNumber('session_max_age_hours', form.session_max_age_hours, {
    min: 1,
    max: MAX_SESSION_HOURS,
  }),
  allowedCidrs: form.allowed_cidrs.split(/[\s,]+/).filter(Boolean),
});

/** How members and keys get in, with a look at who would not, and whether staff of the service may look. */
export const policyPages =
  ({ pages, policies, policyPreviews }: PolicyPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (
      request: FastifyRequest,
      reply: FastifyReply,
      { problem, preview }: { problem?: AppError; preview?: object } = {},
    ) =>
      pages.send(request, reply, {
        template: 'settings/policies',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          policies: await policies.get(request.scope),
          preview,
          entered: preview && (request.body as Static<typeof PoliciesForm>),
          ip: request.ip,
          now: new Date(),
        },
        apiCall: { path: '/org/policies' },
      });
    const again = (request: FastifyRequest, reply: FastifyReply, problem: AppError) =>
      show(request, reply, { problem });
    const saved = (request: FastifyRequest, reply: FastifyReply) =>
      pages.seeOther(reply, pages.link(request, PATH), 'saved');

    app.get(
      '/settings/policies',
      { config: { permission }, schema: { operationId: 'pages.policies', querystring: OrganizationQuery } },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, PATH, {
      config: { permission },
      schema: { operationId: 'pages.updatePolicies', body: PoliciesForm },
      work: async ({ scope, body }) => policies.update(scope, readPolicies(body)),
      show: again,
      done: saved,
    });

    pages.form(app, `${PATH}/preview`, {
      config: { permission },
      schema: { operationId: 'pages.previewPolicies', body: PoliciesForm },
      work: async ({ scope, body }) => {
        const { requireMfa, allowedCidrs } = readPolicies(body);
        return policyPreviews.preview(scope, { requireMfa, allowedCidrs });
      },
      show: again,
      // What the person has entered stays, to be saved or changed.
      done: (request, reply, preview) => show(request, reply, { preview }),
    });

    pages.form(app, `${PATH}/support-access`, {
      config: { permission },
      schema: {
        operationId: 'pages.updateSupportAccess',
        body: strictObject({ support_access: enumOf(['allowed', 'ask', 'ask_day', 'ask_week']) }),
      },
      work: ({ scope, body }) => policies.update(scope, toSupportAccess(body.support_access)),
      show: again,
      done: saved,
    });
    done();
  };

const HOUR_MS = 3_600_000;
const CONSENT_HOURS: Record<string, number> = { ask_day: 24, ask_week: 168 };

function toSupportAccess(choice: string): Pick<Policies, 'supportAccess' | 'supportAccessUntil'> {
  const hours = CONSENT_HOURS[choice];
  return {
    supportAccess: choice === 'allowed' ? 'allowed' : 'ask',
    supportAccessUntil: hours === undefined ? null : new Date(Date.now() + hours * HOUR_MS),
  };
}
