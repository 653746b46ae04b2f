import cookie from '@fastify/cookie';
import { describe, expect, it } from '@jest/globals';
import Fastify from 'fastify';
import { localPath } from '../../api/people/local-path.ts';
import { createCookies } from '../../api/plugins/cookies.ts';

async function headersOf(publicUrl: string): Promise<string[]> {
  const cookies = createCookies({ publicUrl });
  const app = Fastify();
  await app.register(cookie);
  app.get('/', async (_request, reply) => {
    cookies.set(reply, 'session', 'value', { maxAgeSeconds: 60 });
    cookies.set(reply, 'sso', 'value', { maxAgeSeconds: 60, sameSite: 'none' });
    return reply.send();
  });
  const response = await app.inject({ url: '/' });
  await app.close();
  return [response.headers['set-cookie'] ?? []].flat();
}

describe('cookies', () => {
  it('cannot be set by another host or read by a script behind TLS', async () => {
    expect(await headersOf('https://mail.example')).toEqual([
      '__Host-session=value; Max-Age=60; Path=/; HttpOnly; Secure; SameSite=Lax',
      '__Host-sso=value; Max-Age=60; Path=/; HttpOnly; Secure; SameSite=None',
    ]);
  });

  it('work without TLS on a developer’s machine', async () => {
    expect(await headersOf('http://localhost:3000')).toEqual([
      'session=value; Max-Age=60; Path=/; HttpOnly; SameSite=Lax',
      'sso=value; Max-Age=60; Path=/; HttpOnly; Secure; SameSite=None',
    ]);
  });
});

describe('a path to continue at', () => {
  it.each(['/account', '/organization?org=org_1', '/approvals/drf_1'])('accepts %s', (path) => {
    expect(localPath(path)).toBe(path);
  });

  it.each([
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/..//evil.example',
    '/./\\evil.example',
    'javascript:alert(1)',
    '/api/v1/auth/logout',
    '/%0d%0aLocation: x',
    `/${'a'.repeat(600)}`,
    '',
    ['/account'],
    undefined,
  ])('replaces %j by the account page', (path) => {
    expect(localPath(path)).toBe('/account');
  });
});
