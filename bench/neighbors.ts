import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { MEMORY_ENVIRONMENTS } from '../dev/services.ts';
import { createApiKey } from '../domain/api-keys/create-api-key.ts';
import { PERMISSIONS } from '../domain/identity/permissions.ts';
import { createOrganization } from '../domain/organizations/create-organization.ts';
import { createUser } from '../domain/people/users.ts';
import { createDatabase } from '../platform/database/database.ts';
import { RawSmtpClient } from '../test/inbound/raw-smtp-client.ts';
import { type IsolatedService, startIsolatedService } from '../test/support/isolated-service.ts';
import { openRequest } from '../test/support/open-request.ts';
import { cpuBetween, cpuSeconds } from './cpu.ts';
import { percentile } from './measure.ts';
import { FORCES, type Greedy, listenOn } from './neighbor-forces.ts';
import { createInbox, post } from './send.ts';
import { startSmtpSink } from './smtp-sink.ts';
import { startForces } from './start-forces.ts';

/** With fewer than 100, the p99 is the maximum. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 100);
/** Between two probes of a kind. Six kinds take turns, so that what is idle is idle: one probe each quarter of a second. */
const ROUND_MS = 1_500;
const KEYS = 22;
const TARGET_ADDED_MS = 500;
const TARGET_MIB = 700;
const TIMEOUT_MS = 60_000;
const MAX_SETTLE_MS = 600_000;
const FORCE_NAMES = Object.keys(FORCES);
/** The service's own rate limits, which other benches switch off: they protect tenants from each other, too. */
const DEFAULT_RATE_LIMITS = {
  RATE_LIMIT_PER_SECOND: '',
  RATE_LIMIT_BURST: '',
  ORGANIZATION_RATE_LIMIT_PER_SECOND: '',
  ORGANIZATION_RATE_LIMIT_BURST: '',
};
const TOGETHER = 'all together';
const CHOSEN = process.env.BENCH_FORCES?.split(';');

/**
 * `npm run bench -- neighbors`: one organization takes each shared capacity at full force, one after the other, then all of
 * them at once. Measures calls, webhooks, sends, mail and streams of another one, on an idle service and meanwhile, and the
 * memory of the API. BENCH_ROUNDS (100) sets how often each is measured, BENCH_FORCES names some of the forces, separated
 * by semicolons.
 */
export async function benchNeighbors(): Promise<void> {
  const arrivals = new Arrivals();
  const sink = await startSmtpSink((head) => arrivals.note(/^Subject: (probe \d+)/m.exec(head)?.[1]));
  const stack = await startIsolatedService(
    { ...DEFAULT_RATE_LIMITS, SMTP_RELAY_PORT: String(sink.port) },
    MEMORY_ENVIRONMENTS,
  );
  const memory = watchMemory(stack);
  try {
    const [greedy, other] = await createTenants(stack);
    const probes = await createProbes(other, arrivals);
    await measure(probes, 5);
    const idle = await measure(probes, ROUNDS);
    const rows: Record<string, object> = { idle: describe(idle) };
    let isMet = true;
    for (const name of [...FORCE_NAMES, TOGETHER]) {
      if (CHOSEN && !CHOSEN.includes(name)) continue;
      const before = cpuSeconds();
      const stop = await startForces(name === TOGETHER ? FORCE_NAMES : [name], greedy);
      const during = await measure(probes, ROUNDS);
      await stop();
      console.log(`${name}: processor seconds`, cpuBetween(before, cpuSeconds()));
      rows[name] = { ...describe(during), 'API MiB': memory.peak() };
      console.log(name, rows[name]);
      const missed = Object.keys(idle).filter(
        (probe) => p99(during[probe]) > p99(idle[probe]) + TARGET_ADDED_MS,
      );
      if (missed.length > 0) console.log(`${name}: MISSED for ${missed.join(', ')}`);
      isMet &&= missed.length === 0;
      // Its backlog may take minutes.
      await settle(stack, probes, idle);
    }
    console.table(rows);
    console.log(`aim: at most ${TARGET_ADDED_MS} ms more than idle at p99: ${isMet ? 'met' : 'MISSED'}`);
    console.log(
      `memory of the API: ${memory.peak()} MiB (aim: at most ${TARGET_MIB} MiB, ${memory.peak() <= TARGET_MIB ? 'met' : 'MISSED'})`,
    );
  } finally {
    memory.stop();
    await stack.stop();
    await sink.stop();
  }
}

