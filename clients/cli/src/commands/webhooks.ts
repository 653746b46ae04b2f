import { setTimeout as sleep } from 'node:timers/promises';
import { credentialError, timedOut, usageError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import type { AgentEmail, WebhookJob } from '../sdk.ts';
import { openSession, type Session } from '../session.ts';
import { formatFields } from '../terminal/table.ts';

/** A sign-in never manages webhooks, so the person needs a key for this. */
async function openWithKey(context: Context, command: string): Promise<Session> {
  const session = await openSession(context);
  if (session.credential.kind === 'key') return session;
  throw credentialError(
    `agent-email ${command} needs a key with webhooks:manage. A sign-in never has that permission.`,
    'Set AGENT_EMAIL_API_KEY, or log in with a key: agent-email login --with-key --profile NAME.',
    'key_required',
  );
}

async function findEndpointId({ webhookEndpoints }: AgentEmail, id: string | undefined): Promise<string> {
  if (id !== undefined) return id;
  const { data } = await webhookEndpoints.list({ limit: 2 });
  const [first, second] = data;
  if (first && !second) return first.id;
  throw usageError(
    first ? 'There are several webhook endpoints.' : 'There is no webhook endpoint.',
    first
      ? 'Name one with --endpoint.'
      : 'Create one in the API. Without one, agent-email webhooks listen shows events.',
  );
}

/** Sends an event with sample data to an endpoint. */
export async function trigger(
  context: Context,
  eventType: string,
  { endpoint }: { endpoint?: string },
): Promise<void> {
  const { client } = await openWithKey(context, 'webhooks trigger');
  const id = await findEndpointId(client, endpoint);
  const delivery = await client.webhookEndpoints.test(id, { event_type: eventType as 'message.received' });
  context.output.answer(delivery, () =>
    formatFields([
      ['Delivery', delivery.id],
      ['Endpoint', id],
      ['Event', eventType],
      ['Status', delivery.status],
    ]),
  );
}

export interface ReplayOptions {
  since?: string;
  until?: string;
  types?: string[];
  onlyFailed?: true;
  /** Seconds. */
  wait?: number;
}

/** Delivers one delivery again, or the events of a time to an endpoint. */
export async function replay(context: Context, target: string, options: ReplayOptions): Promise<void> {
  const { output } = context;
  const { since, until, types, onlyFailed, wait } = options;
  if (target.startsWith('whd_')) {
    if (since || until || types || onlyFailed || wait !== undefined)
      throw usageError('A delivery is repeated without options.', 'Leave them out, or name an endpoint.');
    const { client } = await openWithKey(context, 'replay');
    const delivery = await client.webhookDeliveries.retry(target);
    return output.answer(delivery, () =>
      formatFields([
        ['Delivery', delivery.id],
        ['Status', delivery.status],
      ]),
    );
  }
  if (since === undefined) throw usageError('From when?', 'Give --since 2026-11-23T00:00:00Z.');
  const { client } = await openWithKey(context, 'replay');
  const started = await client.webhookEndpoints.replay(target, {
    since,
    until,
    event_types: types as ['message.received'] | undefined,
    only_failed: onlyFailed,
  });
  const job = wait === undefined ? started : await waitForJob(client, started.id, wait);
  output.answer(job, () => jobLines(job));
}

const jobLines = (job: Partial<WebhookJob> & { id: string }): string[] =>
  formatFields([
    ['Job', job.id],
    ['Status', job.status],
    ['Deliveries', job.deliveries],
    ['Made', job.made],
    ['Expedited', job.expedited],
    ['Skipped', job.skipped],
    ['Detail', job.detail],
  ]);

async function waitForJob(client: AgentEmail, id: string, timeoutSeconds: number): Promise<WebhookJob> {
  const deadline = Date.now() + timeoutSeconds * 1_000;
  for (;;) {
    const job = await client.webhookJobs.get(id);
    if (job.completed_at !== null) return job;
    if (Date.now() > deadline)
      throw timedOut(`The job ${id} did not end within ${timeoutSeconds} s.`, 'It goes on by itself.');
    await sleep(1_000);
  }
}
