import type { TObject, TProperties, TSchema } from 'typebox';
import { resource } from './schemas.ts';

/** A schema with the fields of a minimal response (RFC 7240 section 4.2). */
export type MinimalResponse = TSchema & { $id: string; properties: TProperties };

/**
 * What a change answers to a credential that may write a resource but not read it: ids, version, status, and secrets that
 * the call itself created. Register it as a shared schema.
 *
 * @param record the full response, which has a `$id`.
 */
export function minimalOf<Properties extends TProperties>(
  record: TObject<Properties>,
  fields: readonly (keyof Properties & string)[],
): MinimalResponse {
  const $id = `Minimal${(record as { $id?: string }).$id}`;
  const properties: TProperties = Object.fromEntries(
    fields.map((name) => [name, record.properties[name] as TSchema]),
  );
  return resource('receipt', properties, {
    $id,
    title: $id,
    description: 'The response for a credential that may not read the resource.',
  }) as unknown as MinimalResponse;
}
