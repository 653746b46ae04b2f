import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { ApiRequest } from './api-request.entity.ts';

export type RequestRecorder = ReturnType<typeof createRequestRecorder>;

export interface RequestRecorderOptions {
  database: Pick<Database, 'db'>;
  logger: Logger;
  /** Called with the number of calls that are not recorded. */
  onDropped?: ((count: number) => void) | undefined;
  flushIntervalMs?: number;
}

const FLUSH_INTERVAL_MS = 1_000;
/** Calls in memory. */
const MAX_BUFFERED = 20_000;
/** So that a flood of one organization does not displace the calls of others. */
const MAX_BUFFERED_PER_ORGANIZATION = 2_000;
const MAX_ROWS_PER_STATEMENT = 1_000;

/**
 * Collects calls in memory and writes them at most once a second, so that recording adds no statement to a request. A crash
 * loses up to one second of calls.
 */
export function createRequestRecorder({
  database,
  logger,
  onDropped,
  flushIntervalMs = FLUSH_INTERVAL_MS,
}: RequestRecorderOptions) {
  let buffered: ApiRequest[] = [];
  let ofOrganization = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let writing = Promise.resolve();

  async function write(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const rows = buffered;
    buffered = [];
    ofOrganization = new Map();
    for (let start = 0; start < rows.length; start += MAX_ROWS_PER_STATEMENT) {
      const part = rows.slice(start, start + MAX_ROWS_PER_STATEMENT);
      try {
        await insertRequests(database, part);
      } catch (error) {
        // They are of no use later, and a database that is down must not fill the memory.
        logger.warn({ err: error }, 'could not record calls');
        onDropped?.(part.length);
      }
    }
  }

  const flush = (): Promise<void> => {
    writing = writing.then(write);
    return writing;
  };

  return {
    /** Collects an answered call. */
    record(request: ApiRequest): void {
      const count = ofOrganization.get(request.organizationId) ?? 0;
      if (buffered.length >= MAX_BUFFERED || count >= MAX_BUFFERED_PER_ORGANIZATION) {
        onDropped?.(1);
        return;
      }
      ofOrganization.set(request.organizationId, count + 1);
      buffered.push(request);
      // After close() nothing would run the timer's flush.
      if (!isClosed) timer ??= setTimeout(() => void flush(), flushIntervalMs).unref();
    },
    /** Writes the collected calls. Never throws. */
    flush,
    /** Stops the timer and writes the remaining calls. */
    async close(): Promise<void> {
      isClosed = true;
      await flush();
    },
  };
}

async function insertRequests({ db }: Pick<Database, 'db'>, rows: readonly ApiRequest[]): Promise<void> {
  const columns = rows.map((row) => ({
    id: row.id,
    org_id: row.organizationId,
    env_id: row.environmentId,
    method: row.method,
    path: row.path,
    status: row.status,
    code: row.code,
    credential_kind: row.credentialKind,
    credential_id: row.credentialId,
    duration_ms: row.durationMs,
  }));
  await db.selectNoFrom(sql`record_api_requests(${JSON.stringify(columns)}::jsonb)`.as('recorded')).execute();
}
