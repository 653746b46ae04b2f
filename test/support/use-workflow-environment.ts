import { jest } from '@jest/globals';
import { useResource } from './use-resource.ts';
import { startWorkflowEnvironment, type WorkflowTestEnvironment } from './workflow-environment.ts';

/** The first start in a fresh clone downloads the test server. */
const START_TIMEOUT_MS = 120_000;
const TEST_TIMEOUT_MS = 60_000;

export function useWorkflowEnvironment(): WorkflowTestEnvironment {
  // It outlives a file, because the files of a worker share their globals.
  jest.setTimeout(TEST_TIMEOUT_MS);
  return useResource(startWorkflowEnvironment, (environment) => environment.stop(), {
    timeoutMs: START_TIMEOUT_MS,
  });
}
