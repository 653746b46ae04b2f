/** Primary key of a row, by column: text, or bytes. */
export type SealedRowKey = Readonly<Record<string, string | Buffer>>;

/**
 * A column whose values `SecretBox` encrypts. The room of the table declares it, and `domain/sealed-columns.ts` lists all of
 * them, so that `npm run keys:reencrypt` finds every value.
 */
export interface SealedColumn {
  table: string;
  column: string;
  /** Columns of the primary key. */
  key: readonly string[];
  /** The context that the room passes to `seal` and `open`. */
  context(key: SealedRowKey): string;
}
