import { inflateRawSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { Constants, IdentityProvider, SamlLib, ServiceProvider, setSchemaValidator } from 'samlify';
import { purgeSsoAssertions } from '../../domain/sso/sso-purges.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import {
  assertionXml,
  createSamlKey,
  encodeSaml,
  idpMetadata,
  responseXml,
  SAML_ISSUER,
  type SamlAnswer,
  type SamlKey,
  samlAnswer,
  signXml,
} from '../support/saml-idp.ts';
import {
  activateUntested,
  Browser,
  createConfiguration,
  createSsoOrganization,
  JSON_ONLY,
  readAttempts,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
let key: SamlKey;
let otherKey: SamlKey;
beforeAll(async () => {
  [key, otherKey] = await Promise.all([createSamlKey(), createSamlKey()]);
});

let organization: SsoOrganization;
let configurationId: string;
let acsUrl: string;
let entityId: string;

async function configure(change: object = {}): Promise<void> {
  organization = await createSsoOrganization(app);
  const created = await app.call('/org/sso', {
    method: 'POST',
    token: organization.token,
    body: {
      type: 'saml',
      name: 'Test provider',
      idp_metadata_xml: idpMetadata([key]),
      domains: [organization.domain],
      default_role: 'viewer',
      ...change,
    },
  });
  if (created.statusCode !== 201) throw new Error(created.body);
  ({ id: configurationId, acs_url: acsUrl, sp_entity_id: entityId } = created.json());
  await activateUntested(app, organization.token, configurationId);
}
beforeEach(() => configure());

const address = (name = 'grace') => `${name}@${organization.domain}`;

/** The request that the browser brings to the identity provider. */
async function begin(browser = new Browser(app), query = '') {
  const url = await browser.start(organization.organizationId, query);
  const request = inflateRawSync(Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64')).toString();
  const [, requestId = ''] = / ID="([^"]+)"/.exec(request) ?? [];
  const relayState = url.searchParams.get('RelayState') ?? '';
  return { browser, url, request, requestId, relayState };
}
type Begun = Awaited<ReturnType<typeof begin>>;

const answerTo = ({ requestId }: Pick<Begun, 'requestId'>, change: Partial<SamlAnswer> = {}) =>
  samlAnswer({ acsUrl, audience: entityId, email: address(), inResponseTo: requestId, ...change });

const signedAssertion = (answer: SamlAnswer, by = key) => signXml(responseXml(answer), 'Assertion', by);
const signedResponse = (answer: SamlAnswer, by = key) => signXml(responseXml(answer), 'Response', by);

function post(
  browser: Browser,
  xml: string | Buffer,
  relayState?: string,
  { url = acsUrl, headers = JSON_ONLY as Record<string, string> } = {},
) {
  const form = new URLSearchParams({
    SAMLResponse: encodeSaml(xml),
    ...(relayState === undefined ? {} : { RelayState: relayState }),
  });
  return browser.call(new URL(url).pathname, {
    prefix: '',
    method: 'POST',
    raw: form.toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });
}

async function countIdentities(): Promise<number> {
  const rows = await query(
    app.worker,
    sql`select from sso_identities where org_id = ${organization.organizationId}`,
  );
  return rows.length;
}

