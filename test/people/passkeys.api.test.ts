import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { generate } from 'otplib';
import { pino } from 'pino';
import { generate as generateCertificate } from 'selfsigned';
import { warnOfOtherRpIds } from '../../api/people/warn-of-other-rp-ids.ts';
import { createPasskeyEnrollmentService } from '../../domain/people/passkeys/passkey-enrollment.service.ts';
import { relyingPartyOf } from '../../domain/people/passkeys/webauthn-ceremonies.ts';
import { purgeSignIns } from '../../domain/people/purge-sign-ins.ts';
import { createSigner, sha256 } from '../../platform/crypto.ts';
import { readAccountMail } from '../support/account-mail.ts';
import {
  createAccountQuickly,
  newNetwork,
  PASSWORD,
  type QuickAccount,
  signIn,
} from '../support/accounts.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import {
  createSoftwareAuthenticator,
  type Deviation,
  encodeCbor,
  type SoftwareAuthenticator,
} from '../support/software-authenticator.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let account: QuickAccount;
beforeEach(async () => {
  account = await createAccountQuickly(app);
});

const post = (path: string, body?: unknown, token?: string, headers: Record<string, string> = {}) =>
  app.call(path, {
    method: 'POST',
    headers: { ...newNetwork(), ...headers },
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
  });

async function registrationOptions(token = account.token) {
  const response = await post('/auth/mfa/webauthn/register-options', undefined, token);
  expect(response.statusCode).toBe(200);
  return response.json();
}

const register = (response: unknown, token = account.token, name?: string) =>
  post('/auth/mfa/webauthn/register', { response, ...(name === undefined ? {} : { name }) }, token);

async function enroll(token = account.token, authenticator = createSoftwareAuthenticator()) {
  const registered = await register(authenticator.register(await registrationOptions(token)), token);
  expect(registered.statusCode).toBe(201);
  return { authenticator, ...registered.json() };
}

async function signInOptions(mfaToken?: string) {
  const body = mfaToken === undefined ? {} : { mfa_token: mfaToken };
  const response = await post('/auth/mfa/webauthn/auth-options', body);
  expect(response.statusCode).toBe(200);
  return response.json();
}

const signInByPasskey = (response: unknown) => post('/auth/login/passkey', { response });

async function tryPasskey(authenticator: SoftwareAuthenticator, deviation: Deviation = {}) {
  return signInByPasskey(authenticator.authenticate(await signInOptions(), deviation));
}

const startChallenge = async (email = account.email): Promise<string> =>
  (await signIn(app, email)).json().mfa_token;

const complete = (mfa_token: string, response: unknown) =>
  post('/auth/mfa/challenge', { mfa_token, method: 'webauthn', response });

async function tryFactor(authenticator: SoftwareAuthenticator, deviation: Deviation = {}) {
  const mfaToken = await startChallenge();
  return complete(mfaToken, authenticator.authenticate(await signInOptions(mfaToken), deviation));
}

const auditActions = async () => {
  const rows = await query<{ action: string }>(
    app.worker,
    sql`select a.action from audit_entries a join members m on m.org_id = a.org_id where m.user_id = ${account.userId}
    order by a.id`,
  );
  return rows.map(({ action }) => action);
};
const templates = async () => (await readAccountMail(app, account.email)).map(({ template }) => template);

/** Deviations that make every ceremony fail. */
const FORGERIES: [string, Deviation][] = [
  ['another origin', { origin: 'https://phishing.example' }],
  ['another port of the host', { origin: 'http://localhost:3001' }],
  ['another RP ID', { rpId: 'phishing.example' }],
  ['a challenge nobody issued', { challenge: Buffer.alloc(32, 1).toString('base64url') }],
  ['an empty challenge', { challenge: '' }],
  ['a missing user verification', { userVerified: false }],
  ['a missing user presence', { userPresent: false, userVerified: false }],
  ['a frame of another site', { crossOrigin: true, topOrigin: 'https://phishing.example' }],
  ['a frame of another site that it does not name', { crossOrigin: true }],
  ['the type of the other ceremony', { type: 'payment.get' }],
];

