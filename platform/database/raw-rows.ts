/** A row as a plain statement returns it: its times are text. */
export type Raw<Row> = {
  [Key in keyof Row]: Row[Key] extends Date ? string : Date extends Row[Key] ? string | null : Row[Key];
};

/** A time of such a row that may be missing. */
export function timeOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
