import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';

const STAGE = defineSearchAttributeKey('Stage', SearchAttributeType.KEYWORD);

export interface StageReporter<Stage extends string> {
  readonly current: Stage;
  /** Changing the stage costs one history event; changing the details costs none. */
  report(stage: Stage, details: string): void;
  /**
   * Reports how the run ended, as current details. If the stage has changed, since it then remains the last one, the memo
   * `outcome` says it too, which costs one history event.
   *
   * @returns the outcome.
   */
  end(outcome: string): string;
}

/** Reports a run's stage as a search attribute, and its details as current details in the Temporal UI. */
export function createStageReporter<Stage extends string>(initial: Stage): StageReporter<Stage> {
  let current = initial;
  // A run that continues another one inherits its stage.
  let hasChanged = workflowInfo().continuedFromExecutionRunId !== undefined;
  return {
    get current() {
      return current;
    },
    report(stage, details) {
      setCurrentDetails(details);
      if (stage === current) return;
      current = stage;
      hasChanged = true;
      upsertSearchAttributes([{ key: STAGE, value: stage }]);
    },
    end(outcome) {
      setCurrentDetails(`Ended: ${outcome}.`);
      if (hasChanged) upsertMemo({ outcome });
      return outcome;
    },
  };
}

/** For current details, which are read at any time later. */
export const formatTime = (timeMs: number): string => new Date(timeMs).toISOString();
