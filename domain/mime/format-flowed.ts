interface FlowedLine {
  /** Number of leading quote marks. */
  depth: number;
  text: string;
}

/** RFC 3676 section 4.3: the signature separator ends with a space and is not a flowed line. */
const SIGNATURE_SEPARATOR = '-- ';

/**
 * Joins soft-wrapped lines (RFC 3676, `format=flowed`): a line that ends with a space continues on the next line with the
 * same quote depth. Quote marks are kept.
 *
 * @param deleteSpace `delsp=yes`: the trailing space is not part of the text, as in Japanese.
 */
export function joinFlowedLines(text: string, deleteSpace: boolean): string {
  const joined: string[] = [];
  // Pieces, because appending to a long text and truncating it again copies it each time.
  let open: { depth: number; pieces: string[] } | null = null;
  for (const line of text.split(/\r?\n/)) {
    const { depth, text: content } = parseLine(line);
    if (open && (open.depth !== depth || content === SIGNATURE_SEPARATOR)) {
      joined.push(formatLine(open));
      open = null;
    }
    const isFlowed = content.endsWith(' ') && content !== SIGNATURE_SEPARATOR;
    open ??= { depth, pieces: [] };
    open.pieces.push(isFlowed && deleteSpace ? content.slice(0, -1) : content);
    if (isFlowed) continue;
    joined.push(formatLine(open));
    open = null;
  }
  if (open) joined.push(formatLine(open));
  return joined.join('\n');
}

function parseLine(line: string): FlowedLine {
  let depth = 0;
  while (line[depth] === '>') depth += 1;
  // Section 4.4: removes the space that was added to a line that starts with `>`, a space or `From `.
  const text = line[depth] === ' ' ? line.slice(depth + 1) : line.slice(depth);
  return { depth, text };
}

function formatLine({ depth, pieces }: { depth: number; pieces: string[] }): string {
  const text = pieces.join('');
  return depth === 0 ? text : `${'>'.repeat(depth)} ${text}`.trimEnd();
}
