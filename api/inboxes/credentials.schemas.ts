import { type Static, Type } from 'typebox';
import type { InboxCredentials } from '../../domain/inboxes/credential.service.ts';
import type { Config } from '../../platform/config.ts';
import { enumOf, nullableTimestamp, resource, text } from '../schemas.ts';

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

export type SubmissionServer = Pick<
  Config,
  | 'MAIL_DOMAIN'
  | 'SUBMISSION_SMTP_HOSTNAME'
  | 'SUBMISSION_SMTP_PORT'
  | 'SUBMISSION_SMTP_TLS_PORT'
  | 'SUBMISSION_SMTP_PUBLIC_PORT'
>;

export const presentCredentials = (
  config: SubmissionServer,
  { username, rotatedAt }: InboxCredentials,
): Static<typeof CredentialsRecord> => ({
  object: 'inbox_credentials',
  host: config.SUBMISSION_SMTP_HOSTNAME ?? config.MAIL_DOMAIN,
  port: config.SUBMISSION_SMTP_PUBLIC_PORT || config.SUBMISSION_SMTP_PORT,
  security: 'starttls',
  implicit_tls_port: config.SUBMISSION_SMTP_TLS_PORT || null,
  username,
  rotated_at: rotatedAt?.toISOString() ?? null,
});
