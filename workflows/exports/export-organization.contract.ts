/** Contract of exporting an organization's data as an archive. */
export const EXPORT_ORGANIZATION = 'exportOrganization';
export const exportOrganizationWorkflowId = (exportId: string): string => `export/${exportId}`;
/** Signal: cancels the export. */
export const CANCEL_EXPORT = 'cancel';

/** After this time Temporal detects a crashed worker, and another worker begins the archive again. */
export const WRITE_HEARTBEAT_TIMEOUT_MS = 30_000;
/** How long an export may take before it fails: waiting for its turn, outages, and archives that are begun again. */
export const WRITE_TIMEOUT_MS = 48 * 3_600_000;

export interface ExportOrganizationInput {
  exportId: string;
}

/** How an export ended. */
export interface ExportResult {
  status: 'ready' | 'failed' | 'canceled' | 'expired' | 'not_found';
  /** What was written, as text. */
  progress: string;
}
