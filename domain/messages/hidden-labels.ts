/** Mail with one of these is kept and not shown: listed only where its label is asked for, never announced. */
export const HIDDEN_LABELS = ['spam', 'blocked'] as const;

export function isHidden(labels: readonly string[]): boolean {
  return HIDDEN_LABELS.some((label) => labels.includes(label));
}
