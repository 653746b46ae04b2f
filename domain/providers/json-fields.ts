import { storableTime } from '../../platform/database/storable.ts';

/** JSON from a provider. Any field may be missing or have another type. */
export type JsonObject = Record<string, unknown>;

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function toObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function toList(value: unknown, maxItems: number): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxItems) : [];
}

/** Returns null unless the value is a nonempty string. Truncates to 1,000 characters. */
export function toText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, 1_000) : null;
}

export function toDate(value: unknown): Date | null {
  return storableTime(Date.parse(toText(value) ?? ''));
}
