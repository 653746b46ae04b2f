import { Migration } from '@mikro-orm/migrations';

/** Switches of the whole service. */
export class Migration20261122124700_toggles extends Migration {
  override name = 'Migration20261122124700_toggles';

  override up(): void {
    this.addSql(
      `create table "toggles" ("name" text not null, "enabled" boolean not null, "note" text not null, "changed_by" text collate "C" not null, "changed_at" timestamptz(3) not null, primary key ("name"));`,
    );
    this.addSql(
      `grant select on "toggles" to agent_email_api, agent_email_people, agent_email_worker, agent_email_staff;
       grant insert, update on "toggles" to agent_email_staff`,
    );
  }
}
