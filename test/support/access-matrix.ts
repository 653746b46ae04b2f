import type { Permission } from '../../domain/identity/permissions.ts';
import { asToolCall } from './connections.ts';
import type { Contract, Operation } from './contract.ts';
import { buildRequest, findIdPositions, type IdPosition, type ResourceIds, withId } from './operations.ts';
import { asSchemaOwner } from './rich-organization.ts';
import type { Call, TestApp } from './test-app.ts';

/** Somebody who must not reach the victim: a key, a connection, or the session of a person. */
export interface Caller {
  name: string;
  /** The value of Authorization is `Bearer {token}`. */
  token: string;
  /** Those of the key, or of the person's role. */
  permissions: ReadonlySet<Permission>;
  /** Operations that are refused although the caller has their permission. Default: none. */
  isRefused?(operation: Operation): boolean;
  /** Resources that the caller may use, so that only the id under test is foreign. */
  own: ResourceIds;
  /** A connection that works for tools alone, which call the same operations. */
  callsTools?: true;
}

export interface Victim {
  organizationId: string;
  /** The part of the organization that the caller must not reach; unset: all of it. */
  place?: { environmentId: string; exceptInboxId: string };
  /** The caller belongs to the organization, so its requests count in it. */
  includesCaller?: true;
  ids: ResourceIds;
  /** Texts that occur only in the victim's rows. */
  markers: string[];
}

export interface Probe {
  /** `drafts.get path id`, to find a failure. */
  name: string;
  position: IdPosition | 'x-env-id' | 'x-org-id' | 'none';
  /** The victim's id in it; empty if there is none. */
  id: string;
  operation: Operation;
  path: string;
  call: Call;
  callsTools?: true | undefined;
}

/**
 * One request for each place of each operation that takes an id, with the victim's id there and the caller's own
 * everywhere else; one request for each operation in the victim's organization and environment; and each read of the
 * caller's own data.
 */
export function listProbes(contract: Contract, caller: Caller, victim: Victim): Probe[] {
  return contract.operations
    .filter((operation) => operation['x-permission'] !== undefined || operation['x-credential'] !== undefined)
    .flatMap((operation) => [...probesOf(operation, contract, caller, victim)])
    .map((probe) => ({ ...probe, callsTools: caller.callsTools }));
}

function* probesOf(
  operation: Operation,
  { description }: Contract,
  caller: Caller,
  victim: Victim,
): Generator<Probe> {
  const { token, own } = caller;
  // A place that takes no foreign id in this test still needs some id.
  const filled = { ...victim.ids, ...own };
  for (const position of findIdPositions(operation, description.components.schemas)) {
    const foreign = victim.ids[position.resource];
    if (foreign === undefined) continue;
    const { path, call } =
      position.where === 'path'
        ? buildRequest(operation, { ...filled, [position.resource]: foreign })
        : withId(buildRequest(operation, filled), position, foreign);
    const name = `${operation.operationId} ${position.where} ${position.name}`;
    yield { name, position, id: foreign, operation, path, call: { ...call, token } };
  }
  if (operation.method === 'GET' && !isStream(operation) && hasOwnPath(operation, description, own)) {
    const { path, call } = buildRequest(operation, own);
    const name = `${operation.operationId} of its own`;
    yield { name, position: 'none', id: '', operation, path, call: { ...call, token } };
  }
  const environmentId = victim.ids.environment;
  if (environmentId === undefined && victim.includesCaller) return;
  const { path, call } = buildRequest(operation, filled);
  if (!victim.includesCaller) {
    const headers = { ...call.headers, 'x-org-id': victim.organizationId };
    yield {
      name: `${operation.operationId} header x-org-id`,
      position: 'x-org-id',
      id: victim.organizationId,
      operation,
      path,
      call: { ...call, token, headers },
    };
  }
  if (environmentId === undefined) return;
  const headers = { ...call.headers, 'x-env-id': environmentId };
  yield {
    name: `${operation.operationId} header x-env-id`,
    position: 'x-env-id',
    id: environmentId,
    operation,
    path,
    call: { ...call, token, headers },
  };
}

/** A stream stays open. */
export const isStream = ({ responses }: Operation) =>
  responses[200]?.content?.['text/event-stream'] !== undefined;

function hasOwnPath(
  operation: Operation,
  { components }: Contract['description'],
  own: ResourceIds,
): boolean {
  return findIdPositions(operation, components.schemas)
    .filter(({ where }) => where === 'path')
    .every(({ resource }) => own[resource] !== undefined);
}

