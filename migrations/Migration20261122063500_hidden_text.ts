import { Migration } from '@mikro-orm/migrations';

/** The text of a message that people cannot see, which agents do not get as text. */
export class Migration20261122063500_hidden_text extends Migration {
  override name = 'Migration20261122063500_hidden_text';

  override up(): void {
    this.addSql(`alter table "messages" add "hidden_text" text null;`);
  }
}
