import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { purgeConnections } from '../../domain/connections/purge-connections.ts';
import { CONNECTION_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { newNetwork } from '../support/accounts.ts';
import {
  connect,
  createOauthClient,
  REDIRECT_URI,
  register,
  registerClient,
} from '../support/oauth-client.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

describe('metadata', () => {
  test('a host finds from /mcp how to connect', async () => {
    const { PUBLIC_URL: issuer } = app.config;
    const refused = await app.app.inject({ method: 'POST', url: '/mcp', payload: {} });
    expect(refused.statusCode).toBe(401);
    const [, url = ''] =
      /resource_metadata="([^"]+)"/.exec(String(refused.headers['www-authenticate'])) ?? [];
    expect(url).toBe(`${issuer}/.well-known/oauth-protected-resource/mcp`);
    for (const path of ['/.well-known/oauth-protected-resource', new URL(url).pathname]) {
      const resource = await app.app.inject(path);
      expect(resource.headers['access-control-allow-origin']).toBe('*');
      expect(resource.json()).toEqual({
        resource: `${issuer}/mcp`,
        authorization_servers: [issuer],
        scopes_supported: CONNECTION_PERMISSIONS,
        bearer_methods_supported: ['header'],
        resource_name: 'Agent Email Service',
      });
    }
    const server = (await app.app.inject('/.well-known/oauth-authorization-server')).json();
    expect(server).toMatchObject({
      issuer,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: true,
    });
    for (const name of ['authorization', 'token', 'registration', 'revocation']) {
      const endpoint = server[`${name}_endpoint`];
      const method = name === 'authorization' ? 'GET' : 'POST';
      const { statusCode } = await app.app.inject({ method, url: new URL(endpoint).pathname, payload: {} });
      expect([400, 401, 415]).toContain(statusCode);
    }
  });

  test('there is no OpenID Connect', async () => {
    for (const path of [
      '/.well-known/openid-configuration',
      '/jwks',
      '/me',
      '/oauth/userinfo',
      '/session/end',
    ])
      expect((await app.app.inject(path)).statusCode).toBe(404);
  });
});