/** Calls an operation as its caller does. */
export function callAs(
  app: Pick<TestApp, 'call'>,
  { path, call, callsTools }: Pick<Probe, 'path' | 'call' | 'callsTools'>,
) {
  const send = () => app.call(path, call);
  return callsTools ? asToolCall(send) : send();
}

const CONCURRENCY = 8;

/** Makes all requests. @returns the violations, which `check` describes. */
export async function probeAll(
  app: Pick<TestApp, 'call'>,
  probes: readonly Probe[],
  check: (probe: Probe, status: number, body: string) => string | undefined,
): Promise<string[]> {
  const violations: string[] = [];
  const queue = probes.entries();
  const work = async () => {
    for (const [index, probe] of queue) {
      const headers = { ...probe.call.headers, 'x-forwarded-for': `192.0.${index >> 8}.${index & 255}` };
      const { statusCode, body } = await callAs(app, { ...probe, call: { ...probe.call, headers } });
      const violation = check(probe, statusCode, body);
      if (violation !== undefined)
        violations.push(`${probe.name}: ${statusCode} ${violation} ${body.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return violations;
}

/** A sweep moves rows between these tables, also while other tests run. Only their sums are compared. */
const USAGE_TABLES = ['usage_counters', 'usage_deltas', 'usage_hours'];
const USAGE_SUMS = `
  select coalesce(string_agg(counter || ' ' || counted || ' ' || hourly, ', ' order by counter), '') as digest from (
    select counter, sum(counted)::text as counted, sum(hourly)::text as hourly from (
      select counter, amount as counted, 0 as hourly from usage_counters where org_id = $1
      union all select counter, 0, amount from usage_hours where org_id = $1
      union all select counter, amount, amount from usage_deltas where org_id = $1) rows
    group by counter) sums`;

/** Tables that requests of the organization itself change, whatever they reach. */
const CHANGED_BY_ANY_REQUEST = ['api_keys', 'api_requests', ...USAGE_TABLES];

/**
 * A digest of the victim's rows by table. Tables without environment are included for a whole organization alone: in a
 * part of it, rows of the caller's own place may be among them.
 */
export function digestRows({
  organizationId,
  place,
  includesCaller,
}: Victim): Promise<Record<string, string>> {
  return asSchemaOwner(async (client) => {
    const { rows: tables } = await client.query<{ name: string; columns: string[] }>(`
      select c.relname as name, array_agg(a.attname::text) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' group by c.relname order by c.relname`);
    const digests: Record<string, string> = {};
    for (const { name, columns } of tables) {
      const tenant = name === 'organizations' ? 'id' : 'org_id';
      if (!columns.includes(tenant)) continue;
      if (includesCaller && CHANGED_BY_ANY_REQUEST.includes(name)) continue;
      if (place && !columns.includes('env_id')) continue;
      if (USAGE_TABLES.includes(name)) {
        digests.usage ??=
          (await client.query<{ digest: string }>(USAGE_SUMS, [organizationId])).rows[0]?.digest ?? '';
        continue;
      }
      const ofPlace = place
        ? `and env_id = $2 ${columns.includes('inbox_id') ? 'and inbox_id is distinct from $3' : name === 'inboxes' ? 'and id <> $3' : `and $3 <> ''`}`
        : '';
      const { rows } = await client.query<{ digest: string }>(
        `select count(*) || ' ' || coalesce(md5(string_agg(md5(t::text), '' order by t::text)), '') as digest
         from "${name}" t where "${tenant}" = $1 ${ofPlace}`,
        place ? [organizationId, place.environmentId, place.exceptInboxId] : [organizationId],
      );
      digests[name] = rows[0]?.digest ?? '';
    }
    return digests;
  });
}

/** Writes a text that occurs nowhere else into the rows of an environment. */
export function markEnvironment(environmentId: string, marker: string): Promise<void> {
  return asSchemaOwner(async (client) => {
    for (const [table, column] of [
      ['messages', 'subject'],
      ['messages', 'text_body'],
      ['messages', 'preview'],
      ['drafts', 'subject'],
      ['threads', 'subject'],
      ['inboxes', 'display_name'],
      ['attachments', 'filename'],
      ['webhook_endpoints', 'description'],
    ])
      await client.query(`update ${table} set ${column} = $2 where env_id = $1`, [environmentId, marker]);
    await client.query(
      `update events set data = data || jsonb_build_object('extracted_text', $2::text) where env_id = $1`,
      [environmentId, marker],
    );
  });
}
