import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';
import { countUnlinked } from './sso-providers.ts';
import type { SsoScope } from './sso-scope.ts';

/** A configuration without its metadata, which is large. */
export type SsoConfigurationRow = RowOf<typeof SsoConfigurationEntity>;

/** @throws AppError `not_found`, also for pending changes. */
export function findConfiguration(
  db: Db,
  { organizationId }: SsoScope,
  id: string,
): Promise<SsoConfigurationRow> {
  return db
    .selectFrom('sso_configurations')
    .select(columnsOf(SsoConfigurationEntity))
    .where('id', '=', id)
    .where('org_id', '=', organizationId)
    .where('replaces_id', 'is', null)
    .executeTakeFirstOrThrow(() => notFound('SSO configuration', id));
}

/** A configuration as people see it. */
export type SsoConfigurationView = SsoConfigurationRow & {
  /** Changes that wait for their test and activation; null if there are none. */
  pending: SsoConfigurationRow | null;
  /** Members who have to link once through this replaced configuration; null for other configurations. */
  unlinkedMembers: number | null;
};

export async function viewConfigurations(
  db: Db,
  { organizationId }: SsoScope,
  configurations: readonly SsoConfigurationRow[],
): Promise<SsoConfigurationView[]> {
  const changes = await db
    .selectFrom('sso_configurations')
    .select(columnsOf(SsoConfigurationEntity))
    .where('org_id', '=', organizationId)
    .where('replaces_id', '=', anyOf(configurations.map(({ id }) => id)))
    .execute();
  const isAnyReplaced = configurations.some(({ replacedAt }) => replacedAt !== null);
  const unlinked = isAnyReplaced ? await countUnlinked(db, organizationId) : new Map<string, number>();
  return configurations.map((configuration) => ({
    ...configuration,
    pending: changes.find(({ replacesId }) => replacesId === configuration.id) ?? null,
    unlinkedMembers: unlinked.get(configuration.id) ?? null,
  }));
}

export async function viewConfiguration(db: Db, scope: SsoScope, id: string): Promise<SsoConfigurationView> {
  const found = await findConfiguration(db, scope, id);
  const [view] = await viewConfigurations(db, scope, [found]);
  if (!view) throw notFound('SSO configuration', id);
  return view;
}
