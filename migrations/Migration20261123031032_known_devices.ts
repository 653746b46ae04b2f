import { Migration } from '@mikro-orm/migrations';

export class Migration20261123031032_known_devices extends Migration {
  override name = 'Migration20261123031032_known_devices';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "known_devices" ("token_hash" bytea not null, "user_id" text collate "C" not null, "failures" int not null, "created_at" timestamptz(3) not null, "last_used_at" timestamptz(3) null, "expires_at" timestamptz(3) not null, primary key ("token_hash"));`,
    );
    this.addSql(`create index "known_devices_user_id_index" on "known_devices" ("user_id");`);
    this.addSql(`create index "known_devices_expires_at_index" on "known_devices" ("expires_at");`);

    this.addSql(
      `alter table "known_devices" add constraint "known_devices_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `grant select, insert, update, delete on "known_devices" to agent_email_people, agent_email_worker;
       grant select (user_id), delete on "known_devices" to agent_email_staff;`,
    );
  }
}
