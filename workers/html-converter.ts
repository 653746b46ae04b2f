import { runConverterChild } from '../domain/mime/converter/convert.ts';

/** Child process of the API and of mail workers that converts HTML (see `domain/mime/converter/pool.ts`). */
await runConverterChild(process.stdin, process.stdout);
