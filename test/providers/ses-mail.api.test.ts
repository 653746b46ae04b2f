import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Authentication } from '../../domain/inbound/mail-authentication.ts';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import { createMailIntake } from '../../domain/providers/mail-intake.service.ts';
import { createSesMailService } from '../../domain/providers/ses-mail.service.ts';
import { createSesNotificationService } from '../../domain/providers/ses-notification.service.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createSesObjects, type SesObjects } from '../../platform/ses-objects.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import { createSnsSigner, SES_TOPIC, type SnsSigner, signSnsMessage } from '../support/sns-signer.ts';
import { recordingOutbox } from '../support/test-app.ts';

const BUCKET = 'agent-email';
const MAX_SIZE_BYTES = 20_000;
const MAIL = mail({ Subject: 'By SES' });

const s3 = useObjectStorage();
const app = useTestApp(() => ({
  config: {
    ...s3.environment,
    SES_INBOUND_S3_ENDPOINT: s3.environment.S3_ENDPOINT ?? '',
    SES_ACCESS_KEY_ID: 'S3RVER',
    SES_SECRET_ACCESS_KEY: 'S3RVER',
  },
}));
let bucket: S3Client;
let sesObjects: SesObjects;
let signer: SnsSigner;
beforeAll(async () => {
  sesObjects = createSesObjects(app.config);
  bucket = new S3Client({
    endpoint: s3.environment.S3_ENDPOINT ?? '',
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  signer = await createSnsSigner();
});
afterAll(async () => {
  bucket?.destroy();
  sesObjects?.close();
});

/** An inbox, and a service with a real database and S3. `opened` lists the objects read from SES buckets. */
async function arrange(objects: Pick<SesObjects, 'open'> = sesObjects) {
  const inbox = await createInbox(app.worker, await createOrganization(app.worker));
  const { outbox } = recordingOutbox();
  const opened: string[] = [];
  const unknown: string[] = [];
  const service = createSesNotificationService({
    database: app.worker,
    outcomes: {
      apply: async () => {
        throw new Error('Nothing was sent.');
      },
    },
    sesMail: createSesMailService({
      intake: createMailIntake({
        storage: app.storage,
        receipts: createTestReceiptService({ database: app.worker, outbox, storage: app.storage }),
        maxSizeBytes: MAX_SIZE_BYTES,
      }),
      objects: {
        open(name, key) {
          opened.push(`${name}/${key}`);
          return objects.open(name, key);
        },
      },
      buckets: [BUCKET, 'another-listed'],
      onUnknownRecipients: (_id, recipients) => unknown.push(...recipients),
    }),
    egress: { get: async () => ({ kind: 'response', status: 200, body: signer.cert, durationMs: 1 }) },
    topicArns: [SES_TOPIC],
  });
  const receipts = () =>
    app.worker.db
      .selectFrom('inbound_receipts')
      .select(columnsOf(ReceiptEntity))
      .where('inbox_id', '=', inbox.id)
      .execute();
  return { inbox, service, opened, unknown, receipts };
}

async function putMail(raw = MAIL, metadata: Record<string, string> = {}): Promise<string> {
  const key = `ses/${randomUUID()}`;
  await bucket.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: raw, Metadata: metadata }));
  return key;
}

interface Received {
  recipients: string[];
  action: object;
  source?: string;
  verdicts?: object;
  content?: string;
  messageId?: string;
}

/** A notification as SES publishes it. */
function received({ recipients, action, source = 'ada@people.example', ...more }: Received) {
  const passed = { status: 'PASS' };
  return {
    notificationType: 'Received',
    mail: {
      timestamp: '2026-11-20T10:00:00.000Z',
      source,
      messageId: more.messageId ?? `in-${randomUUID()}`,
      destination: ['someone-in-the-header@people.example'],
      headersTruncated: false,
      headers: [],
      commonHeaders: {},
    },
    receipt: {
      timestamp: '2026-11-20T10:00:01.000Z',
      processingTimeMillis: 222,
      recipients,
      spamVerdict: passed,
      virusVerdict: passed,
      spfVerdict: passed,
      dkimVerdict: passed,
      dmarcVerdict: { status: 'GRAY' },
      ...more.verdicts,
      action: { topicArn: SES_TOPIC, ...action },
    },
    ...(more.content === undefined ? {} : { content: more.content }),
  };
}

const inS3 = (objectKey: string, bucketName = BUCKET) => ({ type: 'S3', bucketName, objectKey });
const signed = (notification: object) => JSON.stringify(signSnsMessage(signer, notification));

