import type { Logger } from 'pino';
import type { FileReader } from '../../domain/attachments/text/file-reader.ts';
import type { Argon2Parameters } from '../../domain/identity/password.ts';
import type { HtmlConverter } from '../../domain/mime/converter/pool.ts';
import type { Config } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { ServiceMetrics } from '../../platform/service-metrics.ts';
import type { SesObjects } from '../../platform/ses-objects.ts';
import type { Storage } from '../../platform/storage.ts';
import type { ScheduleReader } from '../../platform/temporal-runs/schedule-reader.ts';
import type { WorkflowRuns } from '../../platform/temporal-runs/workflow-run.ts';

export interface ServiceOptions {
  config: Config;
  database: Database;
  /** Connected as a worker, for mail and reports that providers deliver. Default: `database`. */
  workerDatabase?: Database | undefined;
  outbox: Outbox;
  storage: Storage;
  sesObjects: SesObjects;
  converter: HtmlConverter;
  fileReader: FileReader;
  temporalRuns: WorkflowRuns;
  schedules: ScheduleReader;
  logger: Logger;
  /** HTTP to addresses that strangers choose. Default: within the limits of the settings. */
  guardedFetch?: GuardedFetch;
  /** Default: what OWASP recommends. */
  passwordParameters?: Argon2Parameters | undefined;
  metrics?: Pick<ServiceMetrics, 'events' | 'droppedRequests'>;
}
