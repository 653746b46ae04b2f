import { createHmac, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { signWebhook } from '../../platform/webhook-signature.ts';

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
const secret = newSecret();
const eventId = 'evt_01h455vb4pex5vsknk084sn02q';
const timestampSeconds = Math.floor(Date.now() / 1000);
const body = '{"text":"grüße 🎉"}';

describe('a signed webhook', () => {
  test('is signed as specified', () => {
    const headers = signWebhook({ secret, eventId, timestampSeconds, body });
    expect(headers).toEqual({
      'x-service-timestamp': String(timestampSeconds),
      'x-service-signature': createHmac('sha256', secret).update(`${timestampSeconds}.${body}`).digest('hex'),
      'webhook-id': eventId,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
    });
  });

  test('matches the known test vector', () => {
    const vector = signWebhook({
      secret: 'whsec_dGVzdA==',
      eventId: 'evt_1',
      timestampSeconds: 1,
      body: '{}',
    });
    expect(vector['x-service-signature']).toBe(
      'd8d64b7ba72997f398642f178c755304db0e84d16516733fc47881ddff6483fb',
    );
    expect(vector['webhook-signature']).toBe('v1,ZmhSCZSvLxLnbu4SE7G0p4WGBjndkXOOzzmOjlg7gfE=');
  });

  test.each([
    ['standardwebhooks', new StandardWebhook(secret)],
    ['svix', new SvixWebhook(secret)],
  ])('is accepted by %s, unless altered', (_name, library) => {
    const headers = signWebhook({ secret, eventId, timestampSeconds, body });
    expect(library.verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => library.verify(body.replace('true', 'false').concat(' '), headers)).toThrow();
    expect(() => library.verify(body, { ...headers, 'webhook-id': 'evt_2' })).toThrow();
  });

  test('is accepted by the library for any body', () => {
    const library = new StandardWebhook(secret);
    fc.assert(
      fc.property(fc.json(), (json) => {
        const headers = signWebhook({ secret, eventId, timestampSeconds, body: json });
        expect(library.verify(json, headers)).toEqual(JSON.parse(json));
      }),
    );
  });

  test('is accepted with the old and the new secret during a rotation', () => {
    const previousSecret = newSecret();
    const headers = signWebhook({ secret, previousSecret, eventId, timestampSeconds, body });
    for (const key of [secret, previousSecret]) {
      expect(new StandardWebhook(key).verify(body, headers)).toEqual(JSON.parse(body));
    }
    const own = (key: string) =>
      createHmac('sha256', key).update(`${timestampSeconds}.${body}`).digest('hex');
    expect(headers['x-service-signature']).toBe(own(secret));
    expect(headers['x-service-signature-previous']).toBe(own(previousSecret));
  });
});
