import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createOutcomeService } from '../../domain/outbound/outcome.service.ts';
import { createSesNotificationService } from '../../domain/providers/ses-notification.service.ts';
import { isSnsCertificateUrl, type SnsMessage } from '../../domain/providers/sns-message.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { accepted } from '../support/mail-services.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import {
  CERTIFICATE_URL,
  createSnsSigner,
  SES_TOPIC,
  type SnsSigner,
  signSnsMessage,
} from '../support/sns-signer.ts';
import { recordingOutbox, startTestApp } from '../support/test-app.ts';

const TOPIC = SES_TOPIC;
const SUBSCRIBE_URL = `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=t`;

const database = useWorkerDatabase();
let pair: SnsSigner;
let expired: SnsSigner;
beforeAll(async () => {
  pair = await createSnsSigner();
  expired = await createSnsSigner({
    notBeforeDate: new Date('2020-01-01'),
    notAfterDate: new Date('2021-01-01'),
  });
});

const snsMessage = (message: object | string, over: Partial<SnsMessage> = {}, signer = pair) =>
  signSnsMessage(signer, message, over);

/** A message sent with SES, and the service for its notifications. */
async function arrange(certificate = pair.cert) {
  const sesId = `0102-${randomUUID()}`;
  const sending = await arrangeSending(database);
  sending.transport.answerWith(async () => ({ ...accepted, providerMessageId: sesId }));
  const messageId = await sending.send('gone@people.example');
  await dispatchOnce(sending, messageId);
  const { outbox } = recordingOutbox();
  const fetched: string[] = [];
  const service = createSesNotificationService({
    database,
    outcomes: createOutcomeService({
      events: createWebhookEvents({ outbox }),
      outbox,
      retryWindowMs: 86_400_000,
      simulatorDomain: 'simulator.mail.test',
    }),
    sesMail: {
      accept: async () => {
        throw new Error('No mail was received.');
      },
    },
    egress: {
      async get(url) {
        fetched.push(url);
        return { kind: 'response', status: 200, body: certificate, durationMs: 1 };
      },
    },
    topicArns: [TOPIC],
  });
  const event = (type: string, fields: object, shape: 'eventType' | 'notificationType' = 'eventType') => ({
    [shape]: type,
    mail: { messageId: sesId, timestamp: new Date().toISOString(), destination: ['gone@people.example'] },
    ...fields,
  });
  const state = async () => {
    const { status, types } = await readMessageState(database, messageId);
    return { status, types };
  };
  return { service, event, fetched, state, sesId };
}

const recipient = { emailAddress: 'gone@people.example' };
const bounce = (bounceType: string, bounceSubType: string, more = {}) => ({
  bounce: { bounceType, bounceSubType, bouncedRecipients: [{ ...recipient, ...more }] },
});

describe('a signed notification', () => {
  test.each([
    ['Delivery', { delivery: { recipients: ['gone@people.example'], smtpResponse: '250 ok' } }, 'delivered'],
    ['Bounce', bounce('Permanent', 'NoEmail', { status: '5.1.1' }), 'bounced'],
    ['Bounce', bounce('Transient', 'MailboxFull'), 'bounced'],
    ['Bounce', bounce('Permanent', 'OnAccountSuppressionList'), 'bounced'],
    [
      'Complaint',
      { complaint: { complainedRecipients: [recipient], complaintFeedbackType: 'abuse' } },
      'complained',
    ],
    ['Reject', { reject: { reason: 'Bad content' } }, 'bounced'],
    ['DeliveryDelay', { deliveryDelay: { delayedRecipients: [{ ...recipient, status: '4.4.1' }] } }, 'sent'],
  ])('of %s (%j) makes the message %s once, in both formats and versions', async (type, more, status) => {
    const { service, event, fetched, state } = await arrange();
    expect(await service.process(JSON.stringify(snsMessage(event(type, more))))).toBe('folded');
    const first = await state();
    expect(first.status).toBe(status);
    const again = snsMessage(event(type, more, 'notificationType'), {
      SignatureVersion: '1',
      Subject: 'SES',
    });
    await service.process(again);
    expect(await state()).toEqual(first);
    expect(fetched).toEqual([CERTIFICATE_URL]);
  });

  test('of an unknown message is ignored, or retried if the message is recent', async () => {
    const { service, event } = await arrange();
    const unknown = { ...event('Bounce', bounce('Permanent', 'General')) };
    const at = (timestamp: string) => ({ ...unknown, mail: { messageId: 'other', timestamp } });
    expect(await service.process(snsMessage(at('2026-01-01T00:00:00Z')))).toBe('ignored');
    await expect(service.process(snsMessage(at(new Date().toISOString())))).rejects.toMatchObject({
      code: 'unavailable',
    });
  });

  test.each([['Send'], ['Open'], ['Click'], ['Rendering Failure']])('of %s is ignored', async (type) => {
    const { service, event, state } = await arrange();
    expect(await service.process(snsMessage(event(type, {})))).toBe('ignored');
    expect((await state()).status).toBe('sent');
  });

  test('confirms a subscription only at an SNS URL', async () => {
    const { service, fetched } = await arrange();
    const over = { Type: 'SubscriptionConfirmation', Token: 't' } as const;
    expect(await service.process(snsMessage('hello', { ...over, SubscribeURL: SUBSCRIBE_URL }))).toBe(
      'confirmed',
    );
    expect(fetched).toEqual([CERTIFICATE_URL, SUBSCRIBE_URL]);
    for (const url of [
      'https://evil.example/?Action=ConfirmSubscription',
      `${SUBSCRIBE_URL}`.replace('https', 'http'),
    ])
      await expect(
        service.process(snsMessage('hello', { ...over, SubscribeURL: url })),
      ).rejects.toMatchObject({
        code: 'unauthenticated',
      });
    expect(fetched).toHaveLength(2);
  });
});

