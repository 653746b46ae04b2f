import { runFileReaderChild } from '../domain/attachments/text/child.ts';
import { denyNetwork } from '../platform/deny-network.ts';

/** Child process of the API that reads the text of files (see `domain/attachments/text/file-reader.ts`). */
denyNetwork();
await runFileReaderChild(process.stdin, process.stdout);
