import { Migration } from '@mikro-orm/migrations';

/** What processes check at their start: schema, keys, and whether the database was restored from a backup. */
export class Migration20261122122407_installation extends Migration {
  override name = 'Migration20261122122407_installation';

  override up(): void {
    this.addSql(
      `create table "installation" ("id" text not null, "system_identifier" text not null, primary key ("id"))`,
    );
    this.addSql(
      `create table "installation_keys" ("kind" text not null, "key_id" text not null, "created_at" timestamptz(3) not null, primary key ("kind", "key_id"));
       alter table "installation_keys" add constraint "installation_keys_kind" check (kind = ANY (ARRAY['encryption'::text, 'signing'::text]))`,
    );
    this.addSql(
      `create table "restores" ("id" bigserial primary key, "restored_to" timestamptz(3) null, "marked_at" timestamptz(3) not null, "reconciled_at" timestamptz(3) null, "counts" jsonb null);
       create index "restores_pending_index" on "restores" ("id") where "reconciled_at" is null`,
    );
    this.addSql(
      `grant select on installation, restores, mikro_orm_migrations to agent_email_api, agent_email_worker;
       grant select, insert on installation_keys to agent_email_api, agent_email_worker;
       grant insert, update on restores to agent_email_worker;
       grant usage on sequence restores_id_seq to agent_email_worker`,
    );
  }
}
