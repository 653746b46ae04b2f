import { Migration } from '@mikro-orm/migrations';

export class Migration20261123032354_job_requesters extends Migration {
  override name = 'Migration20261123032354_job_requesters';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "webhook_bulk_jobs" add "requested_by_kind" text null, add "requested_by_id" text collate "C" null;`,
    );
  }
}
