/** Contract of the job that replays or cancels many deliveries of one endpoint. */
export const RUN_BULK_JOB = 'runBulkJob';
export const runBulkJobWorkflowId = (jobId: string): string => `webhook-job/${jobId}`;

export interface RunBulkJobInput {
  jobId: string;
}
