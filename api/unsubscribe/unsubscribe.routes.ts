import type { FastifyPluginCallback, FastifyReply } from 'fastify';
import type { UnsubscribeService } from '../../domain/deliverability/unsubscribe.service.ts';

/** Mail programs send `List-Unsubscribe=One-Click`; the link alone decides, so the body is not used. */
const BODY_LIMIT_BYTES = 16 * 1024;
/** The page's form posts to its own address. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/**
 * The pages behind the links of one-click unsubscription (RFC 8058). Opening a link changes nothing, because scanners
 * open every link of a message; only a POST unsubscribes. The signature of the link authenticates the request, and mail
 * providers send the requests of all their users from few addresses, so there is no rate limit by address.
 */
export const unsubscribeRoutes =
  ({ unsubscriptions }: { unsubscriptions: UnsubscribeService }): FastifyPluginCallback =>
  (app, _options, done) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES },
      (_request, _body, parsed) => parsed(null),
    );
    const config = { public: 'unlimited' } as const;

    app.get<{ Params: { token: string } }>(
      '/u/:token',
      { config, schema: { hide: true, operationId: 'unsubscribe.show' } },
      async ({ params }, reply) => {
        const { email } = unsubscriptions.read(params.token);
        return sendPage(
          reply,
          'Unsubscribe',
          `<p>Do you want no more messages to ${escapeHtml(email)} from this sender?</p>
<form method="post"><button name="List-Unsubscribe" value="One-Click">Unsubscribe</button></form>`,
        );
      },
    );

    app.post<{ Params: { token: string } }>(
      '/u/:token',
      { config, schema: { hide: true, operationId: 'unsubscribe.confirm' } },
      async ({ params }, reply) => {
        await unsubscriptions.unsubscribe(params.token);
        return sendPage(reply, 'Unsubscribed', '<p>You will get no more messages from this sender.</p>');
      },
    );
    done();
  };

function sendPage(reply: FastifyReply, title: string, body: string): FastifyReply {
  return reply
    .header('content-security-policy', PAGE_POLICY)
    .type('text/html; charset=utf-8')
    .send(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>${title}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}</style></head>
<body><h1>${title}</h1>${body}</body></html>
`);
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