describe('registering a passkey', () => {
  test.each(['ES256', 'EdDSA'] as const)(
    'makes it a second factor and a way to sign in (%s)',
    async (algorithm) => {
      const options = await registrationOptions();
      expect(options).toMatchObject({
        rp: { id: 'localhost' },
        user: { name: account.email },
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        attestation: 'none',
        excludeCredentials: [],
      });
      expect(options.user.id).not.toContain(account.userId);
      const authenticator = createSoftwareAuthenticator({ algorithm });
      const registered = await register(authenticator.register(options), account.token, 'My key');
      expect(registered.statusCode).toBe(201);
      expect(registered.json()).toMatchObject({ enrollment: { type: 'webauthn', name: 'My key' } });
      expect(new Set(registered.json().recovery_codes).size).toBe(10);
      expect(await templates()).toContain('mfa-added');
      expect(await auditActions()).toContain('user.mfa_added');
      const challenge = (await signIn(app, account.email)).json();
      expect(challenge.methods).toEqual(['webauthn', 'recovery_code']);
      expect((await tryPasskey(authenticator)).json()).toMatchObject({
        token: expect.stringMatching(/^sst_/),
        user: { id: account.userId, mfa_enabled: true },
      });
    },
  );

  test('excludes registered passkeys, and gives recovery codes only with the first factor', async () => {
    const { authenticator } = await enroll();
    const options = await registrationOptions();
    expect(options.excludeCredentials).toEqual([
      { id: authenticator.credentialId.toString('base64url'), type: 'public-key', transports: ['internal'] },
    ]);
    const second = await register(createSoftwareAuthenticator().register(options));
    expect(second.json()).toEqual({
      object: 'enrolled_factor',
      enrollment: expect.objectContaining({ name: 'Passkey' }),
    });
  });

  test('gives recovery codes once to two concurrent first factors', async () => {
    const [first, second] = await Promise.all([registrationOptions(), registrationOptions()]);
    const answers = await Promise.all(
      [first, second].map((options) => register(createSoftwareAuthenticator().register(options))),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([201, 201]);
    expect(answers.filter((answer) => answer.json().recovery_codes !== undefined)).toHaveLength(1);
  });

  test('makes a session full that could only enroll', async () => {
    await query(
      app.worker,
      sql`insert into organization_policies (org_id, require_mfa, updated_at)
      select org_id, true, now() from members where user_id = ${account.userId}`,
    );
    const { token } = (await signIn(app, account.email)).json();
    expectProblem(await app.call('/org', { token }), 'policy_violation');
    await enroll(token);
    expect((await app.call('/org', { token })).statusCode).toBe(200);
  });

  test('needs a recent sign-in', async () => {
    const options = await registrationOptions();
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where user_id = ${account.userId}`,
    );
    const again = await post('/auth/mfa/webauthn/register-options', undefined, account.token);
    expectProblem(again, 'session_expired');
    expectProblem(await register(createSoftwareAuthenticator().register(options)), 'session_expired');
  });

  test.each(FORGERIES)('is refused with %s', async (_case, deviation) => {
    const authenticator = createSoftwareAuthenticator();
    const response = authenticator.register(await registrationOptions(), deviation);
    expectProblem(await register(response), 'validation_error');
    expect((await signIn(app, account.email)).json().token).toMatch(/^sst_/);
  });

  test('is refused with the options of another person', async () => {
    const other = await createAccountQuickly(app);
    const response = createSoftwareAuthenticator().register(await registrationOptions(other.token));
    expectProblem(await register(response), 'validation_error');
  });

  test('is refused with the challenge of a sign-in', async () => {
    const { challenge } = await signInOptions();
    const response = createSoftwareAuthenticator().register({ ...(await registrationOptions()), challenge });
    expectProblem(await register(response), 'validation_error');
  });

  test('is refused with used and expired options, and after a first failure', async () => {
    const options = await registrationOptions();
    const authenticator = createSoftwareAuthenticator();
    expectProblem(
      await register(authenticator.register(options, { userVerified: false })),
      'validation_error',
    );
    expectProblem(await register(authenticator.register(options)), 'validation_error');
    const expired = await registrationOptions();
    await query(
      app.worker,
      sql`update webauthn_challenges set expires_at = date_trunc('milliseconds', now()) where user_id = ${account.userId}`,
    );
    expectProblem(await register(authenticator.register(expired)), 'validation_error');
  });

  test('is refused for a credential that is registered, whoever has it', async () => {
    const { authenticator } = await enroll();
    const { credentialId } = authenticator;
    const other = await createAccountQuickly(app);
    const takenOver = createSoftwareAuthenticator().register(await registrationOptions(other.token), {
      credentialId,
    });
    expectProblem(await register(takenOver, other.token), 'already_exists');
    expectProblem(await register(authenticator.register(await registrationOptions())), 'already_exists');
    expect((await tryPasskey(authenticator)).json().user.id).toBe(account.userId);
  });

  test('registers one credential of two concurrent attempts', async () => {
    const response = createSoftwareAuthenticator().register(await registrationOptions());
    const statuses = (await Promise.all([1, 2, 3].map(() => register(response)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([201, 400, 400]);
  });

  test('accepts self attestation, and does not read certificates, which name URLs to fetch', async () => {
    const own = createSoftwareAuthenticator();
    const selfAttested = own.register(await registrationOptions(), {
      attest: (signed) => ({
        format: 'packed',
        statement: new Map<string, unknown>([
          ['alg', -7],
          ['sig', own.sign(signed)],
        ]),
      }),
    });
    expect((await register(selfAttested)).statusCode).toBe(201);

    const subject = { C: 'US', O: 'X', OU: 'Authenticator Attestation', CN: 'Authenticator' };
    const certificate = await generateCertificate(
      Object.entries(subject).map(([shortName, value]) => ({ shortName, value })),
      { keyType: 'ec', extensions: [{ name: 'basicConstraints', cA: false }] },
    );
    const certified = createSoftwareAuthenticator().register(await registrationOptions(), {
      attest: (signed) => ({
        format: 'packed',
        statement: new Map<string, unknown>([
          ['alg', -7],
          ['sig', sign('sha256', signed, certificate.private)],
          ['x5c', [new X509Certificate(certificate.cert).raw]],
        ]),
      }),
    });
    expectProblem(await register(certified), 'validation_error');
  });

  test('needs room among ten factors', async () => {
    for (let count = 0; count < 9; count += 1)
      await query(
        app.worker,
        sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
        values (${`mfa_${count}_${account.userId}`}, ${account.userId}, 'totp', 'Phone', now(), now())`,
      );
    const spare = await registrationOptions();
    await enroll();
    expectProblem(await register(createSoftwareAuthenticator().register(spare)), 'conflict');
    const eleventh = await post('/auth/mfa/webauthn/register-options', undefined, account.token);
    expectProblem(eleventh, 'conflict');
  });
});

