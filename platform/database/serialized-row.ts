/** A row as a plain SQL statement returns it: the driver returns timestamps as text. */
export type SerializedRow<Row> = {
  [Key in keyof Row]: Row[Key] extends Date ? string : Date extends Row[Key] ? string | null : Row[Key];
};

/** Parses a nullable timestamp of such a row. */
export function parseTimestamp(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
