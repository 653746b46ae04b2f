/** Contract of the job with which staff act on many runs, or resolve many ambiguous sends. */
export const RUN_STAFF_JOB = 'runStaffJob';
export const runStaffJobWorkflowId = (jobId: string): string => `staff-job/${jobId}`;

export interface RunStaffJobInput {
  jobId: string;
}
