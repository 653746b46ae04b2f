import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { sql } from 'kysely';
import { pino } from 'pino';
import { withApplicationFailures } from '../../activities/failures.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { eventually } from '../support/eventually.ts';
import { createIsolatedDatabase } from '../support/isolated-database.ts';
import { arrangeSending, dispatchOnce } from '../support/outbound-mail.ts';
import { query } from '../support/query.ts';
import { usePostgres, useWorkerDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';
import { useResource } from '../support/use-resource.ts';

const database = useWorkerDatabase();
const owner = usePostgres('ownerUrl');
const readLog = () => readFileSync(testStack().postgres.logFile, 'utf8');

const MARKER = 'secretMarker7f3a';

async function arrange(on = database) {
  const world = await arrangeSending(on);
  const { message } = await world.sends.send(world.scope, world.inbox.id, {
    to: [{ email: `${MARKER}@people.example`, name: MARKER }],
    cc: [],
    bcc: [],
    replyTo: [],
    subject: `A subject ${MARKER}`,
    textBody: `A body: it's ${MARKER} \\ ?`,
    htmlBody: `<p>${MARKER}</p>`,
    labels: [],
    headers: { 'X-Campaign': MARKER },
  });
  return { ...world, id: message.id };
}

/** What the service's log and a workflow history contain about an error. */
async function describeError(error: unknown): Promise<string> {
  const lines: string[] = [];
  pino({}, { write: (line) => void lines.push(line) }).error({ err: error }, 'failed');
  const environment = new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
  const failure = await environment
    .run(() => withApplicationFailures(() => Promise.reject(error)))
    .catch((reason: Error) => `${reason.message} ${reason.stack} ${JSON.stringify(reason)}`);
  return `${lines.join('')} ${String(failure)}`;
}

interface FailingStatement {
  name: string;
  code: string;
  fail(db: Db, world: Awaited<ReturnType<typeof arrange>>): Promise<unknown>;
}

const FAILURES: FailingStatement[] = [
  {
    name: 'a unique violation, whose detail names the key',
    code: '23505',
    async fail(db, { inbox, scope }) {
      const other = await arrange();
      await db
        .updateTable('inboxes')
        .set({ email: `${MARKER}@${scope.organizationId}` })
        .where('id', '=', anyOf([inbox.id, other.inbox.id]))
        .execute();
    },
  },
  {
    name: 'a not-null violation, whose detail contains the row',
    code: '23502',
    fail: (db, { id }) =>
      db
        .updateTable('messages')
        .set({ subject: null as unknown as string, preview: MARKER })
        .where('id', '=', id)
        .execute(),
  },
  {
    name: 'a check violation',
    code: '23514',
    fail: (db, { scope }) =>
      db
        .updateTable('organizations')
        .set({ tier: MARKER as 'free' })
        .where('id', '=', scope.organizationId)
        .execute(),
  },
  {
    name: 'text of another type, which the message quotes',
    code: '22P02',
    fail: (db) => query({ db }, sql`select ${MARKER}::int`),
  },
  {
    name: 'a malformed search query',
    code: '42601',
    fail: (db) => query({ db }, sql`select to_tsquery('simple', ${`${MARKER} & &`})`),
  },
  {
    name: 'a timeout',
    code: '57014',
    async fail(db) {
      await query({ db }, sql`set local statement_timeout = 20`);
      await query({ db }, sql`select pg_sleep(60) from messages where subject = ${MARKER} or true`);
    },
  },
];

describe('PostgreSQL’s log, the service’s log and workflow histories contain no mail after', () => {
  test.each(FAILURES)('$name', async ({ code, fail }) => {
    const world = await arrange();
    const logged = readLog().length;
    const failure = await database
      .systemTransaction(({ db }) => fail(db, world))
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(failure).toMatchObject({ code });
    await eventually(() => expect(readLog().slice(logged)).toMatch(/ERROR: /));
    // The message of an error is PostgreSQL's own, which no setting shortens.
    const log = readLog()
      .slice(logged)
      .replace(/ERROR: .*/g, '');
    expect(log).toContain('STATEMENT: ');
    expect(log).not.toContain(MARKER);
    expect(await describeError(failure)).not.toContain(MARKER);
  });
});

describe('with every statement logged', () => {
  const NAME = 'private_logs';
  const isolated = useResource(
    () => createIsolatedDatabase(NAME),
    (created) => created.close(),
  );

  test('PostgreSQL’s log contains no mail while a message is sent', async () => {
    await owner.query(`alter database ${NAME} set log_statement = 'all'`);
    // Sessions keep the settings they started with.
    await owner.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [NAME]);
    const logged = readLog().length;
    const world = await arrange(isolated);
    await dispatchOnce(world, world.id);
    await eventually(() => expect(readLog().slice(logged)).toMatch(/insert into "messages".*\$1/s));
    expect(readLog().slice(logged)).not.toContain(MARKER);
  });
});
