import type { Event } from '../sdk.ts';
import { visible } from '../terminal/visible.ts';

/** Time, type, what it is about, and the subject. */
export function eventLine({ timestamp, type, data }: Event): string {
  const fields = data as object as Record<string, unknown>;
  const about = ['message_id', 'draft_id', 'domain_name', 'counter'].map((name) => fields[name]).find(isText);
  const from = isText(fields.from_address) ? [`from ${fields.from_address}`] : [];
  const subject = isText(fields.subject) ? [fields.subject] : [];
  const time = new Date(timestamp).toTimeString().slice(0, 8);
  return [time, type, about ?? '', ...from, ...subject].map(visible).join('  ').trimEnd();
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
