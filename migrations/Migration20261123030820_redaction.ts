import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** What is deleted is gone: events, responses of receivers and stored responses lose its content. */
export class Migration20261123030820_redaction extends Migration {
  override name = 'Migration20261123030820_redaction';

  override up(): void {
    this.addSql(`alter table "idempotency_keys" add "resource_id" text collate "C" null`);
    this.addSql(`alter table "idempotency_keys" alter column "body" drop not null`);
    this.addSql(
      `create index "idempotency_keys_resource_index" on "idempotency_keys" ("resource_id") where "resource_id" is not null`,
    );
    this.addSql(
      `alter table "events" add "about_id" text collate "C" null, add "redacted" boolean not null default false`,
    );
    // So far only the events of drafts name in their data what the column names.
    this.addSql(`update "events" set "about_id" = data ->> 'draft_id' where type like 'draft.%'`);
    this.addSql(`create index "events_about_index" on "events" ("about_id") where "about_id" is not null`);
    this.addSql(
      `create index "inbound_receipts_reported_index" on "inbound_receipts" ("message_id") where "kind" = 'report'`,
    );
    this.addSql(
      `create index "inbound_receipts_duplicate_index" on "inbound_receipts" ("duplicate_of") where "duplicate_of" is not null`,
    );
    this.addSql(
      `create index "unclaimed_objects_org_id_due_at_index" on "unclaimed_objects" ("org_id", "due_at")`,
    );
    this.addSql(`alter table "webhook_delivery_attempts" add "redacted" boolean not null default false`);
    // Deleting a message removes what receivers answered, and the reports and duplicates of the message.
    this.addSql(`grant update (redacted, response_body) on webhook_delivery_attempts to agent_email_api`);
    this.addSql(`grant select, delete on inbound_receipts to agent_email_api`);
    this.addSql(replaceSqlFunction('release_message_objects'));
  }
}
