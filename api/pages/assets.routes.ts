import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyPluginCallback } from 'fastify';

const CACHE = 'public, max-age=3600';

/** The package's folder: its `exports` do not name the bundle for browsers. */
const SIMPLEWEBAUTHN = join(dirname(createRequire(import.meta.url).resolve('@simplewebauthn/browser')), '..');

/** Files that pages load, by path. They are read once. */
const FILES = {
  '/assets/icon.svg': { type: 'image/svg+xml', file: join(import.meta.dirname, 'assets/icon.svg') },
  '/assets/style.css': {
    type: 'text/css; charset=utf-8',
    file: join(import.meta.dirname, 'assets/style.css'),
  },
  '/assets/passkeys.js': {
    type: 'text/javascript; charset=utf-8',
    file: join(import.meta.dirname, 'assets/passkeys.js'),
  },
  '/assets/live.js': {
    type: 'text/javascript; charset=utf-8',
    file: join(import.meta.dirname, 'assets/live.js'),
  },
  '/assets/simplewebauthn-browser.js': {
    type: 'text/javascript; charset=utf-8',
    file: join(SIMPLEWEBAUTHN, 'dist/bundle/index.umd.min.js'),
  },
};

export const assetRoutes = (): FastifyPluginCallback => (app, _options, done) => {
  for (const [path, { type, file }] of Object.entries(FILES)) {
    const content = readFileSync(file);
    app.get(
      path,
      {
        config: { public: 'unlimited' },
        schema: { hide: true, operationId: `assets.${path.replace(/\W/g, '')}` },
      },
      async (_request, reply) => reply.type(type).header('cache-control', CACHE).send(content),
    );
  }
  done();
};
