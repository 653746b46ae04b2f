import { Migration } from '@mikro-orm/migrations';

export class Migration20261129030810_canceled_attempts extends Migration {
  override name = 'Migration20261129030810_canceled_attempts';

  override up(): void | Promise<void> {
    this.addSql(`alter table "send_attempts" add "canceled" boolean not null default false;`);
  }
}
