import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { AccessPolicies, PolicyService } from '../../domain/policies/policy.service.ts';
import { changeProblems, problems, ref, strictObject, text } from '../schemas.ts';

const MAX_SESSION_HOURS = 720;
const allowedCidrs = Type.Array(text(64), {
  maxItems: 100,
  description: 'Addresses and CIDR ranges that members and keys may call from. Empty: from everywhere.',
});
const sessionMaxAgeHours = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: MAX_SESSION_HOURS,
  description: 'Sessions end this long after signing in. Null: after 30 days.',
});

export const PoliciesRecord = strictObject(
  {
    require_mfa: Type.Boolean({ description: 'Members need a second factor.' }),
    session_max_age_hours: sessionMaxAgeHours,
    allowed_cidrs: allowedCidrs,
  },
  { $id: 'Policies', title: 'Policies' },
);
export const UpdatePolicies = strictObject(
  {
    require_mfa: Type.Optional(Type.Boolean()),
    session_max_age_hours: Type.Optional(sessionMaxAgeHours),
    allowed_cidrs: Type.Optional(allowedCidrs),
  },
  { $id: 'UpdatePolicies', title: 'UpdatePolicies' },
);

export const policyRoutes =
  ({ policies }: { policies: PolicyService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org/policies',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'policies.get',
          summary: 'Get the policies of the organization',
          tags: ['Organization'],
          response: { 200: ref(PoliciesRecord), ...problems() },
        },
      },
      async ({ scope }) => presentPolicies(await policies.get(scope)),
    );

    app.patch(
      '/org/policies',
      {
        config: { permission: 'policies:manage', readPermission: 'policies:manage' },
        schema: {
          operationId: 'policies.update',
          summary: 'Change the policies of the organization',
          description:
            'Omitted policies stay. Takes effect with the next request of every session and key. A policy that would lock the caller out is refused.',
          tags: ['Organization'],
          body: ref(UpdatePolicies),
          response: { 200: ref(PoliciesRecord), ...changeProblems() },
        },
      },
      async ({ scope, body }) =>
        presentPolicies(
          await policies.update(scope, {
            ...(body.require_mfa === undefined ? {} : { requireMfa: body.require_mfa }),
            ...(body.session_max_age_hours === undefined
              ? {}
              : { sessionMaxAgeHours: body.session_max_age_hours }),
            ...(body.allowed_cidrs === undefined ? {} : { allowedCidrs: body.allowed_cidrs }),
          }),
        ),
    );
    done();
  };

function presentPolicies(policies: AccessPolicies): Static<typeof PoliciesRecord> {
  return {
    require_mfa: policies.requireMfa,
    session_max_age_hours: policies.sessionMaxAgeHours,
    allowed_cidrs: policies.allowedCidrs,
  };
}
