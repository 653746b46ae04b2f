import { stripTypeScriptTypes } from 'node:module';

/** A transform of Jest: does what Node does with TypeScript. */
export default { process: (code) => ({ code: stripTypeScriptTypes(code) }) };
