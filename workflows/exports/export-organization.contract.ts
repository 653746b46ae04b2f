/** Contract of exporting an organization's data as an archive. */
export const EXPORT_ORGANIZATION = 'exportOrganization';
export const exportOrganizationWorkflowId = (exportId: string): string => `export/${exportId}`;
/** Signal: cancels the export. */
export const CANCEL_EXPORT = 'cancel';

/** How long one activity writes before the run reports its progress. */
export const WRITE_SLICE_MS = 30_000;
/** After this time Temporal detects a crashed worker, and another worker continues from the last checkpoint. */
export const WRITE_HEARTBEAT_TIMEOUT_MS = 30_000;
/** How long storage may be unavailable before the export fails. */
export const WRITE_TIMEOUT_MS = 24 * 3_600_000;

export interface ExportOrganizationInput {
  exportId: string;
}

export interface ExportProgress {
  status: 'queued' | 'running' | 'ready' | 'failed' | 'canceled' | 'expired' | 'not_found';
  /** Progress as text. */
  progress: string;
}
