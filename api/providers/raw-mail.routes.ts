import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifySchemaCompiler } from 'fastify';
import { Type } from 'typebox';
import type { RawMailService } from '../../domain/providers/raw-mail.service.ts';
import { AppError } from '../../platform/errors.ts';
import { postProblems, ref, strictObject, text } from '../schemas.ts';

/** Printable, without line breaks: each is a line of what is signed. */
const SINGLE_LINE = '^[^\\u0000-\\u001f\\u007f]*$';
const MAX_RECIPIENTS = 100;
const MAX_MAIL_BYTES = 37_748_736;

const Envelope = strictObject({
  mail_from: text(1000, { pattern: SINGLE_LINE, description: 'Envelope sender; empty for <>.', default: '' }),
  rcpt_to: Type.Array(text(1000, { pattern: '^[^\\u0000-\\u0020,\\u007f]+@[^\\u0000-\\u0020,\\u007f@]+$' }), {
    minItems: 1,
    maxItems: MAX_RECIPIENTS,
    description: 'Envelope recipients, the parameter once for each.',
  }),
  client_ip: text(45, {
    pattern: '^[0-9A-Fa-f.:]{2,45}$',
    description: 'Address of the client that delivered it.',
  }),
  helo: text(255, { pattern: SINGLE_LINE, description: 'What it said in HELO.', default: '' }),
  id: text(255, {
    pattern: SINGLE_LINE,
    description: 'What the server calls the mail: taken once an inbox.',
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

export const RawMailResult = strictObject(
  {
    accepted: Type.Array(text(1000), { maxItems: MAX_RECIPIENTS, description: 'Taken in for these.' }),
    unknown: Type.Array(text(1000), { maxItems: MAX_RECIPIENTS, description: 'Nobody here has these.' }),
  },
  { $id: 'HandedOver', title: 'HandedOver' },
);

export const rawMailRoutes =
  ({ rawMail }: { rawMail: RawMailService }): FastifyPluginAsyncTypebox =>
  async (app) => {
    // Streamed to storage, not kept in memory; what is no mail is not read at all.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('message/rfc822', (_request, payload, done) => done(null, payload));
    app.addContentTypeParser('*', (_request, _payload, done) => done(notMail()));

    app.post(
      '/providers/raw',
      {
        bodyLimit: MAX_MAIL_BYTES,
        // Proved by its signature. A mail server in front sends everything from one address.
        config: { public: 'unlimited' },
        validatorCompiler: skipBodyValidation(app.validatorCompiler),
        // A parameter that stands once is a list of one.
        preValidation: async ({ query }) => {
          query.rcpt_to = [query.rcpt_to].flat();
        },
        schema: {
          operationId: 'providers.takeRawMail',
          summary: 'Hand a received mail over',
          description:
            'For mail servers, not for agents: raw MIME with its envelope, signed with PROVIDER_RAW_SECRET. 200 means the mail is stored and will be processed.',
          tags: ['Providers'],
          consumes: ['message/rfc822'],
          security: [],
          querystring: Envelope,
          headers: SignatureHeaders,
          body: Type.String({ maxLength: MAX_MAIL_BYTES, description: 'The mail as it came.' }),
          response: { 200: ref(RawMailResult), ...postProblems() },
        },
      },
      async ({ query, headers, body }) =>
        rawMail.take(
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
        ),
    );
  };

function toMailStream(body: unknown): Readable {
  if (body instanceof Readable) return body;
  throw notMail();
}

function notMail(): AppError {
  return new AppError('unsupported_media_type', {
    detail: 'A raw mail is message/rfc822.',
    fix: 'Send "Content-Type: message/rfc822" and the mail as it came.',
  });
}

/** The body is a stream; its schema describes it. */
function skipBodyValidation(
  compiler: FastifySchemaCompiler<object> | undefined,
): FastifySchemaCompiler<object> {
  return (route) => {
    if (route.httpPart === 'body' || !compiler) return () => true;
    return compiler(route);
  };
}
