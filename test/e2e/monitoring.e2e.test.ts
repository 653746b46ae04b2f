import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { pino } from 'pino';
import { generate } from 'selfsigned';
import { createTemporalClient } from '../../platform/temporal.ts';
import { SCHEDULES, watchSchedules } from '../../workers/schedules.ts';
import { RECONCILE_SCHEDULE_ID } from '../../workflows/maintenance/reconcile.contract.ts';
import { CHECK_USAGE_SCHEDULE_ID } from '../../workflows/usage-alerts/check-usage.contract.ts';
import { apiClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { type ReceivedSpan, TraceCollector } from '../support/trace-collector.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(180_000);
const TIMEOUT_MS = 90_000;
const DOCS = resolve(import.meta.dirname, '../../docs');
const METRICS_TOKEN = 'let-me-see';

/** Documented metrics that are served only after they first occur. */
const NOT_IN_A_GOOD_HOUR = new Map([
  ['temporal_workflow_failed_total', 'no workflow fails by design'],
  ['agent_email_workflow_failures_total', 'no workflow fails by design'],
  ['temporal_workflow_task_execution_failed_total', 'code that does not replay, or a workflow that throws'],
]);

let service: IsolatedService;
let receiver: WebhookReceiver;
let collector: TraceCollector;
beforeAll(async () => {
  receiver = new WebhookReceiver();
  collector = new TraceCollector();
  service = await startIsolatedService({
    METRICS_TOKEN,
    LOG_LEVEL: 'info',
    OTEL_EXPORTER_OTLP_ENDPOINT: await collector.start(),
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    ...(await createCertificate()),
  });
  await generateActivity();
});
afterAll(async () => {
  await service?.stop();
  await Promise.all([receiver?.stop(), collector?.stop()]);
  if (certificateFolder) await rm(certificateFolder, { recursive: true });
});

let certificateFolder: string | undefined;

/** Only a listener with a certificate of its own has metrics of it. */
async function createCertificate(): Promise<Record<string, string>> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'mail.test' }], {
    keySize: 2048,
  });
  certificateFolder = await mkdtemp(join(tmpdir(), 'agent-email-certificate-'));
  const files = {
    SUBMISSION_SMTP_TLS_KEY_FILE: join(certificateFolder, 'key.pem'),
    SUBMISSION_SMTP_TLS_CERT_FILE: join(certificateFolder, 'cert.pem'),
  };
  await writeFile(files.SUBMISSION_SMTP_TLS_KEY_FILE, key);
  await writeFile(files.SUBMISSION_SMTP_TLS_CERT_FILE, cert);
  return files;
}

const scrape = (url: string, token = METRICS_TOKEN) =>
  fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
const workersUrl = () => `http://127.0.0.1:${service.config.WORKER_HEALTH_PORT}`;

