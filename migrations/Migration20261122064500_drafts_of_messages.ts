import { Migration } from '@mikro-orm/migrations';

/** A message names the draft it was, and events are found by their message. */
export class Migration20261122064500_drafts_of_messages extends Migration {
  override name = 'Migration20261122064500_drafts_of_messages';

  override up(): void {
    this.addSql(`alter table "messages" add "draft_id" text collate "C" null;`);
    this.addSql(
      `create index "messages_draft_index" on "messages" ("draft_id") where "draft_id" is not null;`,
    );
    this.addSql(
      `alter table "events" add "message_id" text collate "C" null generated always as (data ->> 'message_id'::text) stored;`,
    );
    this.addSql(
      `create index "events_message_index" on "events" ("message_id", "transaction_id", "id") where "message_id" is not null;`,
    );
  }
}
