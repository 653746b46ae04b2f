import { runParserChild } from '../domain/mime/parser/child.ts';

/** A process of the mail worker's: reads mails it is handed, and can be killed (see `domain/messages/parser-pool.ts`). */
await runParserChild(process.stdin, process.stdout);
