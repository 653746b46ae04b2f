import { describe, expect, test } from '@jest/globals';
import { MetadataRefusal } from '../../domain/sso/saml/idp-metadata.ts';
import {
  checkInput,
  METADATA_INTERVAL_MS,
  type SsoChange,
  sealSecret,
  splitFields,
} from '../../domain/sso/sso-input.ts';
import { clientSecretContext } from '../../domain/sso/sso-settings.ts';
import { createSecretBox } from '../../platform/crypto.ts';

const EXPIRES = new Date('2030-01-01T00:00:00Z');
const METADATA_URL = 'https://idp.example.test/metadata';
const options = {
  findTargetRefusal: (url: string) => (url.startsWith('https:') ? null : 'the URL is not https'),
  ownDomains: ['mail.example.net', 'agents.example.org'],
  metadataSource: {
    read: async (url: string) => {
      if (url !== METADATA_URL) throw new Error('HTTP 404');
      return '<published/>';
    },
    readNow: async () => '<published/>',
  },
  parseMetadata: (xml: string) => {
    if (xml === '<broken/>') throw new MetadataRefusal('describes no SAML 2.0 identity provider');
    if (xml === '<defect/>') throw new TypeError('a defect');
    return {
      entityId: 'https://idp.example.test',
      ssoUrl: 'https://idp.example.test/sso',
      certificates: ['pem'],
      certificateExpiresAt: EXPIRES,
    };
  },
};
const OIDC: SsoChange = { issuer: 'https://login.example.test', clientId: 'id', clientSecret: 'secret' };
const check = (type: 'oidc' | 'saml', change: SsoChange, isNew = false) =>
  checkInput(options, { type, ...change }, { isNew });
const problem = (path: string, message: unknown = expect.any(String)) =>
  expect.objectContaining({ code: 'validation_error', errors: [{ path: `/body/${path}`, message }] });

describe('the settings of OpenID Connect', () => {
  test('are stored as they are given', async () => {
    expect(await check('oidc', { ...OIDC, name: 'Login' }, true)).toEqual({ ...OIDC, name: 'Login' });
  });

  test.each(['issuer', 'clientId', 'clientSecret'] as const)(
    'of a new configuration need %s',
    async (field) => {
      const path = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      const { [field]: _left, ...others } = OIDC;
      await expect(check('oidc', others, true)).rejects.toEqual(problem(path, 'is required for this type'));
      await expect(check('oidc', others)).resolves.toEqual(others);
    },
  );

  test.each([
    ['http://login.example.test', 'the URL is not https'],
    ['https://login.example.test?a=b', 'must have no query and no fragment'],
    ['https://login.example.test#a', 'must have no query and no fragment'],
  ])('have an issuer other than %s', async (issuer, message) => {
    await expect(check('oidc', { issuer })).rejects.toEqual(problem('issuer', message));
  });

  test.each([
    [{ idpMetadataXml: '<a/>' }, 'idp_metadata_xml'],
    [{ idpMetadataUrl: METADATA_URL }, 'idp_metadata_url'],
    [{ allowIdpInitiated: false }, 'allow_idp_initiated'],
  ])('have none of SAML: %j', async (change, path) => {
    await expect(check('oidc', change)).rejects.toEqual(problem(path, 'does not belong to the type oidc'));
  });
});

describe('the settings of SAML', () => {
  const read = {
    issuer: 'https://idp.example.test',
    certificateExpiresAt: EXPIRES,
    certificateWarnedDays: null,
  };

  test('have metadata as XML', async () => {
    expect(await check('saml', { idpMetadataXml: '<own/>', allowIdpInitiated: true }, true)).toEqual({
      ...read,
      allowIdpInitiated: true,
      idpMetadataXml: '<own/>',
      idpMetadataUrl: null,
      metadataFetchedAt: null,
      metadataDueAt: null,
    });
  });

  test('have metadata from a URL, which is read again after a day', async () => {
    const before = Date.now();
    const fields = await check('saml', { idpMetadataUrl: METADATA_URL }, true);
    expect(fields).toMatchObject({ ...read, idpMetadataXml: '<published/>', idpMetadataUrl: METADATA_URL });
    const [fetched, due] = [fields.metadataFetchedAt?.getTime() ?? 0, fields.metadataDueAt?.getTime() ?? 0];
    expect(fetched).toBeGreaterThanOrEqual(before);
    expect(due - fetched).toBe(METADATA_INTERVAL_MS);
    expect(METADATA_INTERVAL_MS).toBe(24 * 3_600_000);
  });

  test('change without metadata', async () => {
    expect(await check('saml', { allowIdpInitiated: false })).toEqual({ allowIdpInitiated: false });
  });

  test.each([
    ['neither XML nor URL, if they are new', {}, true, 'idp_metadata_xml'],
    [
      'both XML and URL',
      { idpMetadataXml: '<own/>', idpMetadataUrl: METADATA_URL },
      false,
      'idp_metadata_xml',
    ],
  ])('are refused with %s', async (_name, change, isNew, path) => {
    await expect(check('saml', change, isNew)).rejects.toEqual(
      problem(path, 'or idp_metadata_url, but not both, is required for this type'),
    );
  });

  test.each([
    ['metadata that cannot be used', { idpMetadataXml: '<broken/>' }, 'idp_metadata_xml', /describes no/],
    ['a URL that the guard refuses', { idpMetadataUrl: 'http://a.test' }, 'idp_metadata_url', /not https/],
    [
      'a URL that does not answer',
      { idpMetadataUrl: 'https://a.test' },
      'idp_metadata_url',
      /cannot be read: HTTP 404/,
    ],
    ['an issuer', { issuer: 'https://a.test' }, 'issuer', /type saml/],
    ['a client id', { clientId: 'id' }, 'client_id', /type saml/],
    ['a client secret', { clientSecret: 'secret' }, 'client_secret', /type saml/],
  ])('are refused with %s', async (_name, change, path, message) => {
    await expect(check('saml', change)).rejects.toEqual(problem(path, expect.stringMatching(message)));
  });

  test('do not take a defect of ours for bad input', async () => {
    await expect(check('saml', { idpMetadataXml: '<defect/>' })).rejects.toThrow(TypeError);
  });
});

