import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

const STAGE = defineSearchAttributeKey('Stage', SearchAttributeType.KEYWORD);

export interface StageReporter<Stage extends string> {
  readonly current: Stage;
  /** Changing the stage costs one history event, showing other details none. */
  report(stage: Stage, details: string): void;
}

/** What an operator sees of a run in the Temporal UI: its stage, to list by, and what it waits for, to read. */
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
