import { beforeAll, describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { pino } from 'pino';
import { createBrowserSession } from '../../api/people/browser-session.ts';
import { installAccess } from '../../api/plugins/access.ts';
import { createCookies } from '../../api/plugins/cookies.ts';
import { createRefusedSends } from '../../api/plugins/refused-sends.ts';
import type { Authenticator, SessionAuthenticator } from '../../domain/identity/authentication.ts';
import { createRateLimiter, leaseFromMemory } from '../../platform/rate-limit/rate-limiter.ts';
import type { Operation } from '../support/contract.ts';
import { formCall } from '../support/form.ts';
import { BODIES } from '../support/operations.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

const inApi = () => app.contract.operations.filter(({ path }) => path.startsWith('/api/v1/'));
type Schema = Record<string, unknown>;

/** Yields every schema within a schema and its references, with its path. */
function* walk(schema: unknown, path: string): Generator<[string, Schema]> {
  if (typeof schema !== 'object' || schema === null) return;
  if ('$ref' in schema && typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').at(-1) ?? '';
    yield* walk(app.contract.description.components.schemas[name], `${path} ${name}`);
    return;
  }
  if (!Array.isArray(schema)) yield [path, schema as Schema];
  for (const [name, member] of Object.entries(schema)) {
    if (['enum', 'required', 'default', 'example', 'description'].includes(name)) continue;
    yield* walk(member, `${path}/${name}`);
  }
}

function schemasOf({ operationId, parameters = [], requestBody, responses }: Operation): [string, Schema][] {
  return [
    ...parameters.flatMap(({ name, schema }) => [...walk(schema, `${operationId} ${name}`)]),
    ...walk(requestBody?.content ?? {}, `${operationId} body`),
    ...walk(responses, operationId),
  ];
}

describe('the OpenAPI document', () => {
  test('has a unique SDK name for every operation', () => {
    const ids = app.contract.operations.map(({ operationId }) => operationId);
    expect(ids.length).toBeGreaterThan(35);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z]+\.[a-z][A-Za-z]+$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('has a summary, a success schema and the errors of its method for every operation', () => {
    for (const { operationId, method, summary, responses } of inApi()) {
      expect({ operationId, summary }).toEqual({ operationId, summary: expect.stringMatching(/\S/) });
      const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'));
      expect(successes.length).toBeGreaterThan(0);
      for (const [status, { content }] of successes)
        if (status !== '204')
          expect(
            ['application/json', 'text/plain', 'text/event-stream', 'application/samlmetadata+xml'].some(
              (type) => content?.[type]?.schema,
            ),
          ).toBe(true);
      const refusals = ['400', '401', '403', '404', '429', '500', '503'];
      if (method !== 'GET') refusals.push('409', '413', '415');
      if (method === 'POST') refusals.push('422');
      expect({ operationId, documented: Object.keys(responses) }).toEqual({
        operationId,
        documented: expect.arrayContaining(refusals),
      });
    }
  });

  test('bounds every string and every array', () => {
    const all = app.contract.operations.flatMap(schemasOf);
    expect(all.length).toBeGreaterThan(500);
    for (const [path, schema] of all) {
      const types = [schema.type].flat();
      if (types.includes('string') && !schema.enum && schema.const === undefined)
        expect({ path, maxLength: schema.maxLength }).toEqual({ path, maxLength: expect.any(Number) });
      if (types.includes('array'))
        expect({ path, maxItems: schema.maxItems }).toEqual({ path, maxItems: expect.any(Number) });
    }
  });

  test('allows no unknown properties in a request', () => {
    let objects = 0;
    for (const { operationId, requestBody } of inApi()) {
      for (const [path, schema] of walk(requestBody?.content ?? {}, operationId)) {
        if (schema.type !== 'object') continue;
        objects += 1;
        expect({ path, open: schema.additionalProperties ?? true }).not.toEqual({ path, open: true });
      }
    }
    expect(objects).toBeGreaterThan(10);
  });
});

describe('access', () => {
  test('the API does not start with a route that has no permission and is not public', async () => {
    const server = Fastify();
    const limiter = createRateLimiter({ lease: leaseFromMemory(), logger: pino({ level: 'silent' }) });
    const unused = () => Promise.reject(new Error('unused'));
    const keys: Authenticator = { accepts: () => true, authenticate: unused };
    const sessions: SessionAuthenticator = { ...keys, authenticatePerson: unused };
    const limit = { perSecond: 1, burst: 1 };
    installAccess(server, {
      keys,
      sessions,
      staff: { authenticate: unused },
      impersonations: keys,
      recordImpersonatedCall: unused,
      limiter,
      addressLimiter: limiter,
      refusedSends: createRefusedSends(),
      browserSession: createBrowserSession(createCookies({ publicUrl: 'http://localhost' })),
      limits: { credential: limit, organization: limit, address: limit },
    });
    server.get('/forgotten', async () => 'open');
    await expect(server.ready()).rejects.toThrow('/forgotten');
  });

  const request = (operation: Operation, id: string): [string, Call] => [
    operation.path.replace('/api/v1', '').replace(/\{\w+\}/g, id),
    {
      method: operation.method as NonNullable<Call['method']>,
      ...(operation.requestBody?.content['multipart/form-data']
        ? formCall([{ filename: 'a.txt', content: 'a' }])
        : {}),
      ...(operation.requestBody?.content['application/json']
        ? { body: BODIES[operation.operationId.replace('Alias', '')] ?? {} }
        : {}),
    },
  ];

  /** Routes for mail servers and providers, which sign their requests instead of sending an API key. */
  const SIGNED_OPERATIONS = [
    'billing.takeStripeEvent',
    'providers.takeRawMail',
    'providers.takeSesNotification',
  ];
  /** Operations that lead to a session, or prove an address with a mailed token. */
  const SIGN_IN_OPERATIONS = [
    'invitations.accept',
    'auth.signUp',
    'auth.verifyEmail',
    'auth.signIn',
    'auth.forgotPassword',
    'auth.resetPassword',
    'auth.confirmEmailChange',
    'auth.completeMfa',
    'auth.startPasskey',
    'auth.signInByPasskey',
    'oauth.listProviders',
    'oauth.start',
    'oauth.finish',
    'sso.start',
    'sso.finishOidc',
    'sso.postOidc',
    'sso.finishSaml',
    'sso.finishSamlOfConfiguration',
    'sso.confirm',
    'sso.getMetadata',
    'user.recover',
  ];
  const isPublic = ({ security }: Operation) => security?.length === 0;
  /** Operations of a signed-in person, which belong to no organization. */
  const isPersonal = ({ security }: Operation) =>
    security?.length === 1 && security[0] !== undefined && 'session' in security[0];

  test('only signing in and operations with signed requests are public', () => {
    expect(
      inApi()
        .filter(isPublic)
        .map(({ operationId }) => operationId),
    ).toEqual([...SIGN_IN_OPERATIONS, ...SIGNED_OPERATIONS]);
  });

  test('every operation requires a credential with its permission', async () => {
    const { token } = await createKey(app.worker, { ...organization, permissions: [] });
    for (const [index, operation] of inApi().entries()) {
      if (isPublic(operation)) continue;
      const expectedOfKey = isPersonal(operation) ? 'unauthenticated' : 'permission_denied';
      const [path, call] = request(operation, 'x');
      // Each request comes from a different address, because callers without a credential are rate-limited by address.
      const headers = { ...call.headers, 'x-forwarded-for': `192.0.2.${index}` };
      expectProblem(await app.call(path, { ...call, headers }), 'unauthenticated');
      const problem = expectProblem(await app.call(path, { ...call, headers, token }), expectedOfKey);
      if (!isPersonal(operation)) expect(problem.permission).toMatch(/^[a-z]+:[a-z]+$/);
    }
  });
});