/** Sample names, as Prometheus stores them. */
async function servedNames(): Promise<Set<string>> {
  const texts = await Promise.all(
    [service.baseUrl, workersUrl()].map(async (url) => (await scrape(url)).text()),
  );
  const lines = texts.join('\n').split('\n');
  return new Set(lines.flatMap((line) => /^([a-z_:][a-z0-9_:]*)[{ ]/i.exec(line)?.[1] ?? []));
}

/** In everything that a span must not contain. */
const MARKER = 'secretmarker7f3a';

/** Every metric that the page, the dashboard or the alerts mention. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/\b(?:agent_email|http|temporal|nodejs|process)_[a-z0-9_]+\b/g)].map(
    ([name]) => name,
  );
}

async function generateActivity(): Promise<void> {
  const call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  const { body: inbox } = await call('POST', '/inboxes', {});
  // The first two responses about the received message make a local and a regular activity fail.
  let failures = 0;
  receiver.answerWith((_request, response) => {
    const fails = failures < 2 && receiver.received.at(-1)?.body.includes('"message.received"');
    if (fails) failures += 1;
    response.writeHead(fails ? 503 : 200).end();
  });
  await call('POST', '/webhooks/endpoints', {
    url: `${await receiver.start()}/hook-${MARKER}`,
    events: ['message.received', 'message.sent'],
  });
  await call('POST', `/inboxes/${inbox.id}/messages`, {
    to: [{ email: `ada.${MARKER}@people.example` }],
    subject: MARKER,
    text_body: MARKER,
  });
  const relay = nodemailer.createTransport({ host: '127.0.0.1', port: service.inboundPort, ignoreTLS: true });
  await relay.sendMail({ from: 'ada@people.example', to: inbox.email, subject: 'Hello', text: 'Hello' });
  await call('POST', '/lists/receive/block', { entry: 'spam.example' });
  const isRefused = relay.sendMail({ from: `eve@spam.example`, to: inbox.email, text: MARKER });
  await expect(isRefused).rejects.toThrow('550 5.7.1');
  relay.close();
  await eventually(async () => {
    const { body } = await call('GET', `/inboxes/${inbox.id}/messages`);
    expect(body.data).toHaveLength(2);
  }, TIMEOUT_MS);
  // A run that is canceled from outside.
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const { body: draft } = await call('POST', `/inboxes/${inbox.id}/drafts`, {
    to: [{ email: 'ada@people.example' }],
    text_body: 'Later',
    send_at: later,
  });
  await call('DELETE', `/drafts/${draft.id}`);
}

/** The spans of the trace that starts with the named one, once `last` is among them. */
async function traceOf(root: RegExp, last: string): Promise<ReceivedSpan[]> {
  return eventually(async () => {
    const traceIds = collector.spans
      .filter(({ name, parentSpanId }) => root.test(name) && !parentSpanId)
      .map(({ traceId }) => traceId);
    const spans = collector.spans.filter(({ traceId }) => traceIds.includes(traceId));
    expect(spans.map(({ name }) => name)).toContain(last);
    return spans;
  }, TIMEOUT_MS);
}

/** The names from the root to the span. */
function pathOf(spans: ReceivedSpan[], span: ReceivedSpan): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent ? pathOf(spans, parent) : []), span.name];
}

test('one trace spans a request, its workflows, their activities, SQL, SMTP and webhooks', async () => {
  const isSend = /^POST .*\/inboxes\/:\w+\/messages$/;
  const root = (await traceOf(isSend, 'HTTP POST')).find(({ parentSpanId }) => !parentSpanId);
  expect(root).toMatchObject({
    service: 'agent-email-api',
    kind: 2,
    attributes: {
      'http.response.status_code': expect.anything(),
      'agent_email.request_id': expect.anything(),
    },
  });
  const send = `${root?.name} > StartWorkflow sendMessage > RunWorkflow sendMessage`;
  const webhook = 'StartWorkflow deliverWebhook > RunWorkflow deliverWebhook > RunActivity attemptDelivery';
  await eventually(async () => {
    const spans = collector.spans.filter(({ traceId }) => traceId === root?.traceId);
    expect(spans.map((span) => pathOf(spans, span).join(' > '))).toEqual(
      expect.arrayContaining([
        `${root?.name} > with message_recipients thread_message_ids messages`,
        `${root?.name} > commit`,
        `${send} > RunActivity transmitMessage > smtp transmit`,
        `${send} > RunActivity transmitMessage > commit`,
        `${send} > RunActivity transmitMessage > ${webhook} > HTTP POST`,
      ]),
    );
  }, TIMEOUT_MS);
  // Every span but the root has its parent in the trace, once the runs have ended.
  await eventually(async () => {
    const now = collector.spans.filter(({ traceId }) => traceId === root?.traceId);
    const known = new Set(now.map(({ spanId }) => spanId));
    expect(now.filter(({ parentSpanId }) => parentSpanId && !known.has(parentSpanId))).toEqual([]);
  }, TIMEOUT_MS);
});

test('a received message is one trace from SMTP to its workflow', async () => {
  const spans = await traceOf(/^SMTP receive$/, 'RunWorkflow receiveMessage');
  const paths = spans.map((span) => pathOf(spans, span).join(' > '));
  expect(paths).toContainEqual(
    expect.stringMatching(
      /^SMTP receive > StartWorkflow receiveMessage > RunWorkflow receiveMessage > RunActivity ingestReceipt > /,
    ),
  );
});

test('no span contains an address, content, a secret or a parameter', async () => {
  expect(collector.spans.length).toBeGreaterThan(50);
  expect(collector.received).toContain('deployment.environment');
  for (const text of [MARKER, 'people.example', service.apiKey, service.config.ENCRYPTION_KEY])
    expect(collector.received).not.toContain(text);
});

