import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { RetentionPolicyService } from '../../domain/retention/retention-policy.service.ts';
import { changeProblems, strictObject, id, postProblems, problems, ref } from '../schemas.ts';
import {
  PostponeRetention,
  presentRetention,
  RetentionPolicyRecord,
  SetRetentionPolicy,
} from './retention-policy.schemas.ts';

const OneOrganization = strictObject({ id: id('Organization id (org_…), the credential’s own.') });
const PATH = '/organizations/:id/retention-policy';

export const retentionPolicyRoutes =
  ({
    retentionPolicies,
    unversioned = false,
  }: {
    retentionPolicies: RetentionPolicyService;
    /** The same operations at the path without /api/v1. */
    unversioned?: boolean;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const operation = (name: string, summary: string) => ({
      operationId: `${unversioned ? 'retentionUnversioned' : 'retention'}.${name}`,
      summary: unversioned ? `${summary} (same as /api/v1)` : summary,
      tags: ['Organization'],
      params: OneOrganization,
    });

    app.get(
      PATH,
      {
        config: { permission: 'inboxes:read' },
        schema: {
          ...operation('get', 'Read how long mail is kept'),
          response: { 200: ref(RetentionPolicyRecord), ...problems() },
        },
      },
      async (request) => presentRetention(await retentionPolicies.get(request.scope, request.params.id)),
    );

    app.put(
      PATH,
      {
        config: { permission: 'retention:manage', exemptFromUsageLimit: true },
        schema: {
          ...operation('set', 'Set how long mail is kept'),
          description:
            'What keeps mail longer holds at once. What deletes more holds after seven days, and the owners get a mail at once, one day before, and monthly from then on. The same value again changes nothing.',
          body: ref(SetRetentionPolicy),
          response: { 200: ref(RetentionPolicyRecord), ...changeProblems() },
        },
      },
      async (request) =>
        presentRetention(
          await retentionPolicies.set(request.scope, request.params.id, request.body.retention_days),
        ),
    );

    app.post(
      `${PATH}/postpone`,
      {
        config: { permission: 'retention:manage', exemptFromUsageLimit: true },
        schema: {
          ...operation('postpone', 'Put the deletion of old mail off'),
          description: 'A deletion under way ends within seconds. It never brings a deletion nearer.',
          body: ref(PostponeRetention),
          response: { 200: ref(RetentionPolicyRecord), ...postProblems() },
        },
      },
      async (request) =>
        presentRetention(
          await retentionPolicies.postpone(request.scope, request.params.id, request.body.days),
        ),
    );
    done();
  };
