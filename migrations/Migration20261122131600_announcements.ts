import { Migration } from '@mikro-orm/migrations';

/** What staff announce to people. */
export class Migration20261122131600_announcements extends Migration {
  override name = 'Migration20261122131600_announcements';

  override up(): void {
    this.addSql(
      `create table "announcements" ("id" text collate "C" not null, "title" text not null, "text" text not null, "audience" text not null, "tier" text null, "organization_ids" text[] not null default '{}', "delivery" text not null, "starts_at" timestamptz(3) not null, "ends_at" timestamptz(3) null, "created_by" text collate "C" not null, "created_at" timestamptz(3) not null, "withdrawn_at" timestamptz(3) null, "mailed_to" text collate "C" null, "mailed_count" int not null default 0, "mailed_at" timestamptz(3) null, "reconciled_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(
      `create index "announcements_shown_index" on "announcements" ("starts_at") where "withdrawn_at" is null and "delivery" = 'shown';`,
    );
    this.addSql(
      `create index "announcements_unmailed_index" on "announcements" ("starts_at") where "withdrawn_at" is null and "delivery" = 'mailed' and "mailed_at" is null;`,
    );
    this.addSql(
      `alter table "announcements" add constraint "announcements_audience" check (audience = ANY (ARRAY['all'::text, 'tier'::text, 'organizations'::text, 'owners'::text]));`,
    );
    this.addSql(
      `alter table "announcements" add constraint "announcements_delivery" check (delivery = ANY (ARRAY['shown'::text, 'mailed'::text]));`,
    );
    this.addSql(
      `grant select, insert, update on "announcements" to agent_email_staff;
       grant select on "announcements" to agent_email_people;
       grant select, update on "announcements" to agent_email_worker`,
    );
  }
}
