import { describe, expect, test } from '@jest/globals';
import type { Egress, EgressResult } from '../../platform/egress/egress.ts';
import { createGuardedFetch, FetchFailure } from '../../platform/egress/guarded-fetch.ts';

type Call = { method: string; url: string; request: Parameters<Egress['post']>[1] };

function respondWith(result: EgressResult) {
  const calls: Call[] = [];
  const egress: Egress = {
    post: async (url, request) => {
      calls.push({ method: 'POST', url, request });
      return result;
    },
    get: async (url, request) => {
      calls.push({ method: 'GET', url, request: { body: 'none', ...request } });
      return result;
    },
  };
  return { fetch: createGuardedFetch(egress), calls };
}
const response = (status: number, body = '', contentType?: string): EgressResult => ({
  kind: 'response',
  status,
  body,
  durationMs: 1,
  ...(contentType === undefined ? {} : { contentType }),
});
const URL_OF_CUSTOMER = 'https://idp.example.test/metadata';

describe('a request', () => {
  const LIMITS = { timeoutMs: 10_000, maxResponseBytes: 2_097_152, retainBytes: 2_097_152 };

  test('is a GET without headers by default, limited in time and size', async () => {
    const { fetch, calls } = respondWith(response(200));
    await fetch(URL_OF_CUSTOMER);
    expect(calls).toEqual([
      { method: 'GET', url: URL_OF_CUSTOMER, request: { body: 'none', headers: {}, ...LIMITS } },
    ]);
  });

  test.each([
    ['text', 'a=b', 'a=b'],
    ['parameters', new URLSearchParams({ a: 'b c' }), 'a=b+c'],
    ['nothing', undefined, ''],
    ['null', null, ''],
  ])('may post %s', async (_name, body, sent) => {
    const { fetch, calls } = respondWith(response(200));
    await fetch(URL_OF_CUSTOMER, { method: 'POST', headers: { accept: 'text/xml' }, body });
    expect(calls).toEqual([
      {
        method: 'POST',
        url: URL_OF_CUSTOMER,
        request: { headers: { accept: 'text/xml' }, body: sent, ...LIMITS },
      },
    ]);
  });
});

describe('the answer', () => {
  test('has status, type and text', async () => {
    const answer = await respondWith(response(404, 'gone', 'text/plain')).fetch(URL_OF_CUSTOMER);
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
      404,
      'text/plain',
      'gone',
    ]);
  });

  test('is not followed, if it redirects', async () => {
    const { fetch, calls } = respondWith(response(302));
    expect((await fetch(URL_OF_CUSTOMER)).status).toBe(302);
    expect(calls).toHaveLength(1);
  });

  test.each([204, 205, 304])('of status %d has no body, which `Response` would refuse', async (status) => {
    const answer = await respondWith(response(status, 'body')).fetch(URL_OF_CUSTOMER);
    expect([answer.status, await answer.text()]).toEqual([status, '']);
  });

  test.each([200, 599])('may have status %d', async (status) => {
    expect((await respondWith(response(status)).fetch(URL_OF_CUSTOMER)).status).toBe(status);
  });

  test.each([0, 101, 199, 600, 999])('of status %d is no response', async (status) => {
    await expect(respondWith(response(status)).fetch(URL_OF_CUSTOMER)).rejects.toMatchObject({
      code: 'invalid_response',
    });
  });
});

test.each<[string, EgressResult, object]>([
  [
    'that the guard refuses',
    { kind: 'blocked', reason: 'not public' },
    { code: 'blocked', message: 'not public' },
  ],
  ['that fails', { kind: 'failed', error: 'timeout', durationMs: 1 }, { code: 'timeout' }],
])('a request %s throws, and says why', async (_name, result, error) => {
  const fetched = respondWith(result).fetch(URL_OF_CUSTOMER);
  await expect(fetched).rejects.toThrow(FetchFailure);
  await expect(fetched).rejects.toMatchObject(error);
});
