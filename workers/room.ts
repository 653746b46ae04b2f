import type { Logger } from 'pino';
import type { DkimKeys } from '../domain/domains/dkim-keys.ts';
import type { ParserPool } from '../domain/mime/parser/pool.ts';
import type { SharedServices } from '../domain/shared-services.ts';
import type { Config } from '../platform/config.ts';
import type { Database } from '../platform/database/database.ts';
import type { MailTransport } from '../platform/mail-transport/mail-transport.ts';
import type { SimulatorTransport } from '../platform/mail-transport/simulator-transport.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { OverdueSource } from '../platform/outbox/overdue-rows.ts';
import type { Storage } from '../platform/storage.ts';
import type { TaskQueue } from '../workflows/task-queues.contract.ts';

/** What a worker process has. Functions build their part on the first call: not every process sends or reads mail. */
export interface WorkerParts {
  config: Config;
  logger: Logger;
  database: Database;
  storage: Storage;
  outbox: Outbox;
  services: SharedServices;
  mailTransport(): MailTransport;
  simulator(): SimulatorTransport;
  dkimKeys(): Promise<DkimKeys>;
  parserPool(): ParserPool;
}

/** What the reconciler does for a room every minute. */
export interface Maintenance {
  /** Finds rows that are neither final nor moving, whose workflow is started or settled. */
  overdue?: OverdueSource[];
  /** Deletes or moves rows in bulk. Each returns how many rows it changed, counted under its name in the Temporal UI. */
  sweeps?: Record<string, () => Promise<number>>;
}

/** The background work of one room of `domain/`: a worker process builds the parts for the queues it serves. */
export interface Room {
  activities?: Partial<Record<TaskQueue, (parts: WorkerParts) => object | Promise<object>>>;
  maintenance?(parts: WorkerParts): Maintenance;
}
