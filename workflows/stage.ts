import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

const STAGE = defineSearchAttributeKey('Stage', SearchAttributeType.KEYWORD);

export interface StageReporter<Stage extends string> {
  readonly current: Stage;
  /** Changing the stage costs one history event; changing the details costs none. */
  report(stage: Stage, details: string): void;
}

/** Reports a run's stage as a search attribute, and its details as current details in the Temporal UI. */
export function createStageReporter<Stage extends string>(initial: Stage): StageReporter<Stage> {
  let current = initial;
  return {
    get current() {
      return current;
    },
    report(stage, details) {
      setCurrentDetails(details);
      if (stage === current) return;
      current = stage;
      upsertSearchAttributes([{ key: STAGE, value: stage }]);
    },
  };
}