/** Does one thing as the other organization. Resolves when it has succeeded. */
type Probe = () => Promise<void>;

async function createProbes(
  { stack, inboxId, email, secondEmail }: Tenant,
  arrivals: Arrivals,
): Promise<Record<string, Probe>> {
  const receiver = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    arrivals.note((JSON.parse(body) as { id: string }).id);
    response.writeHead(200).end();
  });
  const url = await listenOn(receiver);
  receiver.unref();
  const endpoint = await post(stack, '/webhooks/endpoints', { url, events: ['domain.verified'] });
  const authorization = `Bearer ${stack.apiKey}`;
  let count = 0;
  const nextName = () => {
    count += 1;
    return `probe ${count}`;
  };
  const headers = { authorization };
  return {
    async call() {
      const response = await fetch(`${stack.baseUrl}/api/v1/inboxes/${inboxId}`, { headers });
      if (!response.ok) throw new Error(`status ${response.status}`);
      await response.arrayBuffer();
    },
    async webhook() {
      const { event_id: eventId } = (await post(
        stack,
        `/webhooks/endpoints/${endpoint.id}/test`,
        {},
      )) as unknown as {
        event_id: string;
      };
      await arrivals.of(eventId);
    },
    async send() {
      const subject = nextName();
      const to = [{ email: 'person@people.example' }];
      await Promise.all([
        arrivals.of(subject),
        post(stack, `/inboxes/${inboxId}/messages`, { to, subject, text_body: 'Hello' }),
      ]);
    },
    async mail() {
      const subject = nextName();
      const found = fetch(
        `${stack.baseUrl}/api/v1/inboxes/${inboxId}/messages/wait?timeout_seconds=60&subject=${encodeURIComponent(`${subject}.`)}`,
        { headers },
      );
      await deliver(stack, email, `${subject}.`, 100);
      const response = await found;
      if (!response.ok || 'timed_out' in ((await response.json()) as object)) throw new Error('no mail');
    },
    'large mail': () => deliver(stack, secondEmail, nextName(), 2_000_000),
    async stream() {
      const request = openRequest(`${stack.baseUrl}/api/v1/events/stream`, {
        token: stack.apiKey,
        method: 'GET',
      });
      try {
        if ((await request.status()) !== 200) throw new Error(request.text.slice(0, 12));
        while (!request.text.includes(': connected')) await pause(5);
      } finally {
        request.close();
      }
    },
  };
}

/** Resolves when the message is accepted. */
async function deliver(stack: IsolatedService, to: string, subject: string, bytes: number): Promise<void> {
  const client = await RawSmtpClient.greeted(stack.inboundPort, '127.0.0.9');
  await client.startData(to);
  client.write(
    `From: ada@people.example\r\nSubject: ${subject}\r\nMessage-ID: <${performance.now()}@people.example>\r\n\r\n`,
  );
  client.write(`${'x'.repeat(98)}\r\n`.repeat(Math.ceil(bytes / 100)));
  client.write('.\r\n');
  const reply = await client.reply();
  client.close();
  if (!reply.startsWith('250')) throw new Error(reply);
}

/** Runs each probe once in every round, in turn and without waiting for the others. A failure counts as the timeout. */
async function measure(probes: Record<string, Probe>, rounds: number): Promise<Record<string, number[]>> {
  const durations: Record<string, number[]> = {};
  const running: Promise<void>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, probe] of Object.entries(probes)) {
      running.push(time(name, probe, durations));
      await pause(ROUND_MS / Object.keys(probes).length);
    }
  }
  await Promise.all(running);
  return durations;
}

