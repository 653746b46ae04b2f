/**
 * Builds the header value (RFC 6266): an ASCII name for old clients, and the full name in RFC 8187 encoding. The name may
 * come from untrusted mail, so control characters and path separators are removed.
 */
export function buildContentDisposition(filename: string): string {
  const name = filename
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}]/gu, '')
    .replace(/[/\\]/g, '_')
    .slice(0, 200)
    .toWellFormed();
  const plain = name.replace(/[^\x20-\x7e]|["%]/g, '_') || 'attachment';
  const extended = encodeURIComponent(name || 'attachment').replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`;
}