describe('with a real SAML identity provider', () => {
  test('a person signs in, twice, by the metadata of both sides', async () => {
    setSchemaValidator({ validate: async () => 'ok' });
    const metadata = await app.call(`/auth/sso/saml/metadata/${organization.organizationId}`);
    expect(metadata.statusCode).toBe(200);
    const idp = IdentityProvider({
      entityID: SAML_ISSUER,
      privateKey: key.privateKey,
      signingCert: key.certificate,
      isAssertionEncrypted: false,
      requestSignatureAlgorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
      nameIDFormat: [Constants.namespace.format.persistent],
      singleSignOnService: [
        { Binding: Constants.namespace.binding.redirect, Location: 'https://idp.example.test/sso' },
      ],
      loginResponseTemplate: {
        context: SamlLib.defaultLoginResponseTemplate.context,
        attributes: [
          {
            name: 'email',
            valueTag: 'email',
            nameFormat: 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic',
            valueXsiType: 'xs:string',
          },
        ],
      },
    });
    const sp = ServiceProvider({ metadata: metadata.body });
    const draft = await createConfiguration(app, organization.token, {
      type: 'saml',
      name: 'Real',
      idp_metadata_xml: idp.getMetadata(),
      domains: [organization.domain],
    });
    expect(draft).toMatch(/^sso_/);
    for (const _ of [1, 2]) {
      const browser = new Browser(app);
      const { url, relayState } = await begin(browser);
      const query = Object.fromEntries(url.searchParams);
      const parsed = await idp.parseLoginRequest(sp, 'redirect', { query });
      expect(parsed.extract.request?.assertionConsumerServiceUrl).toBe(acsUrl);
      const { id: inResponseTo } = parsed.extract.request as { id: string };
      const { context } = (await idp.createLoginResponse(
        sp,
        parsed as never,
        'post',
        { email: address() } as never,
        {
          relayState,
          customTagReplacement: (template: string) => {
            const id = `_${Math.random().toString(16).slice(2)}`;
            const now = Date.now();
            const later = new Date(now + 300_000).toISOString();
            const values = {
              ID: id,
              AssertionID: `${id}a`,
              Destination: acsUrl,
              Audience: entityId,
              SubjectRecipient: acsUrl,
              NameIDFormat: Constants.namespace.format.persistent,
              NameID: 'samlify-person',
              Issuer: SAML_ISSUER,
              IssueInstant: new Date(now).toISOString(),
              ConditionsNotBefore: new Date(now - 1_000).toISOString(),
              ConditionsNotOnOrAfter: later,
              SubjectConfirmationDataNotOnOrAfter: later,
              AssertionConsumerServiceURL: acsUrl,
              EntityID: entityId,
              InResponseTo: inResponseTo,
              StatusCode: Constants.StatusCode.Success,
              attrEmail: address(),
              AuthnStatement: `<saml:AuthnStatement AuthnInstant="${new Date(now).toISOString()}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`,
            };
            const filled = SamlLib.replaceTagsByValue(template, values);
            // The library escapes values, also those that are elements.
            return {
              id,
              context: filled.replace(/&lt;saml:AuthnStatement.*?AuthnStatement&gt;/, values.AuthnStatement),
            };
          },
        } as never,
      )) as { context: string };
      const xml = Buffer.from(context, 'base64').toString();
      const response = await post(browser, xml, relayState);
      expect(response.json()).toMatchObject({
        user: { email: address(), organizations: [{ id: organization.organizationId, role: 'viewer' }] },
      });
    }
    expect(await countIdentities()).toBe(1);
  });
});