describe('rejected without any change:', () => {
  test.each<[string, (signed: SnsMessage) => unknown, string]>([
    [
      'an altered message',
      (signed) => ({ ...signed, Message: signed.Message.replace('gone@', 'here@') }),
      'unauthenticated',
    ],
    [
      'a forged signature',
      (signed) => ({ ...signed, Signature: Buffer.alloc(256).toString('base64') }),
      'unauthenticated',
    ],
    ['an unknown signature version', (signed) => ({ ...signed, SignatureVersion: '3' }), 'unauthenticated'],
    [
      'another topic',
      (signed) => snsMessage(signed.Message, { TopicArn: `${TOPIC}-other` }),
      'permission_denied',
    ],
    [
      'a certificate of another host',
      (signed) =>
        snsMessage(signed.Message, { SigningCertURL: CERTIFICATE_URL.replace('sns.eu', 'evil.eu') }),
      'unauthenticated',
    ],
    ['not an SNS message', () => '{"Type":"Notification"}', 'validation_error'],
    ['invalid JSON', () => 'hello', 'validation_error'],
  ])('%s', async (_what, change, code) => {
    const { service, event, state } = await arrange();
    const signed = snsMessage(event('Bounce', bounce('Permanent', 'NoEmail')));
    await expect(service.process(change(signed))).rejects.toMatchObject({ code });
    expect((await state()).status).toBe('sent');
  });

  test('a message signed with an expired certificate', async () => {
    const { service, event, state } = await arrange(expired.cert);
    const signed = snsMessage(event('Bounce', bounce('Permanent', 'NoEmail')), {}, expired);
    await expect(service.process(signed)).rejects.toMatchObject({ code: 'unauthenticated' });
    expect((await state()).status).toBe('sent');
  });

  test('a message with a foreign signature', async () => {
    const { service, event } = await arrange();
    const signed = snsMessage(event('Bounce', bounce('Permanent', 'NoEmail')), {}, expired);
    await expect(service.process(signed)).rejects.toMatchObject({ code: 'unauthenticated' });
  });
});

test.each([
  [CERTIFICATE_URL, true],
  ['https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-0123456789abcdef.pem', true],
  ['http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem', false],
  ['https://sns.eu-west-1.amazonaws.com.evil.example/SimpleNotificationService-0123456789abcdef.pem', false],
  ['https://sns.eu-west-1.amazonaws.com@evil.example/SimpleNotificationService-0123456789abcdef.pem', false],
  ['https://bucket.s3.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem', false],
  ['https://sns.eu-west-1.amazonaws.com/other.pem', false],
  ['https://sns.eu-west-1.amazonaws.com:8443/SimpleNotificationService-0123456789abcdef.pem', false],
])('%s is an SNS certificate URL: %s', (url, expected) => {
  expect(isSnsCertificateUrl(url)).toBe(expected);
});

test('the route accepts text/plain from SNS and rejects unknown topics', async () => {
  const app = await startTestApp({ config: { SES_TOPIC_ARNS: TOPIC } });
  try {
    const post = (raw: string, type = 'text/plain; charset=UTF-8') =>
      app.call('/providers/ses/notifications', { method: 'POST', raw, headers: { 'content-type': type } });
    const other = JSON.stringify(snsMessage('{}', { TopicArn: `${TOPIC}-other` }));
    expect((await post(other)).statusCode).toBe(403);
    expect((await post(other, 'application/json')).statusCode).toBe(403);
    expect((await post('x')).statusCode).toBe(400);
    expect((await post('x'.repeat(800_000))).statusCode).toBe(413);
  } finally {
    await app.close();
  }
});
