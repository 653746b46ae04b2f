import { Migration } from '@mikro-orm/migrations';

export class Migration20261123222500_connections_of_people extends Migration {
  override name = 'Migration20261123222500_connections_of_people';

  override up(): void | Promise<void> {
    this.addSql(`alter table "connections" add "request_hash" bytea null;`);
    this.addSql(
      `alter table "connections" add constraint "connections_request_hash_unique" unique ("request_hash");`,
    );
    this.addSql(`alter table "connections" drop constraint "connections_end_reason";`);
    this.addSql(
      `alter table "connections" add constraint "connections_end_reason" check (end_reason = ANY (ARRAY['person'::text, 'client'::text, 'reuse'::text, 'membership'::text, 'sign_out'::text, 'unused'::text]));`,
    );
    this.addSql(
      `grant select (user_id, ended_at), update (ended_at, end_reason) on "connections" to agent_email_staff;`,
    );
  }
}
