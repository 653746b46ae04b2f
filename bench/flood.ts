import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { createApiKey } from '../domain/api-keys/create-api-key.ts';
import { PERMISSIONS } from '../domain/identity/permissions.ts';
import { createOrganization } from '../domain/organizations/create-organization.ts';
import { createUser } from '../domain/people/users.ts';
import { createDatabase } from '../platform/database/database.ts';
import { type IsolatedService, startIsolatedService, waitFor } from '../test/support/isolated-service.ts';
import { handOver } from './inbound.ts';
import { percentile } from './measure.ts';
import { createInbox, post } from './send.ts';
import { startSmtpSink } from './smtp-sink.ts';

const MESSAGES = Number(process.env.BENCH_MESSAGES ?? 6000);
const ORGANIZATIONS = 10;
const SENDS = 100;
const SEND_INTERVAL_MS = 100;
const WARM_UP = 100;
const TARGET_MS = 1000;

/** The processes of a deployment, besides the API. */
const SEPARATE_PROCESSES = [
  'workers/outbound.ts',
  'workers/inbound.ts',
  'workers/webhooks.ts',
  'workers/maintenance.ts',
  'workers/inbound-smtp.ts',
];
/** `BENCH_PROCESSES` limits the bench to `one` or `several`. */
const ARRANGEMENTS = ['one', 'several'].filter((name) => (process.env.BENCH_PROCESSES ?? name) === name);

/**
 * `npm run bench -- flood`: time from the API call to the relay's reply for 100 sends of ten organizations, on an idle
 * service and while one inbox of another organization receives BENCH_MESSAGES (6,000) messages as fast as the service
 * accepts them. Measured with all workers in one process, and in several.
 */
export async function benchFlood(): Promise<void> {
  for (const arrangement of ARRANGEMENTS) {
    const clock = new SendClock();
    const sink = await startSmtpSink((head) => clock.accepted(head));
    const stack = await startIsolatedService({ SMTP_RELAY_PORT: String(sink.port) });
    try {
      if (arrangement === 'several') await separate(stack);
      await measure(arrangement, stack, clock);
    } finally {
      await stack.stop();
      await sink.stop();
    }
  }
}

async function separate(stack: IsolatedService): Promise<void> {
  await stack.kill('workers');
  for (const script of SEPARATE_PROCESSES) await stack.startScript(script, {});
}

async function measure(arrangement: string, stack: IsolatedService, clock: SendClock): Promise<void> {
  const tenants = await createTenants(stack);
  const flooded = await openInbox(stack);
  await handOver(stack.inboundPort, flooded.email, WARM_UP);
  await sendAll(tenants, clock);
  await waitFor('the warm-up', () => flooded.assertStored(WARM_UP));
  const idle = await sendAll(tenants, clock);

  const startedAt = performance.now();
  const secondsSince = () => (performance.now() - startedAt) / 1000;
  const accepting = handOver(stack.inboundPort, flooded.email, MESSAGES).then(secondsSince);
  // The backlog grows while messages are accepted; the sends begin in its midst.
  await waitFor('a quarter of the flood', () => flooded.assertReceived(WARM_UP + MESSAGES / 4));
  const waitingBefore = await flooded.waiting();
  const sending = sendAll(tenants, clock).then(async (durations) => ({
    durations,
    waiting: await flooded.waiting(),
  }));
  const accepted = await accepting;
  await waitFor('all messages to be stored', () => flooded.assertStored(WARM_UP + MESSAGES), 3_600_000);
  const stored = secondsSince();
  const { durations: during, waiting: waitingAfter } = await sending;
  await flooded.close();

  const added = percentile(during, 0.95) - percentile(idle, 0.95);
  console.table({
    [`idle, ${arrangement} process(es)`]: row(idle),
    [`flood, ${arrangement} process(es)`]: row(during),
  });
  console.log(
    `added at p95: ${Math.round(added)} ms (aim: at most ${TARGET_MS} ms, ${added <= TARGET_MS ? 'met' : 'MISSED'})`,
  );
  console.log(
    `flood of ${MESSAGES}: accepted in ${accepted.toFixed(1)} s, stored in ${stored.toFixed(1)} s; ` +
      `${waitingBefore} waited when the sends began, ${waitingAfter} when the last one left`,
  );
}

