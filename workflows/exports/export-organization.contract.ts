/** Contract of writing the archive of all an organization has. */
export const EXPORT_ORGANIZATION = 'exportOrganization';
export const exportOrganizationWorkflowId = (exportId: string): string => `export/${exportId}`;
/** Signal: what is written so far is given up. */
export const CANCEL_EXPORT = 'cancel';

/** The activity writes for so long and then says how far it is, for who looks at the run. */
export const WRITE_FOR_MS = 30_000;
/** A worker that died is noticed after this; another one goes on with the last part that was stored. */
export const WRITE_HEARTBEAT_TIMEOUT_MS = 30_000;
/** Storage may be away for so long before the export has failed. */
export const WRITE_PATIENCE_MS = 24 * 3_600_000;

export interface ExportOrganizationInput {
  exportId: string;
}

export interface WrittenSoFar {
  status: 'queued' | 'running' | 'ready' | 'failed' | 'canceled' | 'expired' | 'gone';
  /** For a person: how far it is. */
  progress: string;
}
