import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';
import { createStaticContent, type StaticContent } from '../plugins/static-document.ts';
import { BASE_URL, createSiteReader, type SiteFiles } from './site-files.ts';

export interface DocsOptions {
  publicUrl: string;
  /** Reads the files of the site; default: those that `npm run build:docs` wrote. */
  readFiles?: (() => Promise<SiteFiles>) | undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  png: 'image/png',
};
const PLAIN_TEXT = 'text/plain; charset=utf-8';

/** Scripts and styles are files of this site; nothing is loaded from elsewhere, framed, or submitted to another site. */
const SITE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Files with a fingerprint in their name never change. Others are asked for each time, and answered with 304. */
const KEPT = 'public, max-age=31536000, immutable';
const ASKED = 'public, no-cache';

const OPTIONS = (name: string) => ({
  config: { public: 'unlimited' as const },
  schema: { hide: true, operationId: `docs.${name}` },
});

/** The site of the documents: static files, each page as HTML or Markdown. */
export const docsRoutes =
  ({ publicUrl, readFiles = createSiteReader() }: DocsOptions): FastifyPluginCallback =>
  (app, _options, done) => {
    const site = createSite(publicUrl, readFiles);
    app.get('/docs', OPTIONS('index'), async (request, reply) => sendPage(site, 'index', request, reply));
    app.get('/docs/*', OPTIONS('page'), async (request, reply) => {
      const { '*': path } = request.params as { '*': string };
      return sendPage(site, path.replace(/\/$/, ''), request, reply);
    });
    for (const name of ['llms.txt', 'llms-full.txt'])
      app.get(`/${name}`, OPTIONS(name.replace(/\W/g, '')), async (request, reply) =>
        sendFile(await site(name), name, request, reply),
      );
    done();
  };

type FindFile = (path: string) => Promise<StaticContent | undefined>;

/** Each file is compressed when it is first asked for. */
function createSite(publicUrl: string, readFiles: () => Promise<SiteFiles>): FindFile {
  let shown: { files: SiteFiles; contents: Map<string, StaticContent> } | undefined;
  return async (path) => {
    const files = await readFiles();
    if (shown?.files !== files) shown = { files, contents: new Map() };
    const { contents } = shown;
    const file = files.get(path);
    if (file === undefined) return undefined;
    const known = contents.get(path);
    if (known) return known;
    const body = typeof file === 'string' ? Buffer.from(file.replaceAll(BASE_URL, publicUrl)) : file;
    const content = createStaticContent(body);
    contents.set(path, content);
    return content;
  };
}

/** A page has two representations (RFC 9110, section 12.5.1); a file has one. */
async function sendPage(
  site: FindFile,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const file = path === '404.html' ? undefined : await site(path);
  if (file && !path.endsWith('.html')) return sendFile(file, path, request, reply);
  const page = path === '404' ? undefined : await site(`${path}.html`);
  if (!page) return sendNotFound(site, request, reply);
  const markdown = prefersMarkdown(request.headers.accept) ? await site(`${path}.md`) : undefined;
  reply.header('vary', 'accept');
  return markdown
    ? sendFile(markdown, `${path}.md`, request, reply)
    : sendFile(page, `${path}.html`, request, reply);
}

async function sendFile(
  file: StaticContent | undefined,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if (!file) return sendNotFound(async () => undefined, request, reply);
  const type = TYPES[/\.(\w+)$/.exec(path)?.[1] ?? ''] ?? PLAIN_TEXT;
  if (type === TYPES.html) reply.header('content-security-policy', SITE_POLICY);
  const cache = /^assets\/[\w-]+\.[0-9a-f]{10}\./.test(path) ? KEPT : ASKED;
  return file.send(request, reply, { type, cache });
}

async function sendNotFound(
  site: FindFile,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const page = /\btext\/html\b/.test(request.headers.accept ?? '') ? await site('404.html') : undefined;
  if (!page)
    throw new AppError('not_found', {
      detail: 'The documents have no page at this address.',
      fix: '/llms.txt lists all pages, and /openapi.json the operations.',
    });
  reply.code(404).header('vary', 'accept');
  return sendFile(page, '404.html', request, reply);
}

/** Browsers name HTML; a client that names neither gets HTML, too. */
function prefersMarkdown(accept = ''): boolean {
  const weightOf = (type: string): number => {
    const part = accept.split(',').find((each) => each.split(';')[0]?.trim().toLowerCase() === type);
    if (part === undefined) return 0;
    const quality = Number(/;\s*q=([^;\s]*)/i.exec(part)?.[1] ?? 1);
    return Number.isNaN(quality) ? 0 : quality;
  };
  return weightOf('text/markdown') > weightOf('text/html');
}