test('all output is JSON, and a send and a receipt leave one line each with the ids', async () => {
  const lines = (['api', 'workers'] as const).flatMap((name) =>
    service
      .outputOf(name)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  );
  const named = (message: string) => lines.filter(({ msg }) => msg === message);
  const ids = {
    organizationId: expect.stringMatching(/^org_/),
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
  };
  const sends = named('send recorded');
  expect(sends).toEqual([
    expect.objectContaining({
      ...ids,
      status: 'sent',
      requestId: expect.stringMatching(/^req_/),
      workflowId: `send/${sends[0]?.messageId}`,
      activity: 'transmitMessage',
    }),
  ]);
  expect(named('request')).toContainEqual(
    expect.objectContaining({
      ...ids,
      requestId: sends[0]?.requestId,
      resourceIds: [expect.stringMatching(/^inb_/)],
    }),
  );
  // Delivery reports are receipts, too.
  const receipts = named('message received').filter(({ result }) => String(result).startsWith('stored'));
  expect(receipts).toEqual([
    expect.objectContaining({ ...ids, workflowId: `inbound/${receipts[0]?.receiptId}` }),
  ]);
  expect(JSON.stringify(lines)).not.toContain(MARKER);
});

test('refused mail is a log line, a count and an item of the organization’s list', async () => {
  const call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  await eventually(async () => {
    const { body } = await call('GET', '/refusals?from=eve@spam.example');
    expect(body.data).toEqual([
      expect.objectContaining({ direction: 'inbound', stage: 'rcpt', reason: 'sender_blocked', count: 1 }),
    ]);
  }, TIMEOUT_MS);
  const lines = service.outputOf('workers').trimEnd().split('\n');
  expect(lines.filter((line) => line.includes('"mail refused"'))).toHaveLength(1);
  expect(await (await scrape(workersUrl())).text()).toMatch(
    /^agent_email_refused_total\{direction="inbound",stage="rcpt",reason="sender_blocked"\} 1$/m,
  );
});

test('readiness of a worker names what it needs', async () => {
  const response = await fetch(`${workersUrl()}/health/ready`);
  expect([response.status, await response.json()]).toEqual([
    200,
    { status: 'ok', checks: { database: 'ok', temporal: 'ok', storage: 'ok' } },
  ]);
});

test('a deleted schedule comes back, and a paused one stays paused and is reported', async () => {
  const temporal = createTemporalClient(service.config);
  const watch = await watchSchedules({ temporal, logger: pino({ level: 'silent' }) });
  try {
    expect([...watch.states.values()]).toEqual(SCHEDULES.map(() => 'active'));
    const schedules = { lost: RECONCILE_SCHEDULE_ID, paused: CHECK_USAGE_SCHEDULE_ID };
    await temporal.schedule.getHandle(schedules.lost).delete();
    await temporal.schedule.getHandle(schedules.paused).pause('Billing is under repair');
    await watch.check();
    await expect(temporal.schedule.getHandle(schedules.lost).describe()).resolves.toMatchObject({
      state: { paused: false },
    });
    expect(watch.states.get(schedules.lost)).toBe('active');
    expect(watch.states.get(schedules.paused)).toBe('paused');
  } finally {
    watch.stop();
    await temporal.connection.close();
  }
});

test('serves every documented metric to clients with the token', async () => {
  const files = [
    join(DOCS, 'monitoring.md'),
    ...readdirSync(join(DOCS, 'monitoring')).map((file) => join(DOCS, 'monitoring', file)),
  ];
  expect(files.length).toBeGreaterThanOrEqual(3);
  const named = new Set(files.flatMap((file) => namesIn(readFileSync(file, 'utf8'))));
  expect(named.size).toBeGreaterThan(25);
  await eventually(async () => {
    const served = await servedNames();
    const isServed = (name: string) =>
      NOT_IN_A_GOOD_HOUR.has(name) || ['', '_count'].some((suffix) => served.has(`${name}${suffix}`));
    expect([...named].filter((name) => !isServed(name))).toEqual([]);
  }, TIMEOUT_MS);
  for (const url of [service.baseUrl, workersUrl()]) {
    expect((await scrape(url, 'wrong')).status).toBe(401);
    const { headers, status } = await scrape(url);
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')]);
    expect((await fetch(`${url}/metrics?of=queues`)).status).toBe(401);
    expect((await fetch(`${url}/health`)).status).toBe(404);
  }
});
