import { Migration } from '@mikro-orm/migrations';

/** Mail to the feedback address of which nobody knows whose it is. */
export class Migration20261121065729_unattributed_reports extends Migration {
  override name = 'Migration20261121065729_unattributed_reports';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "unattributed_reports" ("id" text collate "C" not null, "raw_key" text not null, "size_bytes" int not null, "mail_from" text not null, "client_ip" text not null, "helo" text null, "received_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`grant select, insert, delete on unattributed_reports to agent_email_worker;`);
  }
}
