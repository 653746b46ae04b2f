import { Migration } from '@mikro-orm/migrations';

/** Actions of staff on many runs. */
export class Migration20261122124533_staff_jobs extends Migration {
  override name = 'Migration20261122124533_staff_jobs';

  override up(): void {
    this.addSql(
      `create table "staff_jobs" ("id" text collate "C" not null, "staff_id" text collate "C" not null, "session_id" text collate "C" not null, "ip" text not null, "request_id" text not null, "action" text not null, "note" text not null, "resolution" text null, "filter" jsonb null, "items" jsonb null, "status" text not null default 'running', "detail" text null, "position" text null, "matched" int not null default 0, "accepted" int not null default 0, "refused" int not null default 0, "problems" jsonb not null, "reconciled_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "completed_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(
      `create index "staff_jobs_running_index" on "staff_jobs" ("created_at") where "status" = 'running';`,
    );
    this.addSql(
      `grant select, insert on "staff_jobs" to "agent_email_staff"; grant select, update, delete on "staff_jobs" to "agent_email_worker";`,
    );
    // To resume a purge that was stopped.
    this.addSql(
      `grant select, update (status, ended_at, reconciled_at, episode) on "deletions" to "agent_email_staff";`,
    );
  }
}
