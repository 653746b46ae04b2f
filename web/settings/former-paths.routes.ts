import type { FastifyPluginCallback } from 'fastify';

/** Pages that had another path: emails and bookmarks lead there. */
const FORMER_PATHS = [
  ['/organization', '/settings', 'pages.formerOrganization'],
  ['/organization/sso', '/settings/single-sign-on', 'pages.formerSso'],
  ['/organization/sending-policies', '/settings/sending', 'pages.formerSendingPolicies'],
] as const;

export const formerPaths = (): FastifyPluginCallback => (app, _options, done) => {
  for (const [former, path, operationId] of FORMER_PATHS)
    app.get(former, { config: { public: true }, schema: { operationId } }, async ({ url }, reply) => {
      const [, query] = url.split('?');
      return reply.redirect(query === undefined ? path : `${path}?${query}`, 308);
    });
  done();
};
