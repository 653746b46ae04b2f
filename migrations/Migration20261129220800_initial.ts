import { readFileSync } from 'node:fs';
import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/**
 * The first schema. Tables, triggers and policies are as MikroORM generates them from the entities; what entities do not
 * express (roles, grants, settings of the search index) is written by hand.
 */
export class Migration20261129220800_initial extends Migration {
  override name = 'Migration20261129220800_initial';

  override up(): void {
    this.addSql(readPart('roles'));
    this.addSql(readPart('tables'));
    for (const name of FUNCTIONS) this.addSql(replaceSqlFunction(name));
    for (const part of ['triggers', 'policies', 'grants']) this.addSql(readPart(part));
  }
}

const readPart = (name: string): string =>
  readFileSync(new URL(`initial/${name}.sql`, import.meta.url), 'utf8');

const FUNCTIONS = [
  'claim_address',
  'claim_domain',
  'claim_slug',
  'count_api_calls',
  'count_message',
  'count_storage',
  'delete_dispatched',
  'find_api_key',
  'find_connection',
  'find_environment',
  'find_impersonation',
  'find_session',
  'index_attachments',
  'index_message',
  'lacks_break_glass_owner',
  'lease_rate_tokens',
  'oldest_waiting_starts',
  'record_api_requests',
  'reindex_message_content',
  'reindex_message_labels',
  'reindex_message_thread',
  'release_attachment_object',
  'release_message_objects',
  'release_submission',
  'search_address',
  'search_document',
  'search_filename',
  'search_labels',
  'search_messages',
  'search_words',
  'signal_access',
  'signal_event',
];
