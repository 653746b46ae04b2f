import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { AGENT_OPERATIONS } from '../../api/plugins/agent-document.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
const DOCUMENTS = ['/openapi.json', '/openapi/agent.json'];
let calls = 0;
/** Each call comes from another address, because callers without a credential are rate-limited by address. */
const get = (url: string, headers: Record<string, string> = {}) =>
  app.app.inject({ url, headers: { ...headers, 'x-forwarded-for': `192.0.2.${calls++ % 250}` } });

interface Document {
  paths: Record<string, Record<string, { operationId: string; parameters?: object[]; responses: object }>>;
  components: Record<string, Record<string, object>>;
}
const agentDocument = async () => (await get('/openapi/agent.json')).json<Document>();
const operationsOf = ({ paths }: Document) => Object.values(paths).flatMap((item) => Object.values(item));

describe.each(DOCUMENTS)('%s', (path) => {
  test('has an entity tag, and is not sent again to a client that has it', async () => {
    const first = await get(path);
    const { etag = '' } = first.headers as { etag?: string };
    expect(first.headers).toMatchObject({ vary: 'accept-encoding', 'cache-control': 'public, no-cache' });
    expect(etag).toMatch(/^W\/"[\w-]{43}"$/);
    for (const tag of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      const repeated = await get(path, { 'if-none-match': tag });
      expect({ tag, status: repeated.statusCode, body: repeated.body }).toEqual({
        tag,
        status: 304,
        body: '',
      });
      expect(repeated.headers.etag).toBe(etag);
    }
    for (const tag of ['"other"', 'W/"other"', ''])
      expect((await get(path, { 'if-none-match': tag })).statusCode).toBe(200);
  });

  test.each([
    ['br', 'br'],
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0.1, gzip', 'gzip'],
    ['GZIP;q=0.5, br;q=0', 'gzip'],
    ['*', 'br'],
    ['deflate', undefined],
    ['br;q=0, gzip;q=0', undefined],
    ['', undefined],
    [';;,,=q', undefined],
  ])('for Accept-Encoding %j is sent as %s', async (accepted, encoding) => {
    const { headers, rawPayload } = await get(path, { 'accept-encoding': accepted });
    expect(headers['content-encoding']).toBe(encoding);
    const plain = { br: brotliDecompressSync, gzip: gunzipSync, none: (bytes: Buffer) => bytes };
    const decode = plain[(encoding ?? 'none') as keyof typeof plain];
    expect(JSON.parse(decode(rawPayload).toString())).toEqual((await get(path)).json());
    if (encoding) expect(rawPayload.length).toBeLessThan((await get(path)).rawPayload.length / 4);
  });
});

describe('the document for agents', () => {
  test('has at most 35 operations, in at most 100 KB', async () => {
    const operations = operationsOf(await agentDocument());
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual([...AGENT_OPERATIONS].sort());
    expect(operations.length).toBeLessThanOrEqual(35);
    expect((await get('/openapi/agent.json')).rawPayload.length).toBeLessThanOrEqual(100_000);
  });

  test('has one answer for errors, and no header that selects an organization or environment', async () => {
    const document = await agentDocument();
    for (const { operationId, responses } of operationsOf(document))
      expect({ operationId, errors: Object.keys(responses).filter((name) => !/^[23]/.test(name)) }).toEqual({
        operationId,
        errors: ['default'],
      });
    const json = JSON.stringify(document);
    expect(json).not.toMatch(/"(x-org-id|x-env-id|OrganizationId|EnvironmentId)"/);
    expect(Object.keys(document.components.responses ?? {})).toEqual(['Problem']);
  });

  test('refers to nothing that it leaves out, and has nothing that it does not refer to', async () => {
    const document = await agentDocument();
    const referred = new Set(
      [...JSON.stringify(document).matchAll(/"#\/components\/(\w+\/[^"]+)"/g)].map(([, name]) => name),
    );
    const present = Object.entries(document.components)
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, components]) => Object.keys(components).map((name) => `${kind}/${name}`));
    expect([...referred].sort()).toEqual(present.sort());
  });

  test('describes the same requests as the complete one', async () => {
    const { paths, components } = await agentDocument();
    const complete = (await get('/openapi.json')).json<Document>();
    for (const [path, item] of Object.entries(paths))
      for (const [method, { operationId, ...operation }] of Object.entries(item)) {
        const original = complete.paths[path]?.[method] as Record<string, unknown> | undefined;
        expect({ operationId, body: (operation as Record<string, unknown>).requestBody }).toEqual({
          operationId,
          body: original?.requestBody,
        });
      }
    for (const name of ['SendMessage', 'DraftFields', 'CreateInbox', 'Address'])
      expect(components.schemas?.[name]).toEqual(complete.components.schemas?.[name]);
  });
});
