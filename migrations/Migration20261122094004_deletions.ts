import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Deletion of accounts and organizations, with recovery and purge. */
export class Migration20261122094004_deletions extends Migration {
  override name = 'Migration20261122094004_deletions';

  override up(): void {
    this.addSql(
      `create table "deletions" ("id" text collate "C" not null, "kind" text not null, "subject_id" text collate "C" not null, "deleted_by" text collate "C" not null, "account_deletion_id" text collate "C" null, "status" text not null default 'waiting', "episode" int not null default 1, "deleted_at" timestamptz(3) not null, "due_at" timestamptz(3) not null, "purge_started_at" timestamptz(3) null, "ended_at" timestamptz(3) null, "reconciled_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(`create index "deletions_account_deletion_id_index" on "deletions" ("account_deletion_id");`);
    this.addSql(
      `create index "deletions_open_index" on "deletions" ("reconciled_at") where "status" in ('waiting', 'purging');`,
    );
    this.addSql(
      `create unique index "deletions_subject_unique" on "deletions" ("subject_id") where "status" in ('waiting', 'purging', 'stopped');`,
    );
    this.addSql(
      `alter table "deletions" add constraint "deletions_kind" check (kind = ANY (ARRAY['account'::text, 'organization'::text]));`,
    );
    this.addSql(
      `alter table "deletions" add constraint "deletions_status" check (status = ANY (ARRAY['waiting'::text, 'recovered'::text, 'purging'::text, 'purged'::text, 'stopped'::text]));`,
    );
    // The deletion of an inbox looks for its attachments.
    this.addSql(`create index "attachments_inbox_id_index" on "attachments" ("inbox_id");`);
    this.addSql(`create index "address_claims_org_id_index" on "address_claims" ("org_id");`);
    this.addSql(
      `create index "address_claims_released_index" on "address_claims" ("released_at") where "released_at" is not null;`,
    );
    this.addSql(`grant select, insert, update on "deletions" to agent_email_people;
       grant select, insert, update, delete on "deletions" to agent_email_worker;
       grant select (deleted_at) on users to agent_email_api`);
    this.addSql(replaceSqlFunction('find_api_key'));
    this.addSql(replaceSqlFunction('find_session'));
  }
}
