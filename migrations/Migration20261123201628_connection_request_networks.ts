import { Migration } from '@mikro-orm/migrations';

export class Migration20261123201628_connection_request_networks extends Migration {
  override name = 'Migration20261123201628_connection_request_networks';

  override up(): void | Promise<void> {
    this.addSql(`alter table "connection_tokens" add "network_hash" bytea null;`);
    this.addSql(
      `create index "connection_tokens_network_index" on "connection_tokens" ("network_hash") where "network_hash" is not null;`,
    );
  }
}
