import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type IsolatedService, startIsolatedService } from '../test/support/isolated-service.ts';
import { sendMessageWorkflowId } from '../workflows/outbound/send-message.contract.ts';
import { startBareWorkflows } from './bare-workflows.ts';
import { runConcurrently } from './measure.ts';
import { startSmtpSink } from './smtp-sink.ts';
import { compareInTurns, type Runner } from './turns.ts';

/** 300 in each slice: in shorter ones, the first and the last sends count too much. */
const MESSAGES = Number(process.env.BENCH_MESSAGES ?? 2_700);
/** Until the processes run compiled code: after a hundred sends, they still take longer. */
const WARM_UP = 1_000;
const CONCURRENCY = 20;
const BARE_ACTIVITY = { type: 'bareActivity', input: { messageId: 'msg' }, activities: 1 };
/** Less than a send takes, so that the last look is not late. */
const PAUSE_MS_PER_MESSAGE = 5;
const SHORTEST_PAUSE_MS = 20;
const TIMEOUT_MS = 300_000;
const AIM = 0.6;
/** Like those of a send: three ids of its own, three that it shares with others, and a stage. */
const BARE_WITH_SEARCH_ATTRIBUTES = {
  ...BARE_ACTIVITY,
  searchAttributes: () => ({
    OrgId: 'org',
    EnvId: 'env',
    InboxId: 'inbox',
    ResourceId: randomUUID(),
    RelatedId: randomUUID(),
    RequestId: randomUUID(),
    Stage: 'sending',
  }),
};

/**
 * `npm run bench -- send`: messages posted over HTTP until the relay has accepted all and the database says `sent`.
 * Baselines on the same Temporal server, in turns: bare workflows with one activity, as a send has, without and with the search
 * attributes of a send, which operators find it by.
 */
export async function benchSend(): Promise<void> {
  const sink = await startSmtpSink();
  const stack = await startIsolatedService({ SMTP_RELAY_PORT: String(sink.port) });
  const bare = await startBareWorkflows(stack.config.TEMPORAL_ADDRESS);
  try {
    const inboxId = await createInbox(stack);
    const runners: Runner[] = [
      {
        name: 'sends',
        run: async (count) => {
          await sendMany(stack, inboxId, count);
        },
      },
      {
        name: 'bare workflow, one activity',
        run: (count) => bare.run(BARE_ACTIVITY, count),
        aim: AIM,
      },
      {
        name: 'the same, with search attributes',
        run: (count) => bare.run(BARE_WITH_SEARCH_ATTRIBUTES, count),
      },
    ];
    for (const { run } of runners) await run(WARM_UP);
    await compareInTurns(MESSAGES, runners);
    console.log(`history events per send: ${await historyEvents(stack)}`);
  } finally {
    await bare.stop();
    await stack.stop();
    await sink.stop();
  }
}

export async function post(
  stack: Pick<IsolatedService, 'baseUrl' | 'apiKey'>,
  path: string,
  body: object,
): Promise<{ id: string }> {
  const response = await fetch(`${stack.baseUrl}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path} returned ${response.status}: ${await response.text()}`);
  return (await response.json()) as { id: string };
}

export async function createInbox(stack: IsolatedService): Promise<string> {
  return (await post(stack, '/inboxes', { display_name: 'Bench' })).id;
}

/** @returns seconds from the first request to the last message `sent`. */
export async function sendMany(stack: IsolatedService, inboxId: string, count: number): Promise<number> {
  const database = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await database.connect();
  const { rows } = await database.query<{ last: string }>(
    `select coalesce(max(id), '') as last from messages`,
  );
  const countSent = async () => {
    const found = await database.query<{ sent: number }>(
      `select count(*)::int as sent from messages where id > $1 and inbox_id = $2 and status = 'sent'`,
      [rows[0]?.last, inboxId],
    );
    return found.rows[0]?.sent ?? 0;
  };
  const startedAt = performance.now();
  await runConcurrently(count, CONCURRENCY, async (index) => {
    await post(stack, `/inboxes/${inboxId}/messages`, {
      to: [{ email: `person-${index}@people.example` }],
      subject: `Bench ${index}`,
      text_body: 'Hello from the bench.',
    });
  });
  for (;;) {
    const left = count - (await countSent());
    if (left === 0) break;
    if (performance.now() - startedAt > TIMEOUT_MS) throw new Error(`${left} messages are not sent`);
    // Each look takes processor time from what is measured.
    await pause(Math.max(SHORTEST_PAUSE_MS, left * PAUSE_MS_PER_MESSAGE));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  await database.end();
  return seconds;
}

async function historyEvents(stack: IsolatedService): Promise<number> {
  const temporal = await stack.connectToTemporal();
  const database = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await database.connect();
  const { rows } = await database.query('select id from messages order by id desc limit 1');
  const handle = temporal.workflow.getHandle(sendMessageWorkflowId(rows[0].id));
  const { events } = await handle.fetchHistory();
  await database.end();
  await temporal.connection.close();
  return events?.length ?? 0;
}
