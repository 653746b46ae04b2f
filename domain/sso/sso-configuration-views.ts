import { findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { type SsoConfiguration, SsoConfigurationEntity } from './sso-configuration.entity.ts';
import { countUnlinked } from './sso-providers.ts';
import type { SsoScope } from './sso-scope.ts';

/** A configuration as people see it. */
export type SsoConfigurationView = Row<SsoConfiguration> & {
  /** What waits for its test and activation; null for nothing. */
  pending: Row<SsoConfiguration> | null;
  /** Members who have to link once through this replaced configuration; null unless it only links. */
  unlinkedMembers: number | null;
};

export async function viewConfigurations(
  reader: RowReader,
  { organizationId }: SsoScope,
  configurations: readonly Row<SsoConfiguration>[],
): Promise<SsoConfigurationView[]> {
  const ids = configurations.map(({ id }) => id);
  const changes =
    ids.length === 0
      ? []
      : await findRows(reader, SsoConfigurationEntity, {
          where: { organizationId, replacesId: { $in: ids } },
        });
  const isAnyReplaced = configurations.some(({ replacedAt }) => replacedAt !== null);
  const unlinked = isAnyReplaced ? await countUnlinked(reader, organizationId) : new Map<string, number>();
  return configurations.map((configuration) => ({
    ...configuration,
    pending: changes.find(({ replacesId }) => replacesId === configuration.id) ?? null,
    unlinkedMembers: unlinked.get(configuration.id) ?? null,
  }));
}

export async function viewConfiguration(
  reader: RowReader,
  scope: SsoScope,
  id: string,
): Promise<SsoConfigurationView> {
  const { organizationId } = scope;
  const found = await findRows(reader, SsoConfigurationEntity, {
    where: { id, organizationId, replacesId: null },
  });
  const [view] = await viewConfigurations(reader, scope, found);
  if (!view) throw notFound('SSO configuration', id);
  return view;
}
