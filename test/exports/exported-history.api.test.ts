import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { EXPORTED_HISTORY } from '../../domain/exports/exported-history.ts';
import type { RangeSource } from '../../domain/exports/exported-table.ts';
import { type PagePosition, readNextLines } from '../../domain/exports/read-pages.ts';
import { COUNT_COLUMNS } from '../../domain/metrics/metric-counts.ts';
import { applyMetricDeltas } from '../../domain/metrics/metric-deltas.ts';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { asSchemaOwner } from '../support/rich-organization.ts';

const app = useTestApp();

const HOUR_MS = 3_600_000;
const NOW = Date.now();
const hourAgo = (hours: number) => new Date((Math.floor(NOW / HOUR_MS) - hours) * HOUR_MS).toISOString();

/** An organization with activity in each of the last hours and two inboxes on two domains. */
async function arrange() {
  const organization = await createOrganization(app.worker);
  const { organizationId, productionEnvironmentId: environmentId, sandboxEnvironmentId } = organization;
  const inboxes = [
    await createInbox(app.worker, organization, { domain: 'one.history.test' }),
    await createInbox(app.worker, organization, { domain: 'two.history.test' }),
  ];
  const count = async (hour: string) => {
    for (const { id } of inboxes)
      await query(
        app.worker,
        sql`insert into metric_deltas (org_id, env_id, inbox_id, hour, sent, attempted) values (${organizationId}, ${environmentId}, ${id}, ${hour}, 2, 1)`,
      );
    for (const [counter, amount] of [
      ['messages_sent', 3],
      ['storage_bytes', 50],
    ])
      await query(
        app.worker,
        sql`insert into usage_deltas (org_id, counter, at, amount) values (${organizationId}, ${counter}, ${hour}, ${amount})`,
      );
  };
  for (let hours = 0; hours < 8; hours += 1) await count(hourAgo(hours));
  const applyDeltas = async () => {
    await applyUsageDeltas(app.worker);
    await applyMetricDeltas(app.worker);
  };
  return { ...organization, environmentId, sandboxEnvironmentId, inboxes, count, applyDeltas };
}

type Row = Record<string, unknown>;

/** Reads all rows of a table in pages of three, each in its own transaction. */
async function exportedRows(
  organizationId: string,
  name: string,
  between: (page: number) => Promise<void> = async () => {},
): Promise<Row[]> {
  const table = EXPORTED_HISTORY.find((entry) => entry.table === name);
  if (!table) throw new Error(`There is no ${name}`);
  const source = { ...(table.sources[0] as RangeSource), pageSize: 3 };
  const rows: Row[] = [];
  let after: PagePosition | null = null;
  for (let page = 0; ; page += 1) {
    const lines = await app.worker.readAsTenant(organizationId, (db) =>
      readNextLines(db, {
        table,
        source,
        after,
        startedAt: new Date(),
        typeOf: (column) => (['hour', 'period_start'].includes(column) ? 'timestamp with time zone' : 'text'),
      }),
    );
    if (!lines) return rows;
    rows.push(...lines.lines.map((line) => JSON.parse(line) as Row));
    after = lines.after;
    await between(page);
  }
}

