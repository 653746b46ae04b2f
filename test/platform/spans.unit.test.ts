import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { activeTraceparent, parseTraceparent, useTracer, withSpan } from '../../platform/tracing/span.ts';
import { summarizeStatement } from '../../platform/tracing/statement-spans.ts';
import { expectComputedWithin } from '../support/expect-within.ts';

describe('the name of a statement’s span', () => {
  test.each([
    ['begin', 'begin'],
    ['select 1', 'select'],
    [`insert into "messages" ("id") values ($1) returning "id"`, 'insert messages'],
    [
      `update outbox set attempts = 1 where id in (select id from outbox for update skip locked)`,
      'update outbox',
    ],
    [`select m.id from messages m join environments e on e.id = m.env_id`, 'select messages environments'],
    [
      `with gone as (delete from drafts where id = $1) insert into events select * from gone`,
      'with drafts events gone',
    ],
    // Literals, also such that look like SQL, and an unterminated one.
    [
      `select 'from ada_lovelace' from threads where note = 'it''s from bob' and x = 'from carol`,
      'select threads',
    ],
    ['  (select id from usage_deltas)', 'select usage_deltas'],
  ])('%s is %s', (statement, name) => {
    expect(summarizeStatement(statement)).toBe(name);
  });

  test('is short and quickly made for a long statement', () => {
    const statement = `insert into events values ${"('from x', \"".repeat(200_000)}`;
    expect(expectComputedWithin(100, () => summarizeStatement(statement))).toBe('insert events');
  });
});

test.each([
  '',
  '00-0-0-00',
  `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
  `01-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
])('rejects the traceparent %j', (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});

describe('spans', () => {
  const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  beforeAll(() => useTracer(provider.getTracer('test')));
  afterAll(() => useTracer(undefined));

  test('continue a trace that another process began', async () => {
    await withSpan({ name: 'continued', parent: TRACEPARENT }, async () => undefined);
    const span = exporter.getFinishedSpans().find(({ name }) => name === 'continued');
    expect([span?.spanContext().traceId, span?.parentSpanId]).toEqual(['a'.repeat(32), 'b'.repeat(16)]);
  });

  test('do not exist outside a trace, so that sweeps and health checks make none', async () => {
    await withSpan({ name: 'alone' }, async () => undefined);
    expect(exporter.getFinishedSpans().map(({ name }) => name)).not.toContain('alone');
    expect(activeTraceparent()).toBeUndefined();
  });

  test('have the type of an error, not its message', async () => {
    const error = Object.assign(new Error('no mailbox ada@people.example'), { code: 'EENVELOPE' });
    await expect(withSpan({ name: 'failing', parent: 'root' }, () => Promise.reject(error))).rejects.toBe(
      error,
    );
    const span = exporter.getFinishedSpans().find(({ name }) => name === 'failing');
    expect(span?.attributes).toEqual({ 'error.type': 'EENVELOPE' });
    expect(span?.events).toEqual([]);
    expect(JSON.stringify(span?.status)).not.toContain('ada');
  });
});
