import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { CredentialService, InboxCredentials } from '../../domain/inboxes/credential.service.ts';
import { id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  CredentialsRecord,
  presentCredentials,
  RotatedCredentials,
  type SubmissionServer,
} from './credentials.schemas.ts';

const InboxParams = strictObject({ id: id('Inbox id (inb_…).') });
export const credentialRoutes =
  ({
    credentials,
    config,
  }: {
    credentials: CredentialService;
    config: SubmissionServer;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const present = (credential: InboxCredentials) => presentCredentials(config, credential);

    app.get(
      '/inboxes/:id/credentials',
      {
        config: { permission: 'inboxes:read' },
        schema: {
          operationId: 'inboxes.getCredentials',
          summary: 'Get the SMTP submission settings of an inbox',
          tags: ['Inboxes'],
          params: InboxParams,
          response: { 200: ref(CredentialsRecord), ...problems() },
        },
      },
      async ({ scope, params }) => present(await credentials.get(scope, params.id)),
    );

    app.post(
      '/inboxes/:id/credentials/rotate',
      {
        // The whole response is the new credential.
        config: { permission: 'inboxes:write', readPermission: 'inboxes:write', impersonation: 'never' },
        schema: {
          operationId: 'inboxes.rotateCredentials',
          summary: 'Rotate the SMTP password of an inbox',
          description:
            'The previous password stops working immediately. Also requires messages:send, because the password allows sending.',
          tags: ['Inboxes'],
          params: InboxParams,
          response: { 200: ref(RotatedCredentials), ...postProblems() },
        },
      },
      async ({ scope, params }) => {
        const { password, ...rotated } = await credentials.rotate(scope, params.id);
        return { ...present(rotated), password };
      },
    );
    done();
  };
