import { beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import Fastify from 'fastify';
import { pino } from 'pino';
import { installAccess } from '../../api/plugins/access.ts';
import { createBrowserSession } from '../../api/plugins/browser-session.ts';
import { createCookies } from '../../api/plugins/cookies.ts';
import { REQUEST_EXAMPLES } from '../../api/plugins/openapi-examples.ts';
import { createRefusedSends } from '../../api/plugins/refused-sends.ts';
import type { Authenticator, SessionAuthenticator } from '../../domain/identity/authentication.ts';
import { createRateLimiter, leaseFromMemory } from '../../platform/rate-limit/rate-limiter.ts';
import { billingConfig } from '../support/billing-config.ts';
import type { Operation } from '../support/contract.ts';
import { formCall } from '../support/form.ts';
import { BODIES } from '../support/operations.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { ...billingConfig(), TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

const inApi = () => app.contract.operations.filter(({ path }) => path.startsWith('/api/v1/'));
type Schema = Record<string, unknown>;

/** Routes for mail servers and providers, which sign their requests instead of sending an API key. */
const SIGNED_OPERATIONS = [
  'billing.takeStripeEvent',
  'providers.takeRawMail',
  'providers.takeSesNotification',
];

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
    if (['enum', 'required', 'default', 'examples', 'description'].includes(name)) continue;
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
      if (types.includes('string') && !schema.enum && !schema['x-known-values'] && schema.const === undefined)
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

describe('clients generated from the OpenAPI document', () => {
  const schemas = () => app.contract.description.components.schemas as Record<string, Schema>;
  const bodiesOf = ({ operationId, requestBody, responses }: Operation) =>
    [
      ['request', requestBody] as const,
      ...Object.entries(responses).filter(([status]) => status.startsWith('2')),
    ].flatMap(([name, body]) => {
      const schema = body?.content?.['application/json']?.schema as Schema | undefined;
      return schema ? [{ body: `${operationId} ${name}`, schema }] : [];
    });
  /** What a provider sends, which is checked by its signature and not by a schema. */
  const SIGNED_BODIES = SIGNED_OPERATIONS.concat('billingUnversioned.takeStripeEvent');

  test('get a named type for every body', () => {
    const bodies = app.contract.operations.flatMap(bodiesOf);
    expect(bodies.length).toBeGreaterThan(250);
    const unnamed = bodies.filter(
      ({ body, schema }) =>
        typeof schema.$ref !== 'string' && !SIGNED_BODIES.some((name) => body === `${name} request`),
    );
    expect(unnamed).toEqual([]);
  });

  test('get one type for each name: a list and a union have the name of what they hold', () => {
    for (const name of [
      'MessageList',
      'MessageOrAgentMessageOrMinimalMessage',
      'MessageOrAgentMessageOrTimedOut',
      'InboxOrMinimalInbox',
      'SessionCreatedOrMfaRequired',
    ])
      expect(Object.keys(schemas())).toContain(name);
    for (const [name, { title }] of Object.entries(schemas()))
      expect({ name, title }).toEqual({ name, title: name });
  });

  test('get no second type with the name of a part: generators call the part `target` of `Suspension` SuspensionTarget', () => {
    const pascal = (name: string) =>
      name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const parts = Object.entries(schemas()).flatMap(([name, { properties = {} }]) =>
      Object.entries(properties as Record<string, Schema>)
        .filter(
          ([, { $ref, properties: members, enum: values, 'x-known-values': known }]) =>
            !$ref && (members || values || known),
        )
        .map(([property]) => `${name}${pascal(property)}`),
    );
    expect(parts.length).toBeGreaterThan(50);
    expect(parts.filter((part) => part in schemas())).toEqual([]);
  });

  test('get one definition of each error, and know where browsers get a page instead', () => {
    const typesOf = (operationId: string, status: string) => {
      const operation = app.contract.operations.find((each) => each.operationId === operationId);
      return Object.keys(operation?.responses[status]?.content ?? {}).sort();
    };
    for (const status of ['400', '429'])
      expect({
        page: typesOf('sso.finishOidc', status),
        program: typesOf('messages.send', status),
      }).toEqual({
        page: ['application/problem+json', 'text/html'],
        program: ['application/problem+json'],
      });
    const inline = Object.values(app.contract.description.paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ operationId, responses }) =>
        Object.entries(responses)
          .filter(([status, { content }]) => /^[45]/.test(status) && content && !content['text/html'])
          .map(([status]) => `${operationId} ${status}`),
      );
    expect(inline).toEqual([]);
  });

  test('get events as a union that their type decides', () => {
    const { oneOf, discriminator } = schemas().Event as {
      oneOf: Schema[];
      discriminator: { propertyName: string; mapping: Record<string, string> };
    };
    expect(discriminator.propertyName).toBe('type');
    expect(Object.values(discriminator.mapping)).toEqual(oneOf.map(({ $ref }) => $ref));
    for (const [type, reference] of Object.entries(discriminator.mapping)) {
      const event = schemas()[reference.split('/').at(-1) ?? ''] as { properties: { type: Schema } };
      expect(event.properties.type.const).toBe(type);
    }
  });

  test('need not send what has a default', () => {
    const { operations } = app.contract;
    const parameters = operations.flatMap(({ operationId, parameters: all = [] }) =>
      all.map(({ name, required, schema }) => ({
        at: `${operationId} ${name}`,
        required,
        schema: schema as Schema,
      })),
    );
    const withDefault = parameters.filter(({ schema }) => schema.default !== undefined);
    expect(withDefault.length).toBeGreaterThan(80);
    expect(withDefault.filter(({ required }) => required)).toEqual([]);
    for (const { operationId, requestBody } of operations)
      for (const [path, schema] of walk(requestBody?.content ?? {}, operationId)) {
        const properties = (schema.properties ?? {}) as Record<string, Schema>;
        const required = (schema.required ?? []) as string[];
        expect({
          path,
          required: required.filter((name) => properties[name]?.default !== undefined),
        }).toEqual({
          path,
          required: [],
        });
      }
  });

  test('get one type for an enumeration that occurs in several places', () => {
    const places = new Map<string, number>();
    const count = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const keyword of ['enum', 'x-known-values']) {
        const values = (value as Schema)[keyword];
        if (!Array.isArray(values) || values.length === 1) continue;
        const place = `${keyword} ${values.join()}`;
        places.set(place, (places.get(place) ?? 0) + 1);
      }
      for (const member of Object.values(value)) count(member);
    };
    const { paths, components } = app.contract.description;
    count(paths);
    count(components);
    expect(Object.keys(schemas())).toEqual(
      expect.arrayContaining(['EventType', 'MessageStatus', 'Permission']),
    );
    expect([...places].filter(([, occurrences]) => occurrences > 2)).toEqual([]);
  });

  test('get every parameter described', () => {
    const parameters = app.contract.operations.flatMap(({ operationId, parameters: all = [] }) =>
      all.map(({ name, description, schema }) => ({
        name: `${operationId} ${name}`,
        isDescribed: Boolean(description ?? (schema as Schema).description),
      })),
    );
    expect(parameters.length).toBeGreaterThan(500);
    expect(parameters.filter(({ isDescribed }) => !isDescribed)).toEqual([]);
  });

  test('get each group of operations described, and know second paths of an operation', () => {
    const { tags, webhooks } = app.contract.description;
    const used = app.contract.operations.flatMap((operation) => operation.tags ?? ['none']);
    expect(tags.map(({ name }) => name).sort()).toEqual([...new Set([...used, 'Webhooks'])].sort());
    for (const { post } of Object.values(webhooks))
      expect(post.operationId).toMatch(/^webhooks\.[a-z][A-Za-z]+$/);
    const aliases = app.contract.operations.filter((operation) => 'x-alias-of' in operation);
    expect(aliases.length).toBeGreaterThan(20);
    const ids = new Set(app.contract.operations.map(({ operationId }) => operationId));
    for (const { operationId, 'x-alias-of': original = '' } of app.contract.operations)
      if (original !== '')
        expect({ operationId, exists: ids.has(original) }).toEqual({ operationId, exists: true });
      else expect(operationId).not.toMatch(/alias|unversioned/i);
  });

  test('show a valid example of every request body', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    ajvFormats.default(ajv, ['date-time']);
    ajv.addSchema(app.contract.description, 'api');
    const MADE_BY_BROWSER = [
      ...['RegisterPasskey', 'SignInByPasskey', 'SsoPostOidcBody', 'SsoFinishSamlBody'],
      'SsoFinishSamlOfConfigurationBody',
    ];
    const bodies = new Set(
      app.contract.operations.flatMap(({ requestBody }) => {
        const schema = requestBody?.content['application/json']?.schema as Schema | undefined;
        return typeof schema?.$ref === 'string' ? [schema.$ref] : [];
      }),
    );
    expect(bodies.size).toBeGreaterThan(70);
    for (const reference of bodies) {
      const name = reference.split('/').at(-1) ?? '';
      if (MADE_BY_BROWSER.includes(name)) continue;
      const [example] = (schemas()[name]?.examples as unknown[] | undefined) ?? [];
      const validate = ajv.getSchema(`api${reference}`);
      expect({ name, example: typeof example, valid: validate?.(example), errors: validate?.errors }).toEqual(
        {
          name,
          example: 'object',
          valid: true,
          errors: null,
        },
      );
    }
    for (const name of Object.keys(REQUEST_EXAMPLES))
      expect([...bodies]).toContain(`#/components/schemas/${name}`);
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
      connections: keys,
      commandLine: keys,
      resourceMetadataUrl: 'http://localhost/.well-known/oauth-protected-resource/mcp',
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
    'sso.linkByFormer',
    'sso.join',
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

  test('only the operation that describes the credential needs a credential without a permission', () => {
    const open = app.contract.operations.filter((operation) => operation['x-credential'] !== undefined);
    expect(open.map(({ operationId, method }) => [operationId, method])).toEqual([['me.get', 'GET']]);
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
      if (operation['x-credential']) continue;
      const problem = expectProblem(await app.call(path, { ...call, headers, token }), expectedOfKey);
      if (!isPersonal(operation)) expect(problem.permission).toMatch(/^[a-z]+:[a-z]+$/);
    }
  });
});