const row = (durations: number[]) => ({
  sends: durations.length,
  'p50 ms': Math.round(percentile(durations, 0.5)),
  'p95 ms': Math.round(percentile(durations, 0.95)),
  'max ms': Math.round(Math.max(...durations)),
});

interface Tenant {
  stack: IsolatedService;
  inboxId: string;
}

/** Ten organizations besides the one whose inbox is flooded. */
async function createTenants(stack: IsolatedService): Promise<Tenant[]> {
  const database = createDatabase({ url: stack.config.DATABASE_URL, poolSize: 1 });
  const keys = await database.systemTransaction(async ({ db }) => {
    const tokens: string[] = [];
    for (let index = 0; index < ORGANIZATIONS; index += 1) {
      const ownerId = await createUser(db, { email: `owner-${index}@tenants.example`, passwordHash: '' });
      const { organizationId } = await createOrganization(db, {
        name: `Tenant ${index}`,
        tier: 'enterprise',
        ownerId,
      });
      const input = { organizationId, environmentId: null, name: 'Bench', permissions: [...PERMISSIONS] };
      tokens.push((await createApiKey(db, input, 'live')).token);
    }
    return tokens;
  });
  await database.close();
  return Promise.all(
    keys.map(async (apiKey) => {
      const tenant = { ...stack, apiKey };
      return { stack: tenant, inboxId: await createInbox(tenant) };
    }),
  );
}

/** Measures each send from its API call until the relay accepts it. */
class SendClock {
  readonly #waiting = new Map<string, (at: number) => void>();
  #count = 0;

  accepted(head: string): void {
    const subject = /^Subject: (Timed \d+)/m.exec(head)?.[1] ?? '';
    this.#waiting.get(subject)?.(performance.now());
    this.#waiting.delete(subject);
  }

  async time(send: (subject: string) => Promise<unknown>): Promise<number> {
    this.#count += 1;
    const subject = `Timed ${this.#count}`;
    const startedAt = performance.now();
    const [left] = await Promise.all([
      new Promise<number>((resolve) => this.#waiting.set(subject, resolve)),
      send(subject),
    ]);
    return left - startedAt;
  }
}

/** Sends at a steady rate, so that a send that waits does not delay the next one. */
async function sendAll(tenants: Tenant[], clock: SendClock): Promise<number[]> {
  const sends: Promise<number>[] = [];
  for (let index = 0; index < SENDS; index += 1) {
    const { stack, inboxId } = tenants[index % tenants.length] as Tenant;
    sends.push(
      clock.time((subject) =>
        post(stack, `/inboxes/${inboxId}/messages`, {
          to: [{ email: `person-${index}@people.example` }],
          subject,
          text_body: 'Hello from the bench.',
        }),
      ),
    );
    await pause(SEND_INTERVAL_MS);
  }
  return Promise.all(sends);
}

async function openInbox(stack: IsolatedService) {
  const inboxId = await createInbox(stack);
  const database = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await database.connect();
  const { rows } = await database.query('select email from inboxes where id = $1', [inboxId]);
  const count = async (table: string) =>
    Number(
      (await database.query(`select count(*) from ${table} where inbox_id = $1`, [inboxId])).rows[0].count,
    );
  const assertCount = async (table: string, goal: number) => {
    if ((await count(table)) < goal) throw new Error('not yet');
  };
  return {
    email: rows[0].email as string,
    assertReceived: (goal: number) => assertCount('inbound_receipts', goal),
    assertStored: (goal: number) => assertCount('messages', goal),
    waiting: async () => (await count('inbound_receipts')) - (await count('messages')),
    close: () => database.end(),
  };
}
