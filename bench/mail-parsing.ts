import { readFileSync } from 'node:fs';
import { readMailReport } from '../domain/delivery-reports/read-report.ts';
import { replyRows } from './replies.ts';

interface ExpectedReport {
  kind: string;
  recipients?: (string | null)[];
  permanence?: string;
}

const BOUNCES = new URL('../test/fixtures/bounces/', import.meta.url);

/** One row of the table: how many of the project's samples are parsed correctly. */
interface Row {
  what: string;
  samples: number;
  right: number;
}

/** `npm run bench -- parsing`: the share of the project's samples that is parsed correctly. Each function adds rows. */
export function benchParsing(): void {
  const rows = [...bounceRows(), ...replyRows()];
  console.table(
    Object.fromEntries(
      rows.map(({ what, samples, right }) => [
        what,
        { right, of: samples, share: `${((100 * right) / Math.max(1, samples)).toFixed(1)} %` },
      ]),
    ),
  );
}

function bounceRows(): Row[] {
  const read = (name: string) => readFileSync(new URL(name, BOUNCES));
  const expected = Object.entries(
    JSON.parse(read('expected.json').toString('utf8')) as Record<string, ExpectedReport>,
  );
  const judged = expected.map(([name, wanted]) => {
    const raw = read(`${name}.eml`);
    const { kind, recipients, feedback } = readMailReport(raw);
    const addresses = feedback ? feedback.originalRecipients : recipients.map(({ address }) => address);
    return {
      report: ['bounce', 'delay', 'delivered'].includes(wanted.kind),
      machineReadable: raw.includes('message/delivery-status'),
      kind: kind === wanted.kind,
      recipient: JSON.stringify(addresses) === JSON.stringify(wanted.recipients ?? addresses),
      permanence:
        wanted.permanence === undefined || recipients.every((one) => one.permanence === wanted.permanence),
    };
  });
  const reports = judged.filter(({ report }) => report);
  const row = (what: string, of: typeof judged, right: (one: (typeof judged)[number]) => boolean): Row => ({
    what,
    samples: of.length,
    right: of.filter(right).length,
  });
  const whole = (one: (typeof judged)[number]) => one.kind && one.recipient && one.permanence;
  return [
    row('reports recognised', reports, ({ kind }) => kind),
    row('reports, recipient', reports, ({ recipient }) => recipient),
    row('reports, permanence', reports, ({ permanence }) => permanence),
    row(
      'reports with a machine-readable part, all of it',
      reports.filter((one) => one.machineReadable),
      whole,
    ),
    row(
      'reports in words alone, all of it',
      reports.filter((one) => !one.machineReadable),
      whole,
    ),
    row(
      'complaints, auto-replies and other messages distinguished',
      judged.filter(({ report }) => !report),
      whole,
    ),
  ];
}
