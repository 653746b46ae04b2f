import { Transform } from 'node:stream';

/** How many characters of an incomplete line are retained for the next chunk. A boundary has at most 70 characters. */
const MAX_LINE_START = 1_000;

/**
 * Passes a message on up to the delimiter line (RFC 2046 section 5.1.1) of the first part beyond the limit. The parser
 * also has a limit, but fails when it reaches it, and discards everything that it has not emitted yet.
 *
 * @param onLimit called once; must stop writing to the stream.
 */
export function limitParts(maxParts: number, onLimit: () => void): Transform {
  const boundaries = new Set<string>();
  let lineStart = '';
  let parts = 0;
  let isTruncated = false;
  const collectBoundaries = (line: string) => {
    for (const [, quoted, plain] of line.matchAll(/\bboundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/gi))
      if (boundaries.size <= maxParts) boundaries.add(quoted ?? plain ?? '');
  };
  const opensPart = (line: string) => {
    // Fast path: most lines of a large message belong to a file and contain no boundary.
    if (line.includes('=')) collectBoundaries(line);
    return line.startsWith('--') && boundaries.has(line.slice(2).trimEnd());
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (isTruncated) return done();
      const lines = (lineStart + chunk.toString('latin1')).split('\n');
      let at = -lineStart.length;
      lineStart = lines.pop()?.slice(0, MAX_LINE_START) ?? '';
      for (const line of lines) {
        if (opensPart(line)) parts += 1;
        if (parts > maxParts) {
          isTruncated = true;
          // A delimiter that began in the previous chunk is harmless: the message ends within it.
          done(null, chunk.subarray(0, Math.max(0, at)));
          return onLimit();
        }
        at += line.length + 1;
      }
      done(null, chunk);
    },
  });
}
