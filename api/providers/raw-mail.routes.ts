import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { RawMailService } from '../../domain/providers/raw-mail.service.ts';
import { AppError } from '../../platform/errors.ts';
import { skipBodyValidation } from '../plugins/skip-body-validation.ts';
import { postProblems, ref, resource, strictObject, text } from '../schemas.ts';

/** Without line breaks: each value is one line of the signed string. */
const SINGLE_LINE = '^[^\\u0000-\\u001f\\u007f]*$';
const MAX_RECIPIENTS = 100;
const MAX_MAIL_BYTES = 37_748_736;

const Envelope = strictObject({
  mail_from: text(1000, { pattern: SINGLE_LINE, description: 'Envelope sender; empty for <>.', default: '' }),
  rcpt_to: Type.Array(text(1000, { pattern: '^[^\\u0000-\\u0020,\\u007f]+@[^\\u0000-\\u0020,\\u007f@]+$' }), {
    minItems: 1,
    maxItems: MAX_RECIPIENTS,
    description: 'Envelope recipients; repeat the parameter for each.',
  }),
  client_ip: text(45, {
    pattern: '^[0-9A-Fa-f.:]{2,45}$',
    description: 'IP address of the SMTP client.',
  }),
  helo: text(255, {
    pattern: SINGLE_LINE,
    description: 'HELO or EHLO name of the SMTP client.',
    default: '',
  }),
  id: text(255, {
    pattern: SINGLE_LINE,
    description: 'The server’s id for the message. An inbox accepts each id only once.',
    default: '',
  }),
});

const SignatureHeaders = Type.Object({
  'x-provider-timestamp': text(12, { pattern: '^\\d{9,12}$', description: 'Seconds since 1970.' }),
  'x-provider-content-sha256': text(64, {
    pattern: '^[0-9a-fA-F]{64}$',
    description: 'SHA-256 of the body, hex.',
  }),
  'x-provider-signature': text(67, {
    pattern: '^v1=[0-9a-f]{64}$',
    description: 'v1= and the HMAC-SHA256, hex.',
  }),
});

export const RawMailResult = resource(
  'mail_handover',
  {
    accepted: Type.Array(text(1000), {
      maxItems: MAX_RECIPIENTS,
      description: 'Recipients for which the message was accepted.',
    }),
    unknown: Type.Array(text(1000), {
      maxItems: MAX_RECIPIENTS,
      description: 'Recipients without an inbox here.',
    }),
  },
  { $id: 'HandedOver', title: 'HandedOver' },
);

export const rawMailRoutes =
  ({ rawMail }: { rawMail: RawMailService }): FastifyPluginAsyncTypebox =>
  async (app) => {
    // Streams messages to storage. Other content types are rejected unread.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('message/rfc822', (_request, payload, done) => done(null, payload));
    app.addContentTypeParser('*', (_request, _payload, done) => done(notMail()));

    app.post(
      '/providers/raw',
      {
        bodyLimit: MAX_MAIL_BYTES,
        config: { public: 'signed', bodyIsStreamed: true },
        validatorCompiler: skipBodyValidation(app.validatorCompiler),
        // A single parameter is a list of one.
        preValidation: async ({ query }) => {
          query.rcpt_to = [query.rcpt_to].flat();
        },
        schema: {
          operationId: 'providers.takeRawMail',
          summary: 'Hand over a received message',
          description:
            'For mail servers, not for agents: raw MIME with its envelope, signed with PROVIDER_RAW_SECRET. 200 means that the message is stored and will be processed.',
          tags: ['Providers'],
          consumes: ['message/rfc822'],
          security: [],
          querystring: Envelope,
          headers: SignatureHeaders,
          body: Type.String({ maxLength: MAX_MAIL_BYTES, description: 'The received message, unchanged.' }),
          response: { 200: ref(RawMailResult), ...postProblems() },
        },
      },
      async ({ query, headers, body }) => ({
        object: 'mail_handover' as const,
        ...(await rawMail.accept(
          {
            mailFrom: query.mail_from,
            rcptTo: query.rcpt_to,
            clientIp: query.client_ip,
            helo: query.helo,
            id: query.id,
          },
          {
            timestamp: headers['x-provider-timestamp'],
            contentSha256: headers['x-provider-content-sha256'],
            signature: headers['x-provider-signature'],
          },
          toMailStream(body),
        )),
      }),
    );
  };

function toMailStream(body: unknown): Readable {
  if (body instanceof Readable) return body;
  throw notMail();
}

function notMail(): AppError {
  return new AppError('unsupported_media_type', {
    detail: 'A raw message has the content type message/rfc822.',
    fix: 'Send "Content-Type: message/rfc822" and the unchanged message.',
  });
}
