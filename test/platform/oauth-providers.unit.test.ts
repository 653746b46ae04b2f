import { describe, expect, test } from '@jest/globals';
import type { Config } from '../../platform/config.ts';
import { readOauthProviders } from '../../platform/oauth-providers.ts';

const read = (settings: Partial<Config>) =>
  readOauthProviders({
    NODE_ENV: 'production',
    OAUTH_GITHUB_URL: 'https://github.com',
    OAUTH_GITHUB_API_URL: 'https://api.github.com/',
    ...settings,
  } as Config);
const oidc = {
  id: 'example',
  name: 'Example',
  issuer: 'https://id.example',
  client_id: 'client',
  client_secret: 'a-secret',
};
const readList = (list: unknown, settings: Partial<Config> = {}) =>
  read({ OAUTH_OIDC_PROVIDERS: typeof list === 'string' ? list : JSON.stringify(list), ...settings });

describe('the OAuth providers of an installation', () => {
  test('are none by default', () => {
    expect(read({})).toEqual([]);
  });

  test('are Google, GitHub and any OpenID Connect providers', () => {
    const providers = readList([oidc, { ...oidc, id: 'other', verifies_email: true }], {
      OAUTH_GOOGLE_CLIENT_ID: 'google',
      OAUTH_GOOGLE_CLIENT_SECRET: 'a-secret',
      OAUTH_GITHUB_CLIENT_ID: 'hub',
      OAUTH_GITHUB_CLIENT_SECRET: 'a-secret',
    });
    const [clientSecret, issuer] = ['a-secret', 'https://id.example'];
    const listed = { kind: 'oidc', name: 'Example', issuer, clientId: 'client', clientSecret };
    expect(providers).toEqual([
      {
        ...{ kind: 'oidc', id: 'google', name: 'Google', issuer: 'https://accounts.google.com' },
        ...{ emailTrust: 'google', clientId: 'google', clientSecret },
      },
      {
        ...{ kind: 'github', id: 'github', name: 'GitHub', clientId: 'hub', clientSecret },
        ...{ url: 'https://github.com', apiUrl: 'https://api.github.com' },
      },
      { ...listed, id: 'example', emailTrust: 'never' },
      { ...listed, id: 'other', emailTrust: 'verified' },
    ]);
  });

  test('may lack TLS outside of production', () => {
    const issuer = 'http://id.example';
    expect(readList([{ ...oidc, issuer }], { NODE_ENV: 'dev' })).toMatchObject([{ issuer }]);
  });

  test('may be twenty in the list, with names of 50 characters', () => {
    const list = Array.from({ length: 20 }, (_, at) => ({ ...oidc, id: `id-${at}`, name: 'x'.repeat(50) }));
    expect(readList(list)).toHaveLength(20);
    expect(() => readList([...list, oidc])).toThrow(/OAUTH_OIDC_PROVIDERS/);
  });

  test.each([
    ['no name', { name: '' }, '/0/name'],
    ['a name of 51 characters', { name: 'x'.repeat(51) }, '/0/name'],
    ['an issuer that is no web address', { issuer: 'ftp://id.example' }, '/0/issuer'],
    ['no client ID', { client_id: '' }, '/0/client_id'],
    ['no secret', { client_secret: '' }, '/0/client_secret'],
  ])('in the list stop the start with %s, and name the field', (_case, field, path) => {
    expect(() => readList([{ ...oidc, ...field }])).toThrow(`OAUTH_OIDC_PROVIDERS${path}`);
  });

  test('stop the start with a list that is no JSON, and say so', () => {
    expect(() => readList('[')).toThrow('OAUTH_OIDC_PROVIDERS is not JSON');
  });

  test.each(['OAUTH_GITHUB_URL', 'OAUTH_GITHUB_API_URL'])(
    'stop the start if %s lacks TLS, and name it',
    (name) => {
      const github = { OAUTH_GITHUB_CLIENT_ID: 'hub', OAUTH_GITHUB_CLIENT_SECRET: 'a-secret' };
      expect(() => read({ ...github, [name]: 'http://github.example' })).toThrow(
        `${name}: http://github.example`,
      );
    },
  );

  test.each<[string, Partial<Config>]>([
    ['a client ID without its secret', { OAUTH_GOOGLE_CLIENT_ID: 'google' }],
    ['a secret without its client ID', { OAUTH_GITHUB_CLIENT_SECRET: 'a-secret' }],
    ['text that is not JSON', { OAUTH_OIDC_PROVIDERS: '{a-secret' }],
    ['no list', { OAUTH_OIDC_PROVIDERS: '{"client_secret":"a-secret"}' }],
    ['a missing field', { OAUTH_OIDC_PROVIDERS: JSON.stringify([{ ...oidc, issuer: undefined }]) }],
    ['an unknown field', { OAUTH_OIDC_PROVIDERS: JSON.stringify([{ ...oidc, verified: true }]) }],
    ['an id that is no path segment', { OAUTH_OIDC_PROVIDERS: JSON.stringify([{ ...oidc, id: 'a/b' }]) }],
    ['an id twice', { OAUTH_OIDC_PROVIDERS: JSON.stringify([oidc, oidc]) }],
    [
      'an issuer without TLS',
      { OAUTH_OIDC_PROVIDERS: JSON.stringify([{ ...oidc, issuer: 'http://id.example' }]) },
    ],
    [
      'a GitHub server without TLS',
      {
        OAUTH_GITHUB_CLIENT_ID: 'hub',
        OAUTH_GITHUB_CLIENT_SECRET: 'a-secret',
        OAUTH_GITHUB_URL: 'http://github.example',
      },
    ],
  ])('stop the start with %s, without naming a secret', (_case, settings) => {
    expect(() => read(settings)).toThrow(/OAUTH_/);
    try {
      read(settings);
    } catch (error) {
      expect(String(error)).not.toContain('a-secret');
    }
  });
});
