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
    expect(providers).toMatchObject([
      { id: 'google', issuer: 'https://accounts.google.com', emailTrust: 'google' },
      { id: 'github', kind: 'github', apiUrl: 'https://api.github.com' },
      { id: 'example', emailTrust: 'never' },
      { id: 'other', emailTrust: 'verified' },
    ]);
  });

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
