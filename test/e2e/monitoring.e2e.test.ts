import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { findFreePort } from '../../dev/stack/ports.ts';
import { apiClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(180_000);
const TIMEOUT_MS = 90_000;
const DOCS = resolve(import.meta.dirname, '../../docs');
const METRICS_TOKEN = 'let-me-see';

/** Documented metrics that are served only after they first occur. */
const NOT_IN_A_GOOD_HOUR = new Map([
  ['temporal_workflow_failed_total', 'no workflow fails by design'],
  ['temporal_workflow_task_execution_failed_total', 'code that does not replay, or a workflow that throws'],
]);

let service: IsolatedService;
let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = new WebhookReceiver();
  service = await startIsolatedService({
    METRICS_TOKEN,
    TEMPORAL_METRICS_ADDRESS: `127.0.0.1:${await findFreePort()}`,
  });
});
afterAll(async () => {
  await service?.stop();
  await receiver?.stop();
});

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

/** Every metric that the page, the dashboard or the alerts mention. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/\b(?:agent_email|http|temporal|nodejs|process)_[a-z0-9_]+\b/g)].map(
    ([name]) => name,
  );
}

async function generateActivity(): Promise<void> {
  const call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  const { body: inbox } = await call('POST', '/inboxes', {});
  // The first response makes an activity fail.
  let answers = 0;
  receiver.answerWith((_request, response) => {
    answers += 1;
    response.writeHead(answers === 1 ? 503 : 200).end();
  });
  await call('POST', '/webhooks/endpoints', { url: await receiver.start(), events: ['message.received'] });
  await call('POST', `/inboxes/${inbox.id}/messages`, {
    to: [{ email: 'ada@people.example' }],
    text_body: 'Hello',
  });
  const relay = nodemailer.createTransport({ host: '127.0.0.1', port: service.inboundPort, ignoreTLS: true });
  await relay.sendMail({ from: 'ada@people.example', to: inbox.email, subject: 'Hello', text: 'Hello' });
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

test('serves every documented metric to clients with the token', async () => {
  await generateActivity();
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
