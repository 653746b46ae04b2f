import { Migration } from '@mikro-orm/migrations';

/** The running processes, with their versions, for operators. */
export class Migration20261122133200_processes extends Migration {
  override name = 'Migration20261122133200_processes';

  override up(): void {
    this.addSql(
      `create table "processes" ("id" text not null, "name" text not null, "version" text not null, "host" text not null, "started_at" timestamptz(3) not null, "last_seen_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `grant select, insert, update, delete on "processes" to agent_email_api, agent_email_worker;
       grant select on "processes", "sweeps" to agent_email_staff`,
    );
  }
}