describe('a SAML login', () => {
  test.each([
    ['a signed assertion', signedAssertion],
    ['a signed response', signedResponse],
    ['both', (answer: SamlAnswer) => signXml(signedAssertion(answer), 'Response', key)],
  ])('is accepted with %s', async (_name, sign) => {
    const begun = await begin();
    const response = await post(begun.browser, sign(answerTo(begun)), begun.relayState);
    expect(response.json()).toMatchObject({
      token: expect.stringMatching(/^sst_/),
      user: { email: address() },
    });
    const [attempt] = await readAttempts(app, organization.token, configurationId);
    expect(attempt).toMatchObject({ succeeded: true });
    expect(attempt?.checks.every(({ passed }) => passed)).toBe(true);
  });

  test('is accepted at the address for all configurations, and answers a browser with its cookie', async () => {
    const begun = await begin(new Browser(app), '?redirect_to=/organization');
    const shared = `${app.config.PUBLIC_URL}/api/v1/auth/sso/saml/callback`;
    const answer = answerTo(begun, { destination: shared, recipient: shared });
    const response = await post(begun.browser, signedAssertion(answer), begun.relayState, {
      url: shared,
      headers: {},
    });
    expect([response.statusCode, response.headers.location]).toEqual([303, '/organization']);
    expect(begun.browser.cookies.get('session')).toMatch(/^sst_/);
  });

  test('sends the cookie of the login with the POST of another site', async () => {
    const response = await new Browser(app).call(`/auth/sso/${organization.organizationId}`);
    expect(String(response.headers['set-cookie'])).toMatch(
      /^sso=\w{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=None$/,
    );
  });

  test('accepts each of several certificates, and keys without a use', async () => {
    await configure({ idp_metadata_xml: idpMetadata([otherKey, key], { use: '' }) });
    for (const by of [key, otherKey]) {
      const begun = await begin();
      expect(
        (await post(begun.browser, signedAssertion(answerTo(begun), by), begun.relayState)).statusCode,
      ).toBe(200);
    }
  });

  test('takes the address from the NameID where that is its format', async () => {
    const begun = await begin();
    const answer = answerTo(begun, {
      email: undefined,
      nameId: address('named'),
      nameIdFormat: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
    });
    const response = await post(begun.browser, signedAssertion(answer), begun.relayState);
    expect(response.json()).toMatchObject({ user: { email: address('named') } });
  });

  test('asks for a new sign-in at the identity provider, and requires it', async () => {
    const old = await begin(new Browser(app), '?fresh=true');
    expect(old.request).toContain('ForceAuthn="true"');
    const stale = answerTo(old, { authnInstant: new Date(Date.now() - 3_600_000).toISOString() });
    expect(
      expectProblem(await post(old.browser, signedAssertion(stale), old.relayState), 'sso_failed'),
    ).toMatchObject({
      check: 'authentication_time',
    });
    const begun = await begin(new Browser(app), '?fresh=true');
    const { token } = (await post(begun.browser, signedAssertion(answerTo(begun)), begun.relayState)).json();
    const setUp = await app.call('/auth/mfa/totp/setup', { method: 'POST', token, body: {} });
    expect(setUp.statusCode).toBe(200);
  });

  test('an attribute named nameID identifies no person', async () => {
    const attributes =
      '<saml:Attribute Name="nameID"><saml:AttributeValue>victim</saml:AttributeValue></saml:Attribute>';
    const begun = await begin();
    await post(begun.browser, signedAssertion(answerTo(begun, { attributes })), begun.relayState);
    const [identity] = await query(
      app.worker,
      sql`select subject from sso_identities where org_id = ${organization.organizationId}`,
    );
    expect(identity).toEqual({ subject: 'person-1' });
  });
});

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const wrongAnswers: [string, string, Partial<SamlAnswer>][] = [
  ['another audience', 'audience', { audience: 'https://other.example.test' }],
  ['no audience', 'audience', { audience: undefined }],
  ['another recipient', 'recipient', { recipient: 'https://other.example.test/acs' }],
  ['no recipient', 'recipient', { recipient: undefined }],
  ['another destination', 'destination', { destination: 'https://other.example.test/acs' }],
  ['an empty destination', 'destination', { destination: '' }],
  ['another issuer of the assertion', 'issuer', { issuer: 'https://other.example.test' }],
  ['no issuer of the assertion', 'issuer', { issuer: undefined }],
  ['another status', 'status', { status: 'urn:oasis:names:tc:SAML:2.0:status:Requester' }],
  ['no confirmation', 'confirmation', { confirmation: false }],
  [
    'a holder-of-key confirmation',
    'confirmation',
    { method: 'urn:oasis:names:tc:SAML:2.0:cm:holder-of-key' },
  ],
  ['an expired confirmation', 'time', { confirmationEnd: minutesAgo(5) }],
  ['a confirmation without end', 'time', { confirmationEnd: undefined }],
  ['a confirmation whose end is no time', 'time', { confirmationEnd: 'tomorrow' }],
  ['an expired assertion', 'time', { notOnOrAfter: minutesAgo(5) }],
  ['an assertion that is not valid yet', 'time', { notBefore: minutesAgo(-5) }],
  ['another request in the signed part', 'request', { inResponseTo: '_another' }],
  ['no request in the signed part', 'request', { inResponseTo: undefined }],
  ['another request in the response', 'request', { responseInResponseTo: '_another' }],
  ['an empty NameID', 'subject', { nameId: '' }],
  ['a transient NameID', 'subject', { nameIdFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient' }],
  ['no address', 'email', { email: undefined }],
  [
    'two addresses',
    'email',
    {
      attributes:
        '<saml:Attribute Name="email"><saml:AttributeValue>x@y.example</saml:AttributeValue></saml:Attribute>',
    },
  ],
  ['an address elsewhere', 'domain', { email: 'grace@elsewhere.example' }],
];

describe('a SAML response', () => {
  test.each(wrongAnswers)('with %s fails at the check of %s', async (_name, check, change) => {
    const begun = await begin();
    const response = await post(begun.browser, signedAssertion(answerTo(begun, change)), begun.relayState);
    const problem = expectProblem(response, 'sso_failed');
    const [attempt] = await readAttempts(app, organization.token, configurationId);
    expect({ problem: problem.check, attempt: attempt?.checks.at(-1) }).toMatchObject({
      problem: check,
      attempt: { name: check, passed: false },
    });
    expect(await countIdentities()).toBe(0);
  });

  test.each([
    ['the year 9999', '9999-12-31T23:59:59Z'],
    ['the year 10000 in UTC', '9999-12-31T23:59:59-23:59'],
  ])('that ends in %s signs in once', async (_name, end) => {
    const begun = await begin();
    const answer = answerTo(begun, { notOnOrAfter: end, confirmationEnd: end });
    const response = await post(begun.browser, signedAssertion(answer), begun.relayState);
    expect([response.statusCode, response.json().user?.email]).toEqual([200, address()]);
    const again = await begin();
    const replayed = answerTo(again, { ...answer, ...answerTo(again), assertionId: answer.assertionId });
    const refused = await post(again.browser, signedAssertion(replayed), again.relayState);
    expect(expectProblem(refused, 'sso_failed')).toMatchObject({ check: 'replay' });
  });

  test.each([
    ['a &amp; b', 'a & b'],
    ['&amp;unknown;', '&unknown;'],
    ['a]]&gt;b', 'a]]>b'],
    ['a\u0001b', 'a\u0001b'],
    ['a\ufffeb', 'a\ufffeb'],
    ['a\ufffdb', 'a&#0;b'],
    ['a\u001fb', 'a&#x1f;b'],
  ])('whose NameID was signed as %j and is sent as %j is not well-formed', async (signed, sent) => {
    const begun = await begin();
    const xml = signedAssertion(answerTo(begun, { nameId: signed })).replace(
      `>${signed}<`,
      () => `>${sent}<`,
    );
    expect(xml).toContain(`>${sent}</saml:NameID>`);
    const problem = expectProblem(await post(begun.browser, xml, begun.relayState), 'sso_failed');
    expect(problem).toMatchObject({ check: 'response' });
    expect(await countIdentities()).toBe(0);
  });

  test('that is signed must name its destination', async () => {
    const begun = await begin();
    const xml = signedResponse(answerTo(begun, { destination: undefined }));
    expect(expectProblem(await post(begun.browser, xml, begun.relayState), 'sso_failed')).toMatchObject({
      check: 'destination',
    });
  });

  test('works once, of two concurrent ones too, and its assertion never again', async () => {
    const begun = await begin();
    const answer = answerTo(begun);
    const xml = signedAssertion(answer);
    const answers = await Promise.all([1, 2].map(() => post(begun.browser, xml, begun.relayState)));
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 401]);
    const again = await begin(begun.browser);
    const replayed = signedAssertion(answerTo(again, { assertionId: answer.assertionId }));
    expect(expectProblem(await post(again.browser, replayed, again.relayState), 'sso_failed')).toMatchObject({
      check: 'replay',
    });
  });

  test('in another browser fails, and does not use up the login', async () => {
    const begun = await begin();
    const xml = signedAssertion(answerTo(begun));
    expectProblem(await post(new Browser(app), xml, begun.relayState), 'sso_failed');
    expectProblem(await post(begun.browser, xml), 'sso_failed');
    expect((await post(begun.browser, xml, begun.relayState)).statusCode).toBe(200);
  });

  test("at another configuration's address fails", async () => {
    const begun = await begin();
    const xml = signedAssertion(answerTo(begun));
    const [mine, theirs] = [begun, acsUrl];
    await configure();
    expectProblem(await post(mine.browser, xml, mine.relayState, { url: acsUrl }), 'sso_failed');
    expect(acsUrl).not.toBe(theirs);
  });

  test("of an organization that registered another one's identity provider by name gives nothing there", async () => {
    const victim = { organization, acsUrl, entityId };
    const begun = await begin();
    // The attacker's organization states the same entity id, with a key of its own.
    await configure({ idp_metadata_xml: idpMetadata([otherKey]) });
    const forged = samlAnswer({
      acsUrl: victim.acsUrl,
      audience: victim.entityId,
      email: `grace@${victim.organization.domain}`,
      inResponseTo: begun.requestId,
    });
    const xml = signedAssertion(forged, otherKey);
    expect(
      expectProblem(await post(begun.browser, xml, begun.relayState, { url: victim.acsUrl }), 'sso_failed'),
    ).toMatchObject({ check: 'signature' });
    const own = await begin();
    const claimed = signedAssertion(
      answerTo(own, { email: `grace@${victim.organization.domain}` }),
      otherKey,
    );
    expect(expectProblem(await post(own.browser, claimed, own.relayState), 'sso_failed')).toMatchObject({
      check: 'domain',
    });
  });

  test('is refused when every certificate has ended', async () => {
    const ended = await createSamlKey({
      notBeforeDate: new Date(Date.now() - 86_400_000 * 3),
      notAfterDate: new Date(Date.now() - 86_400_000),
    });
    await configure({ idp_metadata_xml: idpMetadata([ended]) });
    const begun = await begin();
    const xml = signedAssertion(answerTo(begun), ended);
    expect(expectProblem(await post(begun.browser, xml, begun.relayState), 'sso_failed')).toMatchObject({
      check: 'signature',
    });
  });
});

/** Parts of a signed document that attackers move. */
function partsOf(answer: SamlAnswer) {
  const xml = signedAssertion(answer);
  const [assertion = ''] = /<saml:Assertion.*<\/saml:Assertion>/s.exec(xml) ?? [];
  const [signature = ''] = /<Signature.*<\/Signature>/s.exec(assertion) ?? [];
  const unsigned = assertion.replace(signature, '');
  const evil = assertionXml({ ...answer, assertionId: '_evil', nameId: 'victim', email: address('victim') });
  const wrap = (...assertions: string[]) => responseXml(answer, assertions.join(''));
  const insert = (into: string, part: string) => into.replace('</saml:Issuer>', `</saml:Issuer>${part}`);
  const inside = (part: string) => signature.replace('</Signature>', `<Object>${part}</Object></Signature>`);
  return { xml, assertion, signature, unsigned, evil, wrap, insert, inside };
}

type Forgery = (answer: SamlAnswer) => string | Buffer;
const SHA1 = {
  signatureAlgorithm: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1',
  digestAlgorithm: 'http://www.w3.org/2000/09/xmldsig#sha1',
};
const forgeries: [string, Forgery][] = [
  ['no signature', (answer) => responseXml(answer)],
  ['a signature of another key', (answer) => signedAssertion(answer, otherKey)],
  ['a changed NameID', (answer) => signedAssertion(answer).replace('person-1', 'victim')],
  ['a changed attribute', (answer) => signedAssertion(answer).replace(address(), address('victim'))],
  [
    'XSW1: the signed response inside the signature of a forged one',
    (answer) => {
      const xml = signedResponse(answer);
      const [signature = ''] = /<Signature.*<\/Signature>/s.exec(xml) ?? [];
      const original = xml.replace(signature, '');
      const forged = responseXml({ ...answer, assertionId: '_evil' }, partsOf(answer).evil);
      const wrapped = signature.replace('</Signature>', `<Object>${original}</Object></Signature>`);
      return forged.replace('</saml:Issuer>', `</saml:Issuer>${wrapped}`);
    },
  ],
  [
    'XSW2: the signed response beside the signature of a forged one',
    (answer) => {
      const xml = signedResponse(answer);
      const [signature = ''] = /<Signature.*<\/Signature>/s.exec(xml) ?? [];
      const original = xml.replace(signature, '');
      const forged = responseXml({ ...answer, assertionId: '_evil' }, partsOf(answer).evil);
      return forged.replace('</saml:Issuer>', `</saml:Issuer>${original}${signature}`);
    },
  ],
  [
    'XSW3: a forged assertion before the signed one',
    (answer) => partsOf(answer).wrap(partsOf(answer).evil, partsOf(answer).assertion),
  ],
  [
    'a forged assertion after the signed one',
    (answer) => partsOf(answer).wrap(partsOf(answer).assertion, partsOf(answer).evil),
  ],
  [
    'XSW4: the signed assertion inside a forged one',
    (answer) => {
      const { wrap, evil, assertion } = partsOf(answer);
      return wrap(evil.replace('</saml:Assertion>', `${assertion}</saml:Assertion>`));
    },
  ],
  [
    'XSW5: the signature moved to a forged assertion, the signed one at the end',
    (answer) => {
      const { wrap, insert, evil, signature, unsigned } = partsOf(answer);
      return wrap(insert(evil, signature), unsigned);
    },
  ],
  [
    'XSW6: the signed assertion inside its signature, in a forged one',
    (answer) => {
      const { wrap, insert, evil, inside, unsigned } = partsOf(answer);
      return wrap(insert(evil, inside(unsigned).replace(/<\/?Object>/g, '')));
    },
  ],
  [
    'XSW7: a forged assertion in Extensions',
    (answer) => {
      const { assertion, evil } = partsOf(answer);
      return responseXml(answer, assertion, `<samlp:Extensions>${evil}</samlp:Extensions>`);
    },
  ],
  [
    'XSW8: the signed assertion in an Object of its signature, in a forged one',
    (answer) => {
      const { wrap, insert, evil, inside, unsigned } = partsOf(answer);
      return wrap(insert(evil, inside(unsigned)));
    },
  ],
  [
    'the ID of the signed assertion twice',
    (answer) => {
      const { wrap, evil, assertion } = partsOf(answer);
      return wrap(evil.replace('_evil', answer.assertionId), assertion);
    },
  ],
  [
    'a signed error with a second signature whose Object has a forged assertion',
    (answer) => {
      const error = signXml(
        responseXml({ ...answer, status: 'urn:oasis:names:tc:SAML:2.0:status:Responder' }, ''),
        'Response',
        key,
      );
      const { signature, evil } = partsOf(answer);
      const second = signature.replace('</Signature>', `<Object>${evil}</Object></Signature>`);
      return error.replace('</samlp:Response>', `${second}</samlp:Response>`);
    },
  ],
  [
    'a comment in the NameID',
    (answer) =>
      signedAssertion({ ...answer, nameId: 'victim.evil' }).replace('victim.evil', 'victim<!-- -->.evil'),
  ],
  [
    'a processing instruction in the digest',
    (answer) => signedAssertion(answer).replace('<DigestValue>', '<DigestValue><?x y?>'),
  ],
  [
    'an element in the digest',
    (answer) => signedAssertion(answer).replace('<DigestValue>', '<DigestValue><x>AAAA</x>'),
  ],
  ['CDATA in the NameID', (answer) => signedAssertion(answer).replace('person-1', '<![CDATA[person-1]]>')],
  ['SHA-1', (answer) => signXml(responseXml(answer), 'Assertion', key, SHA1)],
  [
    'a digest by SHA-1',
    (answer) => signXml(responseXml(answer), 'Assertion', key, { digestAlgorithm: SHA1.digestAlgorithm }),
  ],
  [
    'HMAC with the certificate as its key',
    (answer) =>
      signXml(
        responseXml(answer),
        'Assertion',
        { privateKey: key.certificate },
        {
          hmac: true,
          signatureAlgorithm: 'http://www.w3.org/2000/09/xmldsig#hmac-sha1',
        },
      ),
  ],
  [
    'an XSLT transform',
    (answer) =>
      signedAssertion(answer).replace(
        '<Transforms>',
        '<Transforms><Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"/></Transform>',
      ),
  ],
  ['a DOCTYPE', (answer) => `<!DOCTYPE r>${signedAssertion(answer)}`],
  [
    'an entity bomb',
    (answer) =>
      `<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>${signedAssertion(answer).replace('person-1', '&b;')}`,
  ],
  [
    'an external entity',
    (answer) =>
      `<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]>${signedAssertion(answer).replace('person-1', '&a;')}`,
  ],
  [
    'an encrypted assertion',
    (answer) =>
      responseXml(answer, '<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"/>'),
  ],
  ['an assertion alone', (answer) => partsOf(answer).assertion],
  [
    'another namespace',
    (answer) => signedAssertion(answer).replaceAll('SAML:2.0:assertion', 'SAML:1.0:assertion'),
  ],
  [
    'a second confirmation that was not signed',
    (answer) => signedAssertion(answer).replace('</saml:Subject>', '<saml:x/></saml:Subject>'),
  ],
  ['broken XML', (answer) => signedAssertion(answer).slice(0, -20)],
  ['no XML', () => 'SAMLResponse'],
  ['nothing', () => ' '],
  [
    'bytes that are no UTF-8',
    (answer) => Buffer.concat([Buffer.from(signedAssertion(answer)), Buffer.of(0xff)]),
  ],
  ['deep nesting', (answer) => responseXml(answer, `${'<a>'.repeat(500)}${'</a>'.repeat(500)}`)],
  ['many elements', (answer) => responseXml(answer, '<a/>'.repeat(9_000))],
  [
    'many attributes',
    (answer) =>
      responseXml(answer, `<a ${Array.from({ length: 9_000 }, (_, n) => `xmlns:x${n}="x"`).join(' ')}/>`),
  ],
  ['a large document', (answer) => responseXml({ ...answer, nameId: 'x'.repeat(280_000) })],
];

describe('a forged SAML response', () => {
  test.each(forgeries)('with %s is refused', async (_name, forge) => {
    const begun = await begin();
    expectProblem(await post(begun.browser, forge(answerTo(begun)), begun.relayState), 'sso_failed');
    expect(await countIdentities()).toBe(0);
  });

  test('is a page in a browser, also if the form is broken', async () => {
    const begun = await begin();
    const refused = await post(begun.browser, responseXml(answerTo(begun)), begun.relayState, {
      headers: {},
    });
    expect([refused.statusCode, refused.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8']);
    expect(refused.headers['content-security-policy']).toContain("default-src 'none'");
    for (const raw of [
      '',
      'SAMLResponse=',
      'RelayState=x',
      'SAMLResponse=%00',
      'SAMLResponse=a&SAMLResponse=b',
    ]) {
      const { pathname } = new URL(acsUrl);
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const broken = await begun.browser.call(pathname, { prefix: '', method: 'POST', raw, headers });
      expect({ raw, status: broken.statusCode < 500, type: broken.headers['content-type'] }).toEqual({
        raw,
        status: true,
        type: 'text/html; charset=utf-8',
      });
    }
  });
});

describe('a login that the identity provider begins', () => {
  const unsolicited = (change: Partial<SamlAnswer> = {}) =>
    samlAnswer({ acsUrl, audience: entityId, email: address(), ...change });

  test('is refused unless the configuration allows it', async () => {
    expectProblem(await post(new Browser(app), signedAssertion(unsolicited())), 'sso_failed');
  });

  describe('if allowed', () => {
    beforeEach(() => configure({ allow_idp_initiated: true }));
    const confirm = (browser: Browser, token: unknown, headers: Record<string, string> = {}) =>
      browser.call('/auth/sso/saml/confirm', {
        method: 'POST',
        raw: new URLSearchParams({ confirm_token: String(token) }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      });

    test('asks the person first, and makes the session by their POST, once', async () => {
      const browser = new Browser(app);
      const page = await post(browser, signedAssertion(unsolicited()), '/organization', { headers: {} });
      expect(page.statusCode).toBe(200);
      expect(page.body).toContain(address());
      expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
      expect(browser.cookies.has('session')).toBe(false);
      expect(await countIdentities()).toBe(0);
      const [, token] = /name="confirm_token" value="(\w+)"/.exec(page.body) ?? [];
      expectProblem(await confirm(new Browser(app), token, JSON_ONLY), 'sso_failed');
      const answers = await Promise.all([confirm(browser, token), confirm(browser, token)]);
      expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([303, 401]);
      expect(answers.find(({ statusCode }) => statusCode === 303)?.headers.location).toBe('/organization');
      expect(browser.cookies.get('session')).toMatch(/^sst_/);
    });

    test('does not continue at another site', async () => {
      const browser = new Browser(app);
      const asked = await post(browser, signedAssertion(unsolicited()), 'https://evil.example/');
      const done = await confirm(browser, asked.json().confirm_token);
      expect(done.headers.location).toBe('/overview');
    });

    test('is found by its audience at the address for all configurations', async () => {
      const shared = `${app.config.PUBLIC_URL}/api/v1/auth/sso/saml/callback`;
      const answer = unsolicited({ destination: shared, recipient: shared });
      const asked = await post(new Browser(app), signedAssertion(answer), undefined, { url: shared });
      expect(asked.json()).toMatchObject({ status: 'confirmation_required', email: address() });
    });

    test.each([
      ['that answers a request', { inResponseTo: '_a-request-of-another-browser' }],
      [
        'that answers a request in its signed part alone',
        { inResponseTo: '_x', responseInResponseTo: undefined },
      ],
      ['for another audience', { audience: 'https://other.example.test' }],
    ])('is refused for a response %s', async (_name, change) => {
      expectProblem(await post(new Browser(app), signedAssertion(unsolicited(change))), 'sso_failed');
    });

    test('counts once, until it has expired', async () => {
      const xml = signedAssertion(unsolicited());
      expect((await post(new Browser(app), xml)).statusCode).toBe(200);
      await purgeSsoAssertions(app.worker);
      expect(expectProblem(await post(new Browser(app), xml), 'sso_failed')).toMatchObject({
        check: 'replay',
      });
      await query(
        app.worker,
        sql`update sso_assertions set expires_at = date_trunc('milliseconds', now()) where configuration_id = ${configurationId}`,
      );
      await purgeSsoAssertions(app.worker);
      const left = sql`select from sso_assertions where configuration_id = ${configurationId}`;
      expect(await query(app.worker, left)).toEqual([]);
    });

    test('is refused with a forged signature', async () => {
      expect(
        expectProblem(await post(new Browser(app), signedAssertion(unsolicited(), otherKey)), 'sso_failed'),
      ).toMatchObject({ check: 'signature' });
    });
  });
});
