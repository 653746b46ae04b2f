/** Text for a pattern of `like` and `ilike` that matches only itself. */
export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}