describe('a message that SES received', () => {
  test('is read from its bucket and accepted once, with envelope, time and verdicts', async () => {
    const { inbox, service, opened, unknown, receipts } = await arrange();
    const key = await putMail();
    const notification = received({
      recipients: [inbox.email.toUpperCase(), 'nobody@mail.test'],
      action: inS3(key),
    });
    expect(await service.process(signed(notification))).toBe('stored');
    const [receipt] = await receipts();
    expect(receipt).toMatchObject({
      kind: 'mail',
      mailFrom: 'ada@people.example',
      rcptTo: inbox.email,
      clientIp: '',
      helo: null,
      transportId: `ses:${notification.mail.messageId}`,
      receivedAt: new Date('2026-11-20T10:00:00Z'),
      verdicts: {
        authentication: { spf: 'pass', dkim: 'pass', dmarc: 'none', arc: 'none', policy: null },
        isSpam: false,
      },
    });
    expect((await app.storage.getBytes(receipt?.rawKey ?? '', 100_000)).toString()).toBe(MAIL);
    expect(unknown).toEqual(['nobody@mail.test']);
    expect(await service.process(signed(notification))).toBe('stored');
    expect(await receipts()).toHaveLength(1);
    expect(opened).toEqual([`${BUCKET}/${key}`]);
  });

  test('is accepted once for concurrent notifications', async () => {
    const { inbox, service, receipts } = await arrange();
    const notification = received({ recipients: [inbox.email], action: inS3(await putMail()) });
    const outcomes = await Promise.allSettled([
      service.process(signed(notification)),
      service.process(signed(notification)),
    ]);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'unavailable' });
    expect(outcomes.map(({ status }) => status)).toContain('fulfilled');
    expect(await receipts()).toHaveLength(1);
  });

  test.each([
    ['UTF8', 'Grüße', mail({ Subject: 'x' }, 'Grüße'), (raw: string) => raw],
    ['BASE64', 'Gr\xfc\xdfe', mail({ Subject: 'x' }, 'Gr\xfc\xdfe'), null],
  ])('may be part of the notification (%s)', async (encoding, _words, raw, asText) => {
    const { inbox, service, opened, receipts } = await arrange();
    const bytes = Buffer.from(raw, asText ? 'utf8' : 'latin1');
    const notification = received({
      recipients: [inbox.email],
      source: '',
      action: { type: 'SNS', encoding },
      content: asText ? raw : bytes.toString('base64'),
    });
    expect(await service.process(signed(notification))).toBe('stored');
    await service.process(signed(notification));
    const [receipt, ...others] = await receipts();
    expect(others).toEqual([]);
    expect(receipt?.mailFrom).toBe('');
    expect(await app.storage.getBytes(receipt?.rawKey ?? '', 100_000)).toEqual(bytes);
    expect(opened).toEqual([]);
  });

  test('for unknown recipients is ignored without being read, and is logged', async () => {
    const { service, opened, unknown } = await arrange();
    const notification = received({ recipients: ['nobody@mail.test'], action: inS3(await putMail()) });
    expect(await service.process(signed(notification))).toBe('ignored');
    expect(opened).toEqual([]);
    expect(unknown).toEqual(['nobody@mail.test']);
  });

  test.each([['Lambda'], ['Bounce'], ['Stop'], ['WorkMail'], ['AddHeader']])(
    'is ignored in the notification of the action %s',
    async (type) => {
      const { inbox, service, receipts } = await arrange();
      expect(await service.process(signed(received({ recipients: [inbox.email], action: { type } })))).toBe(
        'ignored',
      );
      expect(await receipts()).toEqual([]);
    },
  );
});

describe('uses the verdicts of SES without further lookups:', () => {
  const failed = { status: 'FAIL' };
  test.each<[string, object, Partial<Authentication>, string[]]>([
    [
      'all checks pass',
      { dmarcVerdict: { status: 'PASS' } },
      { spf: 'pass', dkim: 'pass', dmarc: 'pass' },
      [],
    ],
    [
      'DMARC fails without a policy',
      { spfVerdict: failed, dkimVerdict: { status: 'GRAY' }, dmarcVerdict: failed, dmarcPolicy: 'NONE' },
      { spf: 'fail', dkim: 'none', dmarc: 'fail' },
      ['unauthenticated'],
    ],
    [
      'DMARC fails at p=reject',
      { dkimVerdict: failed, dmarcVerdict: failed, dmarcPolicy: 'reject' },
      { spf: 'pass', dkim: 'fail', dmarc: 'fail' },
      ['spam', 'unauthenticated'],
    ],
    ['spam', { spamVerdict: failed }, { dmarc: 'none' }, ['spam']],
    ['a virus', { virusVerdict: failed }, { dmarc: 'none' }, ['spam']],
    [
      'processing failed',
      { spfVerdict: { status: 'PROCESSING_FAILED' }, dkimVerdict: 7, dmarcVerdict: null },
      { spf: 'temperror', dkim: 'none', dmarc: 'none' },
      [],
    ],
  ])('%s', async (_what, verdicts, authentication, labels) => {
    const { inbox, service, receipts } = await arrange();
    const action = inS3(await putMail());
    await service.process(signed(received({ recipients: [inbox.email], action, verdicts })));
    const [receipt] = await receipts();
    const { ingest, messageOf } = await arrangeInbox(
      app.worker,
      {
        storage: app.storage,
        authenticate: async () => {
          throw new Error('Verdicts come from SES.');
        },
      },
      inbox,
    );
    await ingest.ingest(receipt?.id ?? '');
    const message = await messageOf(receipt?.id ?? '');
    expect(message?.authentication).toMatchObject(authentication);
    expect(message?.labels).toEqual(labels);
  });
});