describe('the history in an export', () => {
  test('matches the API while all deltas are pending', async () => {
    const { organizationId, token, environmentId, inboxes } = await arrange();
    const get = async (path: string) => (await app.call(path, { token })).json();
    const hours = await exportedRows(organizationId, 'metric_hours');
    const subjects: [string, (row: Row) => boolean][] = [
      ['', (row) => row.inbox_id === null && row.domain === null],
      ...inboxes.map(({ id }): [string, (row: Row) => boolean] => [
        `&inbox_id=${id}`,
        (row) => row.inbox_id === id && row.domain === null,
      ]),
      ['&domain=two.history.test', (row) => row.domain === 'two.history.test' && row.inbox_id === null],
    ];
    for (const [query, isOf] of subjects) {
      const { data } = await get(`/metrics/activity?start=${hourAgo(20)}&end=${hourAgo(-1)}${query}`);
      const expected = data.filter((row: Row) => row.sent !== 0);
      expect(expected).toHaveLength(8);
      expect(
        hours.filter(isOf).map(({ hour, env_id, inbox_id, domain, attempted, ...counts }) => {
          expect({ env_id, attempted }).toEqual({
            env_id: environmentId,
            attempted: Number(counts.sent) / 2,
          });
          return { timestamp: hour, ...counts };
        }),
      ).toEqual(expected);
    }
    expect(hours).toHaveLength(5 * 8);

    const { period, counters } = await get('/org/usage');
    const counterRows = await exportedRows(organizationId, 'usage_counters');
    const amountOf = (counter: string, start: string) =>
      counterRows.find((row) => row.counter === counter && row.period_start === start)?.amount ?? 0;
    expect(amountOf('messages_sent', period.start)).toBe(counters.messages_sent.current);
    expect(amountOf('storage_bytes', '1970-01-01T00:00:00.000Z')).toBe(counters.storage_bytes.current);

    const { data: days } = await get(`/org/usage/history?start=${hourAgo(24).slice(0, 10)}`);
    const sentOn = (date: string) =>
      usage
        .filter(({ counter, hour }) => counter === 'messages_sent' && String(hour).startsWith(date))
        .reduce((sum, { amount }) => sum + Number(amount), 0);
    const usage = await exportedRows(organizationId, 'usage_hours');
    expect(days.length).toBeGreaterThan(0);
    for (const { date, messages_sent } of days) expect(sentOn(date)).toBe(messages_sent);
  });

  test('contains each row once if deltas are applied between pages, and omits changes before the position', async () => {
    const { organizationId, applyDeltas, count } = await arrange();
    const before = await exportedRows(organizationId, 'metric_hours');
    const keyOf = ({ env_id, inbox_id, domain, hour }: Row) => [env_id, inbox_id, domain, hour].join();
    const rows = await exportedRows(organizationId, 'metric_hours', async (page) => {
      if (page % 2 === 0) await applyDeltas();
      // The very first row, which was already read.
      if (page === 3) await count(hourAgo(7));
    });
    expect(rows.map(keyOf)).toEqual(before.map(keyOf));
    const changed = rows.filter((row, index) => row.sent !== before[index]?.sent);
    expect(changed.length).toBeLessThan(5);
    for (const row of changed) expect(row.hour).toBe(hourAgo(7));
    expect(rows[0]).toEqual(before[0]);
  });

  test('contains the organization’s ledger and no other', async () => {
    const [one, other] = [await arrange(), await arrange()];
    for (const { organizationId, keyId } of [one, other])
      await asSchemaOwner((client) =>
        client.query(
          `insert into usage_events (id, org_id, kind, counter, data, actor, at)
           select 'uev_' || right($1, 20) || lpad(n::text, 6, '0'), $1, 'own_limit_changed', 'messages_sent', '{"to": 1}', $2,
             $3::timestamptz + n / 3 * interval '1 minute' from generate_series(1, 10) n`,
          [organizationId, keyId, hourAgo(3)],
        ),
      );
    const { data } = (
      await app.call('/org/usage/events?type=own_limit_changed&order=asc&limit=100', { token: one.token })
    ).json();
    expect(data).toHaveLength(10);
    const exported = await exportedRows(one.organizationId, 'usage_events');
    expect(exported.map((row) => ({ object: 'usage_event', ...row }))).toEqual(data);
    const text = JSON.stringify(
      await Promise.all(EXPORTED_HISTORY.map(({ table }) => exportedRows(one.organizationId, table))),
    );
    for (const { id } of other.inboxes) expect(text).not.toContain(id);
    expect(text).not.toContain(other.keyId);
    expect(text).not.toContain(other.environmentId);
    expect(COUNT_COLUMNS.every((count) => text.includes(`"${count}"`))).toBe(true);
  });
});
