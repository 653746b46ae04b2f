import type { TriggerDef } from '@mikro-orm/core';

type RowEvent = 'insert' | 'update' | 'delete';

export interface FunctionTrigger {
  name: string;
  table: string;
  /** The trigger fires after this event. */
  event: RowEvent;
  /** SQL condition on `old` and `new`; empty for every row. */
  when?: string;
  /** Fires once for each statement, whose rows the function reads as the table `changed`. Default: once for each row. */
  perStatement?: boolean;
  /** Name of a function in `migrations/functions`. */
  calls: string;
}

/** A trigger whose function is a file in `migrations/functions`, where each change is a readable diff. */
export function functionTrigger(trigger: FunctionTrigger): TriggerDef {
  const { name, table, event, when, perStatement = false, calls } = trigger;
  const rows = event === 'delete' ? 'old' : 'new';
  const scope = perStatement
    ? `referencing ${rows} table as changed for each statement`
    : `for each row${when === undefined ? '' : ` when (${when})`}`;
  return {
    name,
    timing: 'after',
    events: [event],
    forEach: perStatement ? 'statement' : 'row',
    expression: `create trigger "${name}" after ${event} on "${table}" ${scope} execute function "${calls}"()`,
  };
}
