import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import type { Tables } from '../../platform/database/tables.ts';

/** Selects threads without messages, also of the threads that were merged into them and whose messages still have to move. */
export const isEmptyThread = ({
  and,
  not,
  exists,
  selectFrom,
}: ExpressionBuilder<Tables, 'threads'>): Expression<SqlBool> =>
  and([
    not(exists(selectFrom('messages').whereRef('messages.thread_id', '=', 'threads.id'))),
    not(
      exists(
        selectFrom('threads as alias')
          .innerJoin('messages', 'messages.thread_id', 'alias.id')
          .whereRef('alias.merged_into_id', '=', 'threads.id'),
      ),
    ),
  ]);
