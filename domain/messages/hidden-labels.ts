/** A message with one of these labels is listed only if a request asks for the label, and has no event. */
export const HIDDEN_LABELS = ['spam', 'blocked'] as const;

export function isHidden(labels: readonly string[]): boolean {
  return HIDDEN_LABELS.some((label) => labels.includes(label));
}
