import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

/** Files that parse times without `storableTime`, and why that is safe. */
const EXCEPTIONS: Record<string, string> = {
  'domain/mime/invites/local-time.ts': 'stored as JSON text, and Date writes it',
  'domain/notifications/templates.ts': 'a time that this service wrote',
  'domain/providers/sns-message.ts': 'compares the validity of a certificate with the clock',
  'domain/retention/retention-plan.ts': 'a time that this service wrote',
  'domain/sso/saml/idp-metadata.ts': 'certificates whose end passed storableTime',
  'domain/sso/saml/saml-assertion.ts': 'compares with the clock; what is stored passes storableTime',
  'domain/sso/saml/saml-client.ts': 'compares the validity of a certificate with the clock',
  'domain/workflow-runs/staff-job-runner.ts': 'a time that this service wrote',
};

test('times in text of strangers are parsed by storableTime, so that none fails in PostgreSQL', () => {
  const files = globSync('domain/**/*.ts').filter((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .some((line, index, lines) => {
        const call = `${lines[index - 1] ?? ''}${line}`;
        return line.includes('Date.parse(') && !call.includes('storableTime(');
      }),
  );
  expect(files.sort()).toEqual(Object.keys(EXCEPTIONS).sort());
});

// Times are stored in milliseconds, so `now()` may be rounded up, and the row is due up to half a millisecond later.
test('rows are made due with a time that PostgreSQL does not round up', () => {
  const column = String.raw`(?:\w*expires|due|send|available|next_\w+)_at`;
  const inText = new RegExp(String.raw`\b${column} = now\(\)(?!\s*[-+])`);
  const inQuery = new RegExp(String.raw`\b${column}: sql(?:<\w+>)?\`[^\`]*(?<![>=] )now\(\)(?!\s*[-+])`);
  const asColumn = new RegExp(String.raw`\`now\(\)\`\.as\('${column}'\)`);
  const isRoundedUp = (text: string) => [inText, inQuery, asColumn].some((pattern) => pattern.test(text));
  const files = globSync('{test,domain,platform,activities,workers}/**/*.ts').filter((file) =>
    isRoundedUp(readFileSync(file, 'utf8')),
  );
  expect(files).toEqual([]);
  // Split, since this file is read, too.
  for (const [column, time] of [
    ['update a set due_at', ' = now() where'],
    ['due_at', ': sql`now()`'],
    ['sql<Date>`now()`', ".as('due_at')"],
  ] as const)
    expect(isRoundedUp(column + time)).toBe(true);
});
