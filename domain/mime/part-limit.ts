import { Transform } from 'node:stream';

/** What may stand at the end of a line that is cut off from the next chunk; a boundary has 70 characters at most. */
const MAX_LINE_START = 1_000;

/**
 * Hands a mail on up to the delimiter line (RFC 2046 section 5.1.1) of one part too many, and ends there. The parser has
 * a limit of its own, but fails on reaching it, and everything it has read and not yet told is lost.
 *
 * @param onLimit called once; what writes into the stream must stop.
 */
export function limitParts(maxParts: number, onLimit: () => void): Transform {
  const boundaries = new Set<string>();
  let lineStart = '';
  let parts = 0;
  let isCut = false;
  const learnBoundaries = (line: string) => {
    for (const [, quoted, plain] of line.matchAll(/\bboundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/gi))
      if (boundaries.size <= maxParts) boundaries.add(quoted ?? plain ?? '');
  };
  const opensPart = (line: string) => {
    // Most lines of a large mail are of a file and need no closer look.
    if (line.includes('=')) learnBoundaries(line);
    return line.startsWith('--') && boundaries.has(line.slice(2).trimEnd());
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (isCut) return done();
      const lines = (lineStart + chunk.toString('latin1')).split('\n');
      let at = -lineStart.length;
      lineStart = lines.pop()?.slice(0, MAX_LINE_START) ?? '';
      for (const line of lines) {
        if (opensPart(line)) parts += 1;
        if (parts > maxParts) {
          isCut = true;
          // A delimiter that began in the chunk before is harmless: the end of the mail cuts it off.
          done(null, chunk.subarray(0, Math.max(0, at)));
          return onLimit();
        }
        at += line.length + 1;
      }
      done(null, chunk);
    },
  });
}