describe('domains', () => {
  test('are stored once, in lower-case ASCII', async () => {
    const { domains } = await check('oidc', {
      domains: ['Example.com', 'b\u00fccher.example.org', 'example.com.'],
    });
    expect(domains).toEqual(['example.com', 'xn--bcher-kva.example.org']);
  });

  test.each([
    'localhost',
    'com',
    '192.0.2.1',
    'mail.example.net',
    'sub.mail.example.net',
    'agents.example.org',
  ])('of no organization are refused: %s', async (domain) => {
    await expect(check('oidc', { domains: ['example.com', domain] })).rejects.toEqual(problem('domains/1'));
  });
});

test('a client secret is encrypted for its configuration, and stays if none is given', () => {
  const box = createSecretBox(Buffer.alloc(32, 1).toString('base64'));
  const { clientSecret, ...others } = sealSecret({ name: 'Login', clientSecret: 'secret' }, 'sso_1', box);
  expect(others).toEqual({ name: 'Login' });
  expect(box.open(clientSecret ?? Buffer.of(), clientSecretContext('sso_1'))).toBe('secret');
  expect(() => box.open(clientSecret ?? Buffer.of(), clientSecretContext('sso_2'))).toThrow();
  expect(sealSecret({ name: 'Login' }, 'sso_1', box)).toEqual({ name: 'Login' });
});

describe('a change waits for a test', () => {
  const split = (before: object, fields: object) => splitFields(fields, before as never);
  const oidc = {
    type: 'oidc',
    issuer: 'https://a.test',
    clientId: 'id',
    idpMetadataUrl: null,
    idpMetadataXml: null,
  };
  const saml = {
    type: 'saml',
    issuer: 'https://a.test',
    idpMetadataUrl: METADATA_URL,
    idpMetadataXml: '<old/>',
  };

  test('if it is one of issuer, client or metadata, and others do not', () => {
    expect(
      split(oidc, { issuer: 'https://b.test', clientSecret: 'new', name: 'Login', defaultRole: 'viewer' }),
    ).toEqual({
      tested: { issuer: 'https://b.test', clientSecret: 'new' },
      others: { name: 'Login', defaultRole: 'viewer' },
    });
  });

  test('and not if a form sends what is stored', () => {
    expect(split(oidc, { issuer: 'https://a.test', clientId: 'id', name: 'Login' })).toEqual({
      tested: {},
      others: { name: 'Login' },
    });
  });

  test.each([
    ['another URL', saml, { idpMetadataUrl: 'https://b.test', idpMetadataXml: '<new/>' }, true],
    [
      'the same URL, whose metadata is read again anyway',
      saml,
      { idpMetadataUrl: METADATA_URL, idpMetadataXml: '<new/>' },
      false,
    ],
    ['XML instead of a URL', saml, { idpMetadataUrl: null, idpMetadataXml: '<old/>' }, true],
    [
      'other XML',
      { ...saml, idpMetadataUrl: null },
      { idpMetadataUrl: null, idpMetadataXml: '<new/>' },
      true,
    ],
    [
      'the same XML',
      { ...saml, idpMetadataUrl: null },
      { idpMetadataUrl: null, idpMetadataXml: '<old/>' },
      false,
    ],
  ])('with %s: %j', (_name, before, fields, waits) => {
    const { tested } = split(before, {
      ...fields,
      issuer: 'https://a.test',
      metadataDueAt: null,
      certificateWarnedDays: null,
    });
    expect(Object.keys(tested).length > 0).toBe(waits);
    if (waits)
      expect(tested).toEqual({
        ...fields,
        issuer: 'https://a.test',
        metadataDueAt: null,
        certificateWarnedDays: null,
      });
  });
});
