import { jest } from '@jest/globals';
import pg, { type QueryConfig } from 'pg';

export type RecordedStatements = ReturnType<typeof recordStatements>;

/** Records the statements of all connections of this process, until `stop`. */
export function recordStatements() {
  const query = jest.spyOn(pg.Client.prototype, 'query');
  return {
    texts: (): string[] =>
      query.mock.calls.map(([statement]) => {
        const given = statement as string | QueryConfig;
        return typeof given === 'string' ? given : given.text;
      }),
    clear: () => void query.mockClear(),
    stop: () => void query.mockRestore(),
  };
}
