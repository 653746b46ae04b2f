/** Of what a provider posts every field may be missing or something else. */
export type Fields = Record<string, unknown>;

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function objectOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function listOf(value: unknown, maxItems: number): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxItems) : [];
}

/** Null for what is no text, and for none. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, 1_000) : null;
}

export function timeOf(value: unknown): Date | null {
  const time = Date.parse(textOf(value) ?? '');
  return Number.isNaN(time) ? null : new Date(time);
}
