import type { TriggerDef } from '@mikro-orm/core';

type RowEvent = 'insert' | 'update' | 'delete';

export interface FunctionTrigger {
  name: string;
  table: string;
  /** The trigger fires after it. */
  event: RowEvent;
  /** SQL condition on `old` and `new`; empty for every row. */
  when?: string;
  /** Fires once for each statement, whose rows the function reads as the table `changed`. Default: once for each row. */
  perStatement?: boolean;
  /** Function of `migrations/functions`. */
  calls: string;
}

/** A trigger whose function is a file of `migrations/functions`, where a change of it is one readable diff. */
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
