import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Drafts that wait for the approval of a person, and the recipients that approvers remember. */
export class Migration20261122091731_send_approval extends Migration {
  override name = 'Migration20261122091731_send_approval';

  override up(): void {
    this.addSql(
      `create table "approved_recipients" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "email" text not null, "approved_by" text collate "C" not null, "expires_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `create index "approved_recipients_inbox_id_id_index" on "approved_recipients" ("inbox_id", "id");`,
    );
    this.addSql(
      `create index "approved_recipients_expires_at_index" on "approved_recipients" ("expires_at");`,
    );
    this.addSql(
      `alter table "approved_recipients" add constraint "approved_recipients_inbox_id_email_unique" unique ("inbox_id", "email");`,
    );

    this.addSql(
      `create table "approval_digests" ("org_id" text collate "C" not null, "sent_at" timestamptz(3) not null, primary key ("org_id"));`,
    );

    this.addSql(
      `alter table "drafts" add "requested_by_kind" text null, add "requested_by_id" text collate "C" null, add "approval_requested_at" timestamptz(3) null, add "approval_expires_at" timestamptz(3) null, add "approval_episode" int not null default 0, add "approval_announced" boolean not null default false, add "approval_review" jsonb null, add "approved_version" int null, add "decided_by_id" text collate "C" null, add "decided_at" timestamptz(3) null, add "decision_note" text null, add "submission" jsonb null;`,
    );
    this.addSql(`create index "drafts_org_id_id_index" on "drafts" ("org_id", "id");`);
    this.addSql(
      `create index "drafts_pending_approval_index" on "drafts" ("org_id", "id") where "send_status" = 'pending_approval';`,
    );
    this.addSql(
      `create index "drafts_submission_index" on "drafts" ("inbox_id", ("submission" ->> 'messageId')) where "submission" is not null;`,
    );
    this.addSql(replaceSqlFunction('release_submission'));
    this.addSql(
      `create trigger "release_submission" after delete on "drafts" for each row when (old.submission is not null) execute function "release_submission"();`,
    );

    this.addSql(
      `alter table "approved_recipients" add constraint "approved_recipients_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "approved_recipients" add constraint "approved_recipients_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "approved_recipients" add constraint "approved_recipients_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "approved_recipients" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "approved_recipients" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "approved_recipients" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "approval_digests" add constraint "approval_digests_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(`alter table "approval_digests" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "approval_digests" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "approval_digests" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert, update, delete on "approved_recipients" to agent_email_api, agent_email_worker;
       grant select, insert, update, delete on "approval_digests" to agent_email_worker`,
    );
  }
}
