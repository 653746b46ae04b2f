import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { LightMyRequestResponse } from 'fastify';
import MiniSearch from 'minisearch';
import { createSiteReader, FINGERPRINT_FILE, type SiteFiles } from '../../api/docs/site-files.ts';
import { ERROR_CODES } from '../../platform/errors.ts';
import { siteOf } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { TestApp } from '../support/test-app.ts';

const PUBLIC_URL = 'https://mail.shop.example';
const app: TestApp = useTestApp({ config: { PUBLIC_URL }, readSite: () => readSite() });
const readSite = siteOf(() => app);
const unbuilt = useTestApp({ readSite: () => createSiteReader('/no/such/folder')() });

let site: SiteFiles;
/** The addresses of all pages. */
let pages: string[];
beforeAll(async () => {
  site = await readSite();
  pages = [...site.keys()]
    .filter((path) => path.endsWith('.html') && path !== '404.html')
    .map((path) => (path === 'index.html' ? '/docs' : `/docs/${path.replace(/\.html$/, '')}`));
});

const get = (url: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> =>
  app.app.inject({ url, headers });

/** The anchors of a page. */
const anchorsOf = (html: string): Set<string> =>
  new Set([...html.matchAll(/\bid="([^"]+)"/g)].map(([, id = '']) => id));

describe('every page', () => {
  test('is HTML with its title, and Markdown at the same address with .md', async () => {
    expect(pages.length).toBeGreaterThan(55);
    for (const page of pages) {
      const html = await get(page);
      expect([page, html.statusCode]).toEqual([page, 200]);
      expect(html.headers['content-type']).toBe('text/html; charset=utf-8');
      expect(html.body.match(/<h1\b/g)).toHaveLength(1);
      if (page === '/docs/search') continue;
      const [, alternate = ''] =
        /<link rel="alternate" type="text\/markdown" href="([^"]+)"/.exec(html.body) ?? [];
      const markdown = await get(alternate);
      expect([page, markdown.statusCode]).toEqual([page, 200]);
      expect(markdown.headers['content-type']).toBe('text/markdown; charset=utf-8');
      expect(markdown.body).toMatch(/^# \S/);
    }
  });

  test('leads only to pages, anchors and files that exist', async () => {
    const bodies = new Map<string, string>();
    for (const page of pages) bodies.set(page, (await get(page)).body);
    const wrong: string[] = [];
    let count = 0;
    for (const [page, body] of bodies)
      for (const [, href = ''] of body.matchAll(/\b(?:href|src|action)="([^"]+)"/g)) {
        if (/^(?:https?:|mailto:)/.test(href)) continue;
        count += 1;
        const [path = '', anchor] = href.replaceAll('&amp;', '&').split('#');
        const target = path === '' ? page : path;
        const html = bodies.get(target) ?? (await bodyOf(target));
        if (html === undefined || (anchor && bodies.has(target) && !anchorsOf(html).has(anchor)))
          wrong.push(`${page}: ${href}`);
      }
    expect(count).toBeGreaterThan(3_000);
    expect(wrong).toEqual([]);
  });

  test('has no anchor twice', async () => {
    for (const page of pages) {
      const ids = [...(await get(page)).body.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id);
      expect([page, ids.filter((id, index) => ids.indexOf(id) !== index)]).toEqual([page, []]);
    }
  });

  test('has neither style nor script of its own, and a policy that forbids both', async () => {
    for (const page of [...pages, '/docs/no-such-page']) {
      const { body, headers } = await get(page, { accept: 'text/html' });
      expect(body).not.toMatch(
        /<style|<script(?![^>]* src="\/docs\/assets\/)|<[a-z][^>]*\s(?:style|on\w+)=|"javascript:/i,
      );
      expect(body.match(/(?:src|href)="(?:https?:)?\/\/[^"]*\.(?:js|css|png|svg)"/g)).toBeNull();
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect(headers['x-content-type-options']).toBe('nosniff');
    }
  });

  test('shows the address of this service, and no other installation', async () => {
    for (const path of site.keys()) {
      if (!/\.(?:html|md|txt)$/.test(path) || path === '404.html') continue;
      const url = path.startsWith('llms') ? `/${path}` : `/docs/${path.replace(/\.html$/, '')}`;
      expect([path, (await get(url)).body.includes('public-url.invalid')]).toEqual([path, false]);
    }
    expect((await get('/docs/quickstart')).body).toContain(`=${PUBLIC_URL}`);
    expect((await get('/docs/reference/inboxes.md')).body).toContain(`"${PUBLIC_URL}/api/v1/inboxes"`);
  });
});

/** Undefined if the service has nothing at the address. Each is asked for once, because of rate limits. */
async function bodyOf(url: string): Promise<string | undefined> {
  if (!asked.has(url)) {
    const { statusCode, body } = await get(url);
    asked.set(url, statusCode < 400 ? body : undefined);
  }
  return asked.get(url);
}
const asked = new Map<string, string | undefined>();

describe('Markdown', () => {
  test('leads only to pages and headings that exist', async () => {
    const wrong: string[] = [];
    let count = 0;
    for (const path of site.keys()) {
      if (!path.endsWith('.md')) continue;
      const { body } = await get(`/docs/${path}`);
      for (const [, href = ''] of body.replace(/```[\s\S]*?```/g, '').matchAll(/\]\(([^)\s]+)\)/g)) {
        if (!href.startsWith(PUBLIC_URL)) {
          if (!/^(?:https?:|mailto:|#)/.test(href)) wrong.push(`${path}: ${href}`);
          continue;
        }
        count += 1;
        const [target = '', anchor] = href.slice(PUBLIC_URL.length).split('#');
        const page = await bodyOf(target.replace(/\.md$/, '').replace(/\/index$/, ''));
        if (page === undefined || (anchor && !anchorsOf(page).has(anchor))) wrong.push(`${path}: ${href}`);
      }
    }
    expect(count).toBeGreaterThan(200);
    expect(wrong).toEqual([]);
  });

  test.each([
    ['text/markdown', 'text/markdown'],
    ['text/markdown, text/html;q=0.9, */*;q=0.1', 'text/markdown'],
    ['text/html;q=0.5, text/markdown;q=0.7', 'text/markdown'],
    ['TEXT/MARKDOWN', 'text/markdown'],
    ['text/html, text/markdown;q=0.5', 'text/html'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'text/html'],
    ['text/markdown;q=0', 'text/html'],
    ['text/markdown;q=nonsense', 'text/html'],
    ['*/*', 'text/html'],
    ['', 'text/html'],
  ])('Accept: %s answers %s', async (accept, expected) => {
    for (const url of ['/docs', '/docs/webhooks', '/docs/reference/messages']) {
      const { headers } = await get(url, { accept });
      expect([url, headers['content-type']]).toEqual([url, `${expected}; charset=utf-8`]);
      expect(headers.vary).toBe('accept, accept-encoding');
    }
  });
});

describe('llms.txt', () => {
  test('lists every page that has Markdown, by its address', async () => {
    const { body, headers } = await get('/llms.txt');
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(body).toMatch(/^# Agent Email Service\n\n> \S/);
    const listed = [...body.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm)].map(([, url]) => url);
    const markdown = [...site.keys()]
      .filter((path) => path.endsWith('.md') && path !== 'reference.md')
      .map((path) => `${PUBLIC_URL}/docs/${path}`);
    expect(listed.toSorted()).toEqual(markdown.toSorted());
  });

  test('llms-full.txt has the pages for users whole', async () => {
    const { body } = await get('/llms-full.txt');
    for (const path of ['quickstart.md', 'recipes.md', 'errors.md', 'reference/messages.md'])
      expect(body).toContain((await get(`/docs/${path}`)).body);
    expect(body).not.toContain((await get('/docs/kubernetes.md')).body);
  });
});

describe('a file of the site', () => {
  test('has an entity tag of its own for each representation, and is not sent again', async () => {
    const html = await get('/docs/webhooks');
    const markdown = await get('/docs/webhooks', { accept: 'text/markdown' });
    expect(html.headers.etag).toMatch(/^W\/"/);
    expect(markdown.headers.etag).not.toBe(html.headers.etag);
    expect((await get('/docs/webhooks.md')).headers.etag).toBe(markdown.headers.etag);
    for (const { etag } of [html.headers, { etag: `"other", ${html.headers.etag}` }, { etag: '*' }]) {
      const again = await get('/docs/webhooks', { 'if-none-match': String(etag) });
      expect([again.statusCode, again.body]).toEqual([304, '']);
      expect(again.headers).toMatchObject({
        etag: html.headers.etag,
        vary: 'accept, accept-encoding',
        'cache-control': 'public, no-cache',
      });
    }
    const other = await get('/docs/webhooks', { 'if-none-match': String(markdown.headers.etag) });
    expect(other.statusCode).toBe(200);
  });

  test('is compressed as the client accepts it', async () => {
    const plain = await get('/docs/recipes');
    for (const [encoding, decompress] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const { headers, rawPayload } = await get('/docs/recipes', { 'accept-encoding': encoding });
      expect(headers['content-encoding']).toBe(encoding);
      expect(decompress(rawPayload).toString()).toBe(plain.body);
      expect(rawPayload.length).toBeLessThan(plain.body.length / 3);
    }
  });

  test('is kept for a year if its name has a fingerprint', async () => {
    const { body } = await get('/docs');
    const assets = [...body.matchAll(/"(\/docs\/assets\/[^"]+)"/g)].map(([, url = '']) => url);
    expect(assets).toHaveLength(4);
    for (const url of assets) {
      const { statusCode, headers } = await get(url);
      expect([url, statusCode, headers['cache-control']]).toEqual([
        url,
        200,
        'public, max-age=31536000, immutable',
      ]);
      expect(headers.vary).toBe('accept-encoding');
    }
  });

  test('answers HEAD with the same headers and no body', async () => {
    for (const url of ['/docs', '/docs/webhooks', '/docs/webhooks.md', '/llms.txt']) {
      const [head, full] = await Promise.all([app.app.inject({ method: 'HEAD', url }), get(url)]);
      expect([url, head.statusCode, head.body]).toEqual([url, 200, '']);
      for (const name of ['etag', 'content-type', 'content-length', 'vary', 'cache-control'])
        expect([name, head.headers[name]]).toEqual([name, full.headers[name]]);
    }
  });

  test('that guides link to is served as text', async () => {
    for (const path of ['receivers/receive.ts', 'monitoring/alerts.yml', 'hand-over.sh']) {
      const { statusCode, headers } = await get(`/docs/${path}`);
      expect([path, statusCode, headers['content-type']]).toEqual([path, 200, 'text/plain; charset=utf-8']);
    }
    const image = await get('/docs/images/approval.png');
    expect([image.statusCode, image.headers['content-type']]).toEqual([200, 'image/png']);
    expect(image.rawPayload.subarray(1, 4).toString()).toBe('PNG');
  });
});

describe('an address without a page', () => {
  const HOSTILE = [
    '/docs/no-such-page',
    '/docs/../package.json',
    '/docs/%2e%2e/package.json',
    '/docs/..%2f..%2fpackage.json',
    '/docs/....//package.json',
    '/docs/webhooks.md.md',
    '/docs/index.html',
    '/docs/webhooks.html',
    '/docs/404',
    '/docs/404.html',
    `/docs/${FINGERPRINT_FILE}`,
    '/docs/assets',
    '/docs/assets/',
    '/docs/constructor',
    '/docs/__proto__',
    '/docs/decisions/README.md',
    `/docs/${'a/'.repeat(400)}`,
    `/docs/${'%F0%9F%93%A7'.repeat(60)}`,
  ];

  test.each(HOSTILE)('%s answers a person with a page that offers the search', async (url) => {
    const { statusCode, body, headers } = await get(url, { accept: 'text/html' });
    expect(statusCode).toBe(404);
    if (!url.startsWith('/docs/') || /\.\.|%2e/.test(url)) return;
    expect(headers.vary).toBe('accept, accept-encoding');
    expect(body).toContain('action="/docs/search"');
  });

  test.each(HOSTILE)('%s answers a program with a problem', async (url) => {
    expectProblem(await get(url), 'not_found');
  });

  test('a malformed one is refused', async () => {
    for (const url of ['/docs/%', '/docs/%zz', '/docs/%ff%fe', '/docs/%00', '/docs/webhooks%00.md'])
      expect([url, (await get(url)).statusCode]).toEqual([url, 400]);
  });

  test('a huge query changes nothing', async () => {
    const { statusCode, body } = await get(`/docs/search?q=${'x'.repeat(12_000)}`);
    expect([statusCode, body]).toEqual([200, (await get('/docs/search')).body]);
  });
});

test('without a built site, the answer says how to build it', async () => {
  for (const url of ['/docs', '/docs/errors', '/llms.txt'])
    expect(expectProblem(await unbuilt.app.inject({ url }), 'unavailable').fix).toContain(
      'npm run build:docs',
    );
});

test('a site that was built again is shown without a restart, and its predecessor until then', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'site-'));
  const build = (text: string) => {
    writeFileSync(join(folder, 'index.html'), text);
    writeFileSync(join(folder, FINGERPRINT_FILE), text);
  };
  const read = createSiteReader(folder);
  try {
    build('first');
    const first = await read();
    expect([...first]).toEqual([['index.html', 'first']]);
    expect(await read()).toBe(first);
    rmSync(join(folder, FINGERPRINT_FILE));
    expect(await read()).toBe(first);
    build('second');
    await eventually(async () => expect([...(await read())]).toEqual([['index.html', 'second']]));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the page that problems link to explains every error code, with its status, title and what to do', async () => {
  const { body } = await get('/docs/errors.md');
  const anchors = anchorsOf((await get('/docs/errors')).body);
  const codes = [...body.matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  expect(codes).toEqual(Object.keys(ERROR_CODES));
  for (const [code, { status, title }] of Object.entries(ERROR_CODES)) {
    expect(anchors.has(code)).toBe(true);
    const section = body.split(`## ${code}\n`)[1]?.split('\n## ')[0] ?? '';
    expect([code, section]).toEqual([
      code,
      expect.stringMatching(`^\n\\*\\*${status} ${title}\\.\\*\\* \\S`),
    ]);
    expect([code, section]).toEqual([code, expect.stringMatching(/\n\nWhat to do: \S/)]);
  }
});

describe('the reference', () => {
  test('has every operation, with its method, path and permission, in both representations', async () => {
    const missing: string[] = [];
    const texts = new Map<string, string>();
    for (const page of pages.filter((each) => each.startsWith('/docs/reference/'))) {
      texts.set(page, (await get(page)).body);
      texts.set(`${page}.md`, (await get(`${page}.md`)).body);
    }
    const html = [...texts].filter(([page]) => !page.endsWith('.md')).map(([, text]) => text);
    const markdown = [...texts].filter(([page]) => page.endsWith('.md')).map(([, text]) => text);
    const operations = app.contract.operations.filter((operation) => !operation['x-alias-of']);
    expect(operations.length).toBeGreaterThan(200);
    for (const operation of operations) {
      const { operationId, method, path } = operation;
      const section = html.find((text) => text.includes(`<section class="operation" id="${operationId}"`));
      const part = section?.split(`id="${operationId}"`)[1]?.split('</section>')[0] ?? '';
      const permission = operation['x-permission'];
      if (!part.includes(`>${method}</span> <code>${path}</code>`)) missing.push(`${operationId}: address`);
      if (permission && !part.includes(`Permission <code>${permission}</code>`))
        missing.push(`${operationId}: permission`);
      if (!markdown.some((text) => text.includes(`\`${method} ${path}\`\n\nOperation \`${operationId}\``)))
        missing.push(`${operationId}: Markdown`);
    }
    expect(missing).toEqual([]);
  });

  test('shows parameters, fields, answers, errors and samples', async () => {
    const { body } = await get('/docs/reference/messages.md');
    const [, send = ''] = body.split('## Send a message\n');
    expect(send).toContain('| `inboxId` | string, required | Inbox id (inb_…).');
    expect(send).toMatch(/\| `to` \| array of Address, required \|/);
    expect(send).toContain('- `201` Message');
    expect(send).toMatch(/422 \(.*`message_rejected`/);
    expect(send).toContain(`curl "${PUBLIC_URL}/api/v1/inboxes/$INBOX_ID/messages"`);
  });
});

describe('the search', () => {
  /** As the script of the site does. */
  const search = (query: string): string[] => {
    const path = [...site.keys()].find((each) => /^assets\/search-index/.test(each)) ?? '';
    const { options, index } = JSON.parse(String(site.get(path)));
    const found = MiniSearch.loadJS(index, options).search(query, {
      boostDocument: (_id, _term, stored) => Number(stored?.weight),
    });
    return found.map(({ id }) => String(id));
  };

  test.each([
    ['verify code', '/docs/reading-mail#one-time-codes'],
    ['one-time code', '/docs/reading-mail#one-time-codes'],
    ['bounce', '/docs/recipes#13-understand-a-bounce'],
    ['bounced message', '/docs/reference/webhooks#webhooks.messageBounced'],
    ['suspended', '/docs/errors#organization_suspended'],
    ['idempotency_key_reused', '/docs/errors#idempotency_key_reused'],
    ['message_rejected', '/docs/errors#message_rejected'],
    ['messages.send', '/docs/reference/messages#messages.send'],
    ['POST /api/v1/inboxes', '/docs/reference/inboxes#inboxes.create'],
    ['create inbox', '/docs/reference/inboxes#inboxes.create'],
    ['webhook signature', '/docs/webhooks#'],
    ['dkim', '/docs/domains#'],
    ['attachments', '/docs/reference/attachments'],
    ['wait for reply', '/docs/streams#'],
    ['claude', '/docs/mcp'],
    ['rate limit', '/docs/api#rate-limits'],
    ['helm', '/docs/kubernetes'],
    ['recieve', ''],
    ['python', '/docs/python'],
    ['typescript', '/docs/typescript'],
  ])('%s finds %s among the first five', (query, expected) => {
    const [...found] = search(query).slice(0, 5);
    expect(found.length).toBeGreaterThan(0);
    expect(found).toContainEqual(expect.stringContaining(expected));
  });

  test.each(
    ['python attachments', 'python idempotency_key', 'verify webhook python', 'wait_for_decision'].flatMap(
      (query) => [
        [query, '/docs/python'],
        [
          query.replace('python', 'typescript').replace('wait_for_decision', 'waitForDecision'),
          '/docs/typescript',
        ],
      ],
    ),
  )('%s finds the page of the client (%s) among the first three', (query, expected) => {
    expect(search(query).slice(0, 3)).toContainEqual(expect.stringContaining(expected));
  });
});

test('the pages of the clients and of the command line are titled by what they are', async () => {
  const titles = { python: 'Python client', typescript: 'TypeScript client', cli: 'Command line' };
  const llms = (await get('/llms.txt')).body;
  for (const [slug, title] of Object.entries(titles)) {
    expect((await get(`/docs/${slug}`)).body).toContain(`<title>${title} `);
    expect((await get(`/docs/${slug}.md`)).body).toMatch(new RegExp(`^# ${title}\n`));
    expect(llms).toContain(`- [${title}](${PUBLIC_URL}/docs/${slug}.md)`);
  }
});