describe('signing in by passkey', () => {
  test('satisfies a policy that requires a second factor, and is a fresh login', async () => {
    const { authenticator } = await enroll();
    await query(
      app.worker,
      sql`insert into organization_policies (org_id, require_mfa, updated_at)
      select org_id, true, now() from members where user_id = ${account.userId}`,
    );
    const { token, enrollment_only } = (await tryPasskey(authenticator)).json();
    expect(enrollment_only).toBe(false);
    expect((await app.call('/org', { token })).statusCode).toBe(200);
    const sessions = (await app.call('/user/me/sessions', { token })).json().data;
    expect(sessions[0]).toMatchObject({ method: 'passkey', current: true });
    await registrationOptions(token);
  });

  test.each(FORGERIES)('is refused with %s', async (_case, deviation) => {
    const { authenticator } = await enroll();
    expectProblem(await tryPasskey(authenticator, deviation), 'invalid_credentials');
    expectProblem(await tryFactor(authenticator, deviation), 'invalid_credentials');
  });

  test('is refused with the signature of another key', async () => {
    const { authenticator } = await enroll();
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expectProblem(await tryPasskey(authenticator, { key: privateKey }), 'invalid_credentials');
  });

  test("is refused without a user handle, and with another person's", async () => {
    const { authenticator } = await enroll();
    const other = await createAccountQuickly(app);
    const foreign = (await registrationOptions(other.token)).user.id;
    for (const userHandle of [null, '', foreign, '!!'])
      expectProblem(await tryPasskey(authenticator, { userHandle }), 'invalid_credentials');
    expect((await tryPasskey(authenticator)).statusCode).toBe(200);
  });

  test('is refused for an unknown credential', async () => {
    const authenticator = createSoftwareAuthenticator();
    authenticator.register(await registrationOptions());
    expectProblem(await tryPasskey(authenticator), 'invalid_credentials');
  });

  test('uses a challenge up, also by a failure, and one of two concurrent uses succeeds', async () => {
    const { authenticator } = await enroll();
    const options = await signInOptions();
    const wrong = authenticator.authenticate(options, { userVerified: false });
    expectProblem(await signInByPasskey(wrong), 'invalid_credentials');
    expectProblem(await signInByPasskey(authenticator.authenticate(options)), 'invalid_credentials');
    const response = authenticator.authenticate(await signInOptions());
    const statuses = (await Promise.all([1, 2, 3].map(() => signInByPasskey(response)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([200, 401, 401]);
  });

  test('is refused with an expired challenge, and one for another purpose', async () => {
    const { authenticator } = await enroll();
    const expired = await signInOptions();
    await query(
      app.worker,
      sql`update webauthn_challenges set expires_at = date_trunc('milliseconds', now()) where purpose = 'sign_in'`,
    );
    expectProblem(await signInByPasskey(authenticator.authenticate(expired)), 'invalid_credentials');
    const ofEnrollment = await registrationOptions();
    expectProblem(await signInByPasskey(authenticator.authenticate(ofEnrollment)), 'invalid_credentials');
    const ofFactor = await signInOptions(await startChallenge());
    expectProblem(await signInByPasskey(authenticator.authenticate(ofFactor)), 'invalid_credentials');
  });

  test('refuses a counter that goes back or stays, records it and informs the person', async () => {
    const { authenticator } = await enroll();
    expect((await tryPasskey(authenticator, { counter: 50 })).statusCode).toBe(200);
    for (const counter of [49, 50, 0])
      expectProblem(await tryPasskey(authenticator, { counter }), 'invalid_credentials');
    expect(await auditActions()).toContain('user.passkey_refused');
    expect(await templates()).toContain('passkey-copied');
    expect((await tryPasskey(authenticator, { counter: 51 })).statusCode).toBe(200);
  });

  test('does not inform the person of a counter that nobody signed', async () => {
    const { authenticator } = await enroll();
    await tryPasskey(authenticator, { counter: 50 });
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expectProblem(await tryPasskey(authenticator, { counter: 1, key: privateKey }), 'invalid_credentials');
    expect(await templates()).not.toContain('passkey-copied');
  });

  test('accepts authenticators without a counter', async () => {
    const authenticator = createSoftwareAuthenticator({ hasCounter: false });
    await enroll(account.token, authenticator);
    for (let count = 0; count < 2; count += 1) expect((await tryPasskey(authenticator)).statusCode).toBe(200);
  });

  test.each([
    ['suspended', 'invalid_credentials', sql`status = 'suspended'`],
    ['deleted', 'account_deleted', sql`deleted_at = now()`],
  ] as const)('is refused to a %s person', async (_case, code, change) => {
    const { authenticator } = await enroll();
    const mfaToken = await startChallenge();
    const options = await signInOptions(mfaToken);
    await query(app.worker, sql`update users set ${change} where id = ${account.userId}`);
    expectProblem(await tryPasskey(authenticator), code);
    expectProblem(await complete(mfaToken, authenticator.authenticate(options)), code);
  });

  test('is refused for a passkey that was registered under another host name', async () => {
    const { authenticator } = await enroll();
    await query(
      app.worker,
      sql`update mfa_enrollments set rp_id = 'old.example' where user_id = ${account.userId}`,
    );
    expectProblem(await tryPasskey(authenticator), 'invalid_credentials');
  });

  test('ends with the removal of the passkey', async () => {
    const { authenticator, enrollment } = await enroll();
    const removed = await app.call(`/auth/mfa/${enrollment.id}`, { method: 'DELETE', token: account.token });
    expect(removed.statusCode).toBe(204);
    expectProblem(await tryPasskey(authenticator), 'invalid_credentials');
  });
});

describe('a passkey as the second factor', () => {
  test('completes the sign-in, also without a user handle', async () => {
    const { authenticator } = await enroll();
    const mfaToken = await startChallenge();
    const options = await signInOptions(mfaToken);
    expect(options).toMatchObject({
      userVerification: 'required',
      allowCredentials: [{ id: authenticator.credentialId.toString('base64url') }],
    });
    const completed = await complete(mfaToken, authenticator.authenticate(options, { userHandle: null }));
    expect(completed.json()).toMatchObject({ user: { id: account.userId } });
    const { token } = completed.json();
    expect((await app.call('/user/me/sessions', { token })).json().data[0]).toMatchObject({
      method: 'password',
      current: true,
    });
  });

  test("is not another person's passkey", async () => {
    await enroll();
    const other = await createAccountQuickly(app);
    const { authenticator: foreign } = await enroll(other.token);
    for (const deviation of [{}, { userHandle: null }])
      expectProblem(await tryFactor(foreign, deviation), 'invalid_credentials');
  });

  test('is not accepted with the challenge of another sign-in, or of a sign-in by passkey', async () => {
    const { authenticator } = await enroll();
    const other = await signInOptions(await startChallenge());
    expectProblem(
      await complete(await startChallenge(), authenticator.authenticate(other)),
      'invalid_credentials',
    );
    const alone = authenticator.authenticate(await signInOptions());
    expectProblem(await complete(await startChallenge(), alone), 'invalid_credentials');
  });

  test('counts failures with those of codes: the sign-in ends after five', async () => {
    const { authenticator } = await enroll();
    const mfaToken = await startChallenge();
    for (let count = 0; count < 5; count += 1) {
      const response = authenticator.authenticate(await signInOptions(mfaToken), { userVerified: false });
      expectProblem(await complete(mfaToken, response), 'invalid_credentials');
    }
    const late = await post('/auth/mfa/webauthn/auth-options', { mfa_token: mfaToken });
    expectProblem(late, 'invalid_credentials');
  });

  test('needs a passkey: an app does not count', async () => {
    const setup = (await post('/auth/mfa/totp/setup', {}, account.token)).json();
    const code = await generate({ secret: setup.secret });
    await post('/auth/mfa/totp/verify', { enrollment_id: setup.enrollment_id, code }, account.token);
    const mfa_token = await startChallenge();
    expectProblem(await post('/auth/mfa/webauthn/auth-options', { mfa_token }), 'conflict');
  });

  test('is bound to the browser that signed in, if that has a cookie', async () => {
    const { authenticator } = await enroll();
    const cookie = { cookie: 'browser=of-this-browser' };
    const credentials = { email: account.email, password: PASSWORD };
    const begin = async () => (await post('/auth/login', credentials, undefined, cookie)).json().mfa_token;
    const mfa_token = await begin();
    for (const headers of [{}, { cookie: 'browser=of-another' }] as Record<string, string>[]) {
      const stolen = await post('/auth/mfa/webauthn/auth-options', { mfa_token }, undefined, headers);
      expectProblem(stolen, 'invalid_credentials');
      const body = { mfa_token, method: 'recovery_code', code: 'x' };
      expectProblem(await post('/auth/mfa/challenge', body, undefined, headers), 'invalid_credentials');
    }
    const options = await post('/auth/mfa/webauthn/auth-options', { mfa_token }, undefined, cookie);
    const body = { mfa_token, method: 'webauthn', response: authenticator.authenticate(options.json()) };
    expectProblem(await post('/auth/mfa/challenge', body), 'invalid_credentials');
    const again = await post('/auth/mfa/webauthn/auth-options', { mfa_token }, undefined, cookie);
    const right = { ...body, response: authenticator.authenticate(again.json()) };
    expect((await post('/auth/mfa/challenge', right, undefined, cookie)).statusCode).toBe(200);
  });

  test.each([
    ['webauthn', { code: '123456' }],
    ['webauthn', {}],
    ['totp', {}],
  ])('%s needs its own proof, not %j', async (method, proof) => {
    const body = { mfa_token: 'mft_x', method, ...proof };
    expectProblem(await post('/auth/mfa/challenge', body), 'validation_error');
  });
});

describe('a malformed response', () => {
  const BROKEN = ['', 'AA', 'AAAA', '!!', 'a'.repeat(100_000), 7, null, [], {}];
  const CBOR = [
    encodeCbor(new Map()),
    encodeCbor('text'),
    encodeCbor(
      new Map<string, unknown>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', Buffer.alloc(37)],
      ]),
    ),
    encodeCbor(
      new Map<string, unknown>([
        ['fmt', 7],
        ['attStmt', 7],
        ['authData', 7],
      ]),
    ),
    Buffer.alloc(20_000, 0x81),
  ].map((bytes) => bytes.toString('base64url'));
  const CLIENT_DATA = ['null', '[]', '7', '{', '{"challenge":{}}', '{"challenge":["a"],"type":null}'].map(
    (text) => Buffer.from(text).toString('base64url'),
  );

  test.each(['id', 'rawId', 'type', 'response', 'clientDataJSON', 'attestationObject', 'transports'])(
    'is refused at registration: %s',
    async (field) => {
      const values = [...BROKEN, ...(field === 'attestationObject' ? CBOR : CLIENT_DATA)];
      for (const value of values) {
        const response = createSoftwareAuthenticator().register(await registrationOptions());
        const spoiled = field in response ? response : response.response;
        // Whatever its length, a list of transports is only a hint.
        if (field === 'transports' && Array.isArray(value)) continue;
        Object.assign(spoiled, { [field]: value });
        expectProblem(await register(response), 'validation_error');
      }
      const status = (await app.call('/auth/mfa/status', { token: account.token })).json();
      expect(status.enrollments).toEqual([]);
    },
  );

  test.each([
    'id',
    'rawId',
    'type',
    'response',
    'clientDataJSON',
    'authenticatorData',
    'signature',
    'userHandle',
  ])('is refused when signing in: %s', async (field) => {
    const { authenticator } = await enroll();
    for (const value of [...BROKEN, ...CLIENT_DATA, ...CBOR]) {
      const response = authenticator.authenticate(await signInOptions());
      const spoiled = field in response ? response : response.response;
      Object.assign(spoiled, { [field]: value });
      const refused = await signInByPasskey(response);
      expect([400, 401]).toContain(refused.statusCode);
    }
  });
});

describe('the start of the service', () => {
  test('warns of passkeys that were registered under another host name', async () => {
    await enroll();
    await query(
      app.worker,
      sql`update mfa_enrollments set rp_id = 'old.example' where user_id = ${account.userId}`,
    );
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
    const passkeys = createPasskeyEnrollmentService({
      database: app.database,
      notifications: { notify: async () => undefined },
      recoverySigner: createSigner(app.config.SIGNING_KEY, 'recovery-code'),
      relyingParty: relyingPartyOf(app.config.PUBLIC_URL),
    });
    await warnOfOtherRpIds(passkeys, { publicUrl: app.config.PUBLIC_URL, logger });
    expect(lines.join()).toContain('old.example');
    expect(lines.join()).not.toContain('"localhost"');
  });
});

describe('a service whose URL has an address', () => {
  const withAddress = useTestApp({ config: { PUBLIC_URL: 'http://127.0.0.1:3000' } });

  test('has no passkeys', async () => {
    const options = await withAddress.call('/auth/mfa/webauthn/auth-options', { method: 'POST', body: {} });
    expectProblem(options, 'feature_disabled');
    const enrollment = await withAddress.call('/auth/mfa/webauthn/register-options', {
      method: 'POST',
      token: account.token,
    });
    expectProblem(enrollment, 'feature_disabled');
  });
});

describe('the sweep of sign-ins', () => {
  test('deletes expired challenges and keeps valid ones', async () => {
    await enroll();
    const [expired, valid] = [await registrationOptions(), await registrationOptions()];
    const hashOf = ({ challenge }: { challenge: string }) => sha256(Buffer.from(challenge, 'base64url'));
    await query(
      app.worker,
      sql`update webauthn_challenges set expires_at = now() - interval '1 second'
      where challenge_hash = ${hashOf(expired)}`,
    );
    await startChallenge();
    await query(
      app.worker,
      sql`update mfa_challenges set expires_at = now() - interval '1 second' where user_id = ${account.userId}`,
    );
    await purgeSignIns(app.worker);
    const left = await query<{ hash: Buffer }>(
      app.worker,
      sql`select challenge_hash as hash from webauthn_challenges where user_id = ${account.userId}`,
    );
    expect(left.map(({ hash }) => hash.toString('hex'))).toEqual([hashOf(valid).toString('hex')]);
    const pending = sql`select from mfa_challenges where user_id = ${account.userId}`;
    expect(await query(app.worker, pending)).toEqual([]);
  });
});
