import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyPluginCallback } from 'fastify';
import { createStaticContent } from '../../api/plugins/static-document.ts';

/** Browsers ask each time, and get 304 until the service is upgraded: page, style and scripts belong together. */
const CACHE = 'public, no-cache';

/** The package's folder: its `exports` do not name the bundle for browsers. */
const SIMPLEWEBAUTHN = join(dirname(createRequire(import.meta.url).resolve('@simplewebauthn/browser')), '..');

const FOLDER = join(import.meta.dirname, '../components');
const JAVASCRIPT = 'text/javascript; charset=utf-8';

/** Files that pages load, by path. They are read once. */
const FILES = {
  '/assets/icon.svg': { type: 'image/svg+xml', content: readFileSync(join(FOLDER, 'icon.svg')) },
  '/assets/style.css': {
    type: 'text/css; charset=utf-8',
    content: readFileSync(join(FOLDER, 'style.css')),
  },
  '/assets/console.js': { type: JAVASCRIPT, content: joinScripts(join(FOLDER, 'scripts')) },
  '/assets/passkeys.js': { type: JAVASCRIPT, content: readFileSync(join(FOLDER, 'passkeys.js')) },
  '/assets/simplewebauthn-browser.js': {
    type: JAVASCRIPT,
    content: readFileSync(join(SIMPLEWEBAUTHN, 'dist/bundle/index.umd.min.js')),
  },
};

/** One request for all small scripts. A block for each keeps its names apart. */
export function joinScripts(folder: string): Buffer {
  const sources = readdirSync(folder)
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  return Buffer.from(sources.map((source) => `{\n${source}}\n`).join(''));
}

export const assetRoutes = (): FastifyPluginCallback => (app, _options, done) => {
  for (const [path, { type, content }] of Object.entries(FILES)) {
    const file = createStaticContent(content);
    app.get(
      path,
      {
        config: { public: 'unlimited' },
        schema: { hide: true, operationId: `assets.${path.replace(/\W/g, '')}` },
      },
      async (request, reply) => file.send(request, reply, { type, cache: CACHE }),
    );
  }
  done();
};
