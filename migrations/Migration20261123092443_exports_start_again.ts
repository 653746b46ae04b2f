import { Migration } from '@mikro-orm/migrations';

export class Migration20261123092443_exports_start_again extends Migration {
  override name = 'Migration20261123092443_exports_start_again';

  override up(): void | Promise<void> {
    this.addSql(`drop table if exists "export_segments" cascade;`);

    this.addSql(
      `alter table "exports" drop column "checkpoint", drop column "part_size_bytes", drop column "position", drop column "part_buffer";`,
    );
  }
}
