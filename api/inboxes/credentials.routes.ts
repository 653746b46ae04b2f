import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { CredentialService, InboxCredentials } from '../../domain/inboxes/credential.service.ts';
import type { Config } from '../../platform/config.ts';
import {
  enumOf,
  id,
  nullableTimestamp,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
} from '../schemas.ts';

const InboxParams = strictObject({ id: id('Inbox id (inb_…).') });
const port = (description: string) => Type.Integer({ minimum: 1, maximum: 65_535, description });

const fields = {
  host: text(255, { description: 'SMTP submission server (RFC 6409).' }),
  port: port('Port with STARTTLS. Authentication requires TLS.'),
  security: enumOf(['starttls']),
  implicit_tls_port: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    minimum: 1,
    maximum: 65_535,
    description: 'Port with implicit TLS (RFC 8314). Null if the service has none.',
  }),
  username: text(320, { description: 'The inbox’s address.' }),
  rotated_at: nullableTimestamp('When the password was created. Null if there is none.'),
};

export const CredentialsRecord = resource('inbox_credentials', fields, {
  $id: 'InboxCredentials',
  title: 'InboxCredentials',
});
export const RotatedCredentials = resource(
  'inbox_credentials',
  { ...fields, password: text(128, { description: 'Returned only once.' }) },
  { $id: 'RotatedInboxCredentials', title: 'RotatedInboxCredentials' },
);

type SubmissionServer = Pick<
  Config,
  | 'MAIL_DOMAIN'
  | 'SUBMISSION_SMTP_HOSTNAME'
  | 'SUBMISSION_SMTP_PORT'
  | 'SUBMISSION_SMTP_TLS_PORT'
  | 'SUBMISSION_SMTP_PUBLIC_PORT'
>;

export const credentialRoutes =
  ({
    credentials,
    config,
  }: {
    credentials: CredentialService;
    config: SubmissionServer;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const present = ({ username, rotatedAt }: InboxCredentials): Static<typeof CredentialsRecord> => ({
      object: 'inbox_credentials',
      host: config.SUBMISSION_SMTP_HOSTNAME ?? config.MAIL_DOMAIN,
      port: config.SUBMISSION_SMTP_PUBLIC_PORT || config.SUBMISSION_SMTP_PORT,
      security: 'starttls',
      implicit_tls_port: config.SUBMISSION_SMTP_TLS_PORT || null,
      username,
      rotated_at: rotatedAt?.toISOString() ?? null,
    });

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
