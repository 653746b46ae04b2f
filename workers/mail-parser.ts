import { readMailReport } from '../domain/delivery-reports/read-report.ts';
import { runParserChild } from '../domain/mime/parser/child.ts';

/** Child process of the inbound worker that parses messages (see `domain/mime/parser/pool.ts`). */
await runParserChild(process.stdin, process.stdout, {
  isAutomatic: (start) => readMailReport(start).kind !== 'mail',
});
