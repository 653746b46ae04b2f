/** A calendar month, UTC. */
export interface Period {
  start: Date;
  /** Exclusive: the start of the next month. */
  end: Date;
}

export function monthOf(time: Date): Period {
  const month = (offset: number) => new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + offset));
  return { start: month(0), end: month(1) };
}