/** Waits until what a force left has been worked off, so that the next one is measured by itself. */
async function settle(
  { ownerDatabaseUrl }: IsolatedService,
  probes: Record<string, Probe>,
  idle: Record<string, number[]>,
): Promise<void> {
  const startedAt = performance.now();
  const isOver = () => performance.now() - startedAt > MAX_SETTLE_MS;
  const client = new pg.Client({ connectionString: ownerDatabaseUrl });
  await client.connect();
  // Runs that Temporal has not accepted yet: a burst waits here.
  while (!isOver() && (await client.query('select from outbox limit 1')).rowCount !== 0) await pause(1_000);
  await client.end();
  while (!isOver()) {
    const now = await measure(probes, 2);
    if (Object.keys(idle).every((name) => p99(now[name]) <= p99(idle[name]) + TARGET_ADDED_MS)) break;
  }
  console.log(`idle again after ${Math.round((performance.now() - startedAt) / 1_000)} s`);
}

async function time(name: string, probe: Probe, durations: Record<string, number[]>): Promise<void> {
  const startedAt = performance.now();
  const result = await Promise.race([
    probe().then(
      () => undefined,
      (error: Error) => error.message,
    ),
    pause(TIMEOUT_MS, 'timeout', { ref: false }),
  ]);
  if (result !== undefined) console.log(`${name} failed: ${result}`);
  durations[name] ??= [];
  durations[name].push(result === undefined ? performance.now() - startedAt : TIMEOUT_MS);
}

const p99 = (values: number[] = []) => percentile(values, 0.99);
const describe = (durations: Record<string, number[]>) =>
  Object.fromEntries(
    Object.entries(durations).map(([name, values]) => [`${name} p99 ms`, Math.round(p99(values))]),
  );

/** When something has arrived that a probe waits for. */
class Arrivals {
  readonly #seen = new Set<string>();
  readonly #waiting = new Map<string, () => void>();

  note(name: string | undefined): void {
    if (name === undefined) return;
    this.#seen.add(name);
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
  }

  async of(name: string): Promise<void> {
    if (!this.#seen.has(name)) await new Promise<void>((done) => this.#waiting.set(name, done));
  }
}

interface Tenant {
  stack: IsolatedService;
  inboxId: string;
  email: string;
  /** Of another inbox, for large mail. */
  secondEmail: string;
}

async function createTenants(stack: IsolatedService): Promise<[Greedy, Tenant]> {
  const database = createDatabase({ url: stack.config.DATABASE_URL, poolSize: 1 });
  const tokens = await database.systemTransaction(async ({ db }) => {
    const tenants: { organizationId: string; keys: string[] }[] = [];
    for (const name of ['greedy', 'other']) {
      const ownerId = await createUser(db, { email: `${name}@tenants.example`, passwordHash: '' });
      const { organizationId } = await createOrganization(db, { name, tier: 'enterprise', ownerId });
      const input = { organizationId, environmentId: null, name: 'Bench', permissions: [...PERMISSIONS] };
      const keys: string[] = [];
      for (let made = 0; made < KEYS; made += 1) keys.push((await createApiKey(db, input, 'live')).token);
      tenants.push({ organizationId, keys });
    }
    return tenants;
  });
  await database.close();
  const client = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await client.connect();
  const tenants = await Promise.all(
    tokens.map(async ({ organizationId, keys }) => {
      const own = { ...stack, apiKey: keys[0] ?? '' };
      const inboxIds = [await createInbox(own), await createInbox(own)];
      const { rows } = await client.query<{ email: string }>(
        'select email from inboxes where id = any($1) order by array_position($1, id)',
        [inboxIds],
      );
      const [email = '', secondEmail = ''] = rows.map((row) => row.email);
      const [inboxId = ''] = inboxIds;
      return { stack: own, keys, organizationId, inboxId, email, secondEmail };
    }),
  );
  await client.end();
  const [greedy, other] = tenants;
  if (!greedy || !other) throw new Error('There are two tenants');
  return [greedy, other];
}

function watchMemory(stack: IsolatedService) {
  let peakBytes = 0;
  const timer = setInterval(() => {
    peakBytes = Math.max(peakBytes, stack.residentBytes('api'));
  }, 50);
  return { peak: () => Math.round(peakBytes / 1_048_576), stop: () => clearInterval(timer) };
}