describe('rejected without storing anything:', () => {
  test('an unlisted bucket, without reading it, even with a valid signature', async () => {
    const { inbox, service, opened, receipts } = await arrange();
    const notification = received({
      recipients: [inbox.email],
      action: inS3(await putMail(), 'somebody-elses'),
    });
    await expect(service.process(signed(notification))).rejects.toMatchObject({
      code: 'permission_denied',
      fix: expect.stringContaining('SES_INBOUND_BUCKETS'),
    });
    expect(opened).toEqual([]);
    expect(await receipts()).toEqual([]);
  });

  test.each<[string, (body: string) => Promise<string>]>([
    [
      'forged',
      async (body) => JSON.stringify(signSnsMessage(await createSnsSigner(), JSON.parse(body).Message)),
    ],
    ['altered', async (body) => body.replace('ada@people.example', 'eve@people.example')],
  ])('a notification that was %s', async (_what, change) => {
    const { inbox, service, opened, receipts } = await arrange();
    const body = signed(received({ recipients: [inbox.email], action: inS3(await putMail()) }));
    await expect(service.process(await change(body))).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(opened).toEqual([]);
    expect(await receipts()).toEqual([]);
  });

  test.each<[string, () => Promise<object>, string]>([
    [
      'a message over the limit',
      async () => inS3(await putMail(`${MAIL}${'x'.repeat(30_000)}`)),
      'payload_too_large',
    ],
    [
      'a mail loop',
      async () => inS3(await putMail(`${'Received: x\r\n'.repeat(51)}${MAIL}`)),
      'unprocessable',
    ],
    [
      'a message that SES encrypted',
      async () => inS3(await putMail(MAIL, { 'x-amz-key-v2': 'k' })),
      'unprocessable',
    ],
    ['a missing object', async () => inS3('missing'), 'unavailable'],
    ['a missing bucket', async () => inS3('key', 'another-listed'), 'unavailable'],
    ['an object without a name', async () => ({ type: 'S3', bucketName: BUCKET }), 'unprocessable'],
    ['a notification without content', async () => ({ type: 'SNS', encoding: 'UTF8' }), 'unprocessable'],
  ])('%s', async (_what, action, code) => {
    const { inbox, service, receipts } = await arrange();
    const notification = received({ recipients: [inbox.email], action: await action() });
    await expect(service.process(signed(notification))).rejects.toMatchObject({ code });
    expect(await receipts()).toEqual([]);
  });

  test('a truncated object, which a retry reads completely', async () => {
    const key = await putMail();
    const broken = {
      open: async () =>
        Readable.from(
          (async function* () {
            yield Buffer.from(MAIL.slice(0, 40));
            throw new Error('aborted');
          })(),
        ),
    };
    const attempts = [broken, sesObjects].values();
    const { inbox, service, receipts } = await arrange({
      open: (name, object) => (attempts.next().value ?? sesObjects).open(name, object),
    });
    const notification = received({ recipients: [inbox.email], action: inS3(key) });
    await expect(service.process(signed(notification))).rejects.toMatchObject({ code: 'unavailable' });
    expect(await receipts()).toEqual([]);
    expect(await service.process(signed(notification))).toBe('stored');
    const [receipt] = await receipts();
    expect((await app.storage.getBytes(receipt?.rawKey ?? '', 100_000)).toString()).toBe(MAIL);
  });

  test('a forbidden object', async () => {
    const unauthorized = createSesObjects({ ...app.config, SES_SECRET_ACCESS_KEY: 'wrong' });
    const { inbox, service, receipts } = await arrange(unauthorized);
    const notification = received({ recipients: [inbox.email], action: inS3(await putMail()) });
    await expect(service.process(signed(notification))).rejects.toMatchObject({
      code: 'unavailable',
      cause: expect.objectContaining({ message: expect.stringContaining('403') }),
    });
    expect(await receipts()).toEqual([]);
    unauthorized.close();
  });

  test('a missing object, until SNS retries after it exists', async () => {
    const { inbox, service, receipts } = await arrange();
    const objectKey = `ses/${randomUUID()}`;
    const notification = received({ recipients: [inbox.email], action: inS3(objectKey) });
    await expect(service.process(signed(notification))).rejects.toMatchObject({ code: 'unavailable' });
    await bucket.send(new PutObjectCommand({ Bucket: BUCKET, Key: objectKey, Body: MAIL }));
    expect(await service.process(signed(notification))).toBe('stored');
    expect(await receipts()).toHaveLength(1);
  });
});
