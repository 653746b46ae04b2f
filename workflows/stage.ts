import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

const STAGE = defineSearchAttributeKey('Stage', SearchAttributeType.KEYWORD);

export interface StageBoard<Stage extends string> {
  readonly current: Stage;
  /** Changing the stage costs one history event, showing other details none. */
  show(stage: Stage, details: string): void;
}

/** What an operator sees of a run in the Temporal UI: its stage, to list by, and what it waits for, to read. */
export function stageBoard<Stage extends string>(initial: Stage): StageBoard<Stage> {
  let current = initial;
  return {
    get current() {
      return current;
    },
    show(stage, details) {
      setCurrentDetails(details);
      if (stage === current) return;
      current = stage;
      upsertSearchAttributes([{ key: STAGE, value: stage }]);
    },
  };
}
