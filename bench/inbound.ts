import { fork } from 'node:child_process';
import { resolve } from 'node:path';
import nodemailer from 'nodemailer';
import pg from 'pg';
import {
  type IsolatedService,
  startIsolatedService,
  terminate,
  waitFor,
} from '../test/support/isolated-service.ts';
import { startBareWorker } from './bare-workflows.ts';
import { cpuBetween, cpuSeconds } from './cpu.ts';
import { printFigures, runConcurrently } from './measure.ts';
import { createInbox } from './send.ts';

const MESSAGES = Number(process.env.BENCH_MESSAGES ?? 1000);
const WARM_UP = 100;
const CONCURRENCY = 20;
const TARGET = 0.5;

/**
 * `npm run bench -- inbound`: measures messages delivered by SMTP until all are accepted, and until all are stored,
 * threaded and announced. Baselines: a bare smtp-server that only parses with mailparser, and one that also stores
 * messages on the same servers and starts a bare workflow.
 */
export async function benchInbound(): Promise<void> {
  const stack = await startIsolatedService({});
  try {
    const inboxId = await createInbox(stack);
    const database = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
    await database.connect();
    const { rows } = await database.query('select email from inboxes where id = $1', [inboxId]);
    const stored = async () =>
      Number(
        (await database.query('select count(*) from messages where inbox_id = $1', [inboxId])).rows[0].count,
      );
    const deliver = async (count: number) => {
      const goal = (await stored()) + count;
      const startedAt = performance.now();
      await handOver(stack.inboundPort, rows[0].email, count);
      const accepted = (performance.now() - startedAt) / 1000;
      await waitFor('all messages to be stored', async () => {
        if ((await stored()) < goal) throw new Error('not yet');
      });
      return { accepted, stored: (performance.now() - startedAt) / 1000 };
    };
    await deliver(WARM_UP);
    const before = cpuSeconds();
    const ours = await deliver(MESSAGES);
    console.log('CPU seconds of the service', cpuBetween(before, cpuSeconds()));
    await database.end();
    const floor = MESSAGES / (await bareInbound());
    const durable = await durableInbound(stack);
    printFigures([
      {
        name: 'accepted / parse only',
        measured: MESSAGES / ours.accepted,
        baseline: floor,
        unit: '1/s',
        target: TARGET,
      },
      {
        name: 'accepted / durable baseline',
        measured: MESSAGES / ours.accepted,
        baseline: MESSAGES / durable.accepted,
        unit: '1/s',
        target: TARGET,
      },
      {
        name: 'stored / durable baseline',
        measured: MESSAGES / ours.stored,
        baseline: MESSAGES / durable.done,
        unit: '1/s',
        target: TARGET,
      },
    ]);
    console.log(
      `resident memory of the workers: ${Math.round(stack.residentBytes('workers') / 1024 / 1024)} MiB`,
    );
  } finally {
    await stack.stop();
  }
}

export async function handOver(port: number, to: string, count: number): Promise<void> {
  const transport = nodemailer.createTransport({
    pool: true,
    host: '127.0.0.1',
    port,
    secure: false,
    ignoreTLS: true,
    maxConnections: CONCURRENCY,
    maxMessages: Number.POSITIVE_INFINITY,
  });
  await runConcurrently(count, CONCURRENCY, async (index) => {
    await transport.sendMail({
      from: `person-${index}@people.example`,
      to,
      subject: `Bench ${index}`,
      text: 'A few lines of text.\r\n'.repeat(40),
      html: '<p>A few lines of text.</p>'.repeat(40),
    });
  });
  transport.close();
}

async function bareInbound(): Promise<number> {
  const server = fork(resolve(import.meta.dirname, 'bare-inbound.ts'));
  const port = await new Promise<number>((done) =>
    server.once('message', (message) => done(Number(message))),
  );
  await handOver(port, 'bench@agents.example', WARM_UP);
  const startedAt = performance.now();
  await handOver(port, 'bench@agents.example', MESSAGES);
  const seconds = (performance.now() - startedAt) / 1000;
  await terminate(server);
  return seconds;
}

/** A server that also stores each message and starts a workflow for it. Returns seconds until all are accepted, and until all have run. */
async function durableInbound(stack: IsolatedService): Promise<{ accepted: number; done: number }> {
  const worker = await startBareWorker(stack.config.TEMPORAL_ADDRESS);
  const environment = Object.fromEntries(
    Object.entries(stack.config).map(([name, value]) => [name, String(value)]),
  );
  const server = fork(resolve(import.meta.dirname, 'durable-inbound.ts'), [stack.ownerDatabaseUrl], {
    env: { ...process.env, ...environment },
  });
  const port = await new Promise<number>((done) =>
    server.once('message', (message) => done(Number(message))),
  );
  const take = async (count: number) => {
    const goal = worker.ran() + count;
    const startedAt = performance.now();
    await handOver(port, 'bench@agents.example', count);
    const accepted = (performance.now() - startedAt) / 1000;
    await waitFor('the bare workflows', async () => {
      if (worker.ran() < goal) throw new Error('not yet');
    });
    return { accepted, done: (performance.now() - startedAt) / 1000 };
  };
  await take(WARM_UP);
  const seconds = await take(MESSAGES);
  await Promise.all([terminate(server), worker.stop()]);
  return seconds;
}
