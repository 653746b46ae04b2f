import type { Logger } from 'pino';
import type { DkimKeys } from '../domain/domains/dkim-keys.ts';
import type { ParserPool } from '../domain/mime/parser/pool.ts';
import type { SharedServices } from '../domain/shared-services.ts';
import type { FairShare } from '../platform/concurrency/fair-share.ts';
import type { Config } from '../platform/config.ts';
import type { Database } from '../platform/database/database.ts';
import type { MailTransport } from '../platform/mail-transport/mail-transport.ts';
import type { SimulatorTransport } from '../platform/mail-transport/simulator-transport.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { OverdueSource } from '../platform/outbox/overdue-rows.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import type { Storage } from '../platform/storage.ts';
import type { WorkflowRuns } from '../platform/temporal-runs/workflow-run.ts';
import type { TaskQueue } from '../workflows/task-queues.contract.ts';

/**
 * What background work in a worker process depends on. Functions build their value on the first call, because not every
 * process sends or parses mail.
 */
export interface WorkerDependencies {
  config: Config;
  logger: Logger;
  database: Database;
  storage: Storage;
  outbox: Outbox;
  workflowRuns: WorkflowRuns;
  services: SharedServices;
  metrics: ServiceMetrics;
  mailTransport(): MailTransport;
  simulator(): SimulatorTransport;
  dkimKeys(): Promise<DkimKeys>;
  parserPool(): ParserPool;
  /** Database transactions of the listener for inbound mail, and as many that store received messages. */
  maxConcurrentReceiving: number;
  /** Jobs of organizations and of staff, which last up to hours. */
  jobShares: FairShare;
}

/** The work that the reconciler does for a room every minute. */
export interface Maintenance {
  /** Find rows whose workflow run is missing or stopped. The reconciler restarts the run or settles the row. */
  overdue?: OverdueSource[];
  /** Delete or move rows in bulk. Each returns the number of changed rows, which the Temporal UI shows under its name. */
  sweeps?: Record<string, () => Promise<number>>;
}

/** The background work of one room of `domain/`. A process builds only the activities of the queues it polls. */
export interface Room {
  activities?: Partial<Record<TaskQueue, (dependencies: WorkerDependencies) => object | Promise<object>>>;
  maintenance?(dependencies: WorkerDependencies): Maintenance;
}
