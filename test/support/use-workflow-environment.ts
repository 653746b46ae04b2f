import { useResource } from './use-resource.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from './workflow-environment.ts';

/** The first start in a fresh clone downloads the test server. */
const START_TIMEOUT_MS = 120_000;

export const useWorkflowEnvironment = (): WorkflowTestEnvironment =>
  useResource(startWorkflowEnvironment, (environment) => environment.stop(), {
    timeoutMs: START_TIMEOUT_MS,
  });