describe('registration', () => {
  test('a client is public, whatever it asks for, and gets no secret', async () => {
    const registered = await register(app, {
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['client_credentials', 'implicit', 'password'],
      response_types: ['token'],
      scope: 'keys:manage',
      software_statement: 'x',
      jwks_uri: 'http://169.254.169.254/keys',
      logo_uri: 'http://127.0.0.1/logo.png',
      post_logout_redirect_uris: ['https://elsewhere.example'],
      client_id: 'chosen',
    });
    expect(registered.statusCode).toBe(201);
    expect(registered.headers['cache-control']).toBe('no-store');
    expect(registered.json()).toMatchObject({
      client_id: expect.stringMatching(/^app_/),
      client_name: 'Test host',
      redirect_uris: [REDIRECT_URI],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    });
    for (const name of ['client_secret', 'registration_access_token', 'jwks_uri', 'logo_uri'])
      expect(registered.json()).not.toHaveProperty(name);
  });

  test.each([
    'https://host.example/callback',
    'http://localhost/callback',
    'http://127.0.0.1:33418/callback',
    'http://[::1]:1/callback',
    'cursor://anysphere.cursor-mcp/oauth/callback',
    'vscode://host/callback',
  ])('%s may be an address of a client', async (uri) => {
    expect((await register(app, { redirect_uris: [uri] })).statusCode).toBe(201);
  });

  test.each([
    [['http://host.example/callback']],
    [['http://127.0.0.1.attacker.example/callback']],
    [['http://localhost@attacker.example/callback']],
    [['https://user:password@host.example/callback']],
    [['https://host.example/callback#fragment']],
    [['https://localhost/callback']],
    [['javascript:alert(1)']],
    [['data:text/html,x']],
    [['unknown-scheme://callback']],
    [[`https://host.example/${'a'.repeat(1_000)}`]],
    [['not a URL']],
    [[7]],
    [[]],
    ['https://host.example/callback'],
    [Array.from({ length: 21 }, (_, index) => `https://host.example/${index}`)],
    [undefined],
  ])('%j is refused', async (uris) => {
    const refused = await register(app, { redirect_uris: uris });
    expect(refused.statusCode).toBe(400);
    expect(refused.json().error).toBe('invalid_redirect_uri');
  });

  test.each([
    '{"redirect_uris":["https://host.example/\\u0000"]}',
    '[]',
    '"text"',
    'null',
    '{',
    `{"client_name":"${'a'.repeat(20_000)}"}`,
  ])('the body %s is refused', async (payload) => {
    const refused = await app.app.inject({
      method: 'POST',
      url: '/oauth/register',
      headers: { 'content-type': 'application/json', ...newNetwork() },
      payload,
    });
    expect(refused.statusCode).toBeGreaterThanOrEqual(400);
    expect(refused.statusCode).toBeLessThan(500);
  });

  test('a network registers 20 clients an hour, also at the same time, and others go on', async () => {
    const network = newNetwork();
    const answers = await Promise.all(Array.from({ length: 40 }, () => register(app, {}, network)));
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(20);
    const refused = answers.find(({ statusCode }) => statusCode === 429);
    expect(refused?.json().error).toBe('temporarily_unavailable');
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(3_000);
    expect((await register(app)).statusCode).toBe(201);
  });

  test('of 10,000 registrations none is left after a day without a grant', async () => {
    await query(
      app.worker,
      sql`insert into connection_clients (id_hash, metadata, network_hash, created_at)
        select sha256(convert_to('flood ' || n, 'UTF8')), '{}', sha256(convert_to((n % 500)::text, 'UTF8')),
          now() - interval '25 hours'
        from generate_series(1, 10000) n`,
    );
    const fresh = await registerClient(app);
    while ((await purgeConnections(app.worker)) > 0);
    const left = await query<{ count: string }>(
      app.worker,
      sql`select count(*) from connection_clients where created_at < now() - interval '24 hours'`,
    );
    expect(Number(left[0]?.count)).toBe(0);
    expect((await createPageClient(app).open(fresh.authorizePath())).statusCode).toBe(200);
  });

  test('a client with a grant stays for 90 days after its last token; then its connection ends', async () => {
    const { client, connectionId, tokens } = await connect(app);
    const age = (interval: string) =>
      query(
        app.worker,
        sql`update connection_clients set created_at = now() - ${interval}::interval,
          last_used_at = now() - ${interval}::interval
          where id_hash = sha256(convert_to(${client.clientId}, 'UTF8'))`,
      );
    await age('89 days');
    await purgeConnections(app.worker);
    expect((await client.refresh(tokens.refresh_token)).statusCode).toBe(200);
    await age('91 days');
    await query(
      app.worker,
      sql`update connections set created_at = now() - interval '91 days' where id = ${connectionId}`,
    );
    await purgeConnections(app.worker);
    const [connection] = await query<{ end_reason: string }>(
      app.worker,
      sql`select end_reason from connections where id = ${connectionId}`,
    );
    expect(connection?.end_reason).toBe('unused');
    const refused = await createPageClient(app).open(client.authorizePath());
    expect(refused.statusCode).toBe(400);
  });

  test('the sweep deletes what no request can use any more, and nothing else', async () => {
    const [live, expired, ended] = [await connect(app), await connect(app), await connect(app)];
    await query(
      app.worker,
      sql`update connection_tokens set expires_at = now() - interval '1 second'
        where connection_id = ${expired.connectionId} and kind <> 'refresh_token'`,
    );
    await query(
      app.worker,
      sql`update connections set ended_at = now() - interval '91 days' where id = ${ended.connectionId}`,
    );
    await purgeConnections(app.worker);
    await purgeConnections(app.worker);
    const kinds = async (id: string) =>
      (
        await query<{ kind: string }>(
          app.worker,
          sql`select kind from connection_tokens where connection_id = ${id} order by kind`,
        )
      ).map(({ kind }) => kind);
    expect(await kinds(live.connectionId)).toContain('access_token');
    expect(await kinds(expired.connectionId)).toEqual(['refresh_token']);
    expect(await kinds(ended.connectionId)).toEqual([]);
    const rows = await query(app.worker, sql`select 1 from connections where id = ${ended.connectionId}`);
    expect(rows).toEqual([]);
    expect((await live.client.refresh(live.tokens.refresh_token)).statusCode).toBe(200);
  });

  test('a client cannot fill the table with tokens', async () => {
    const { client, connectionId, tokens } = await connect(app);
    await query(
      app.worker,
      sql`insert into connection_tokens (token_hash, kind, connection_id, payload, expires_at, created_at)
        select sha256(convert_to(${connectionId} || n, 'UTF8')), 'access_token', ${connectionId}, '{}',
          now() + interval '1 hour', now() - interval '1 minute'
        from generate_series(1, 500) n`,
    );
    expect((await client.refresh(tokens.refresh_token)).statusCode).toBe(200);
    const [row] = await query<{ count: string }>(
      app.worker,
      sql`select count(*) from connection_tokens where connection_id = ${connectionId} and kind = 'access_token'`,
    );
    expect(Number(row?.count)).toBe(100);
  });

  test('a token request of an unknown client is refused', async () => {
    const stranger = createOauthClient(app, 'app_unknown');
    expect((await stranger.exchange('x')).json().error).toBe('invalid_client');
    expect((await stranger.refresh('x')).json().error).toBe('invalid_client');
  });

  test.each(['client_credentials', 'password', 'implicit', 'urn:ietf:params:oauth:grant-type:device_code'])(
    'the grant type %s does not exist',
    async (grantType) => {
      const client = await registerClient(app);
      const refused = await client.post('/oauth/token', { grant_type: grantType });
      expect(refused.json().error).toBe('unsupported_grant_type');
    },
  );
});
