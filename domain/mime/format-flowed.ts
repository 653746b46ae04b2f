interface FlowedLine {
  /** How many quote marks stand before it. */
  depth: number;
  text: string;
}

/** RFC 3676 section 4.3: the signature's separator ends with a space, and is no flowed line. */
const SIGNATURE_SEPARATOR = '-- ';

/**
 * Joins the lines that a program broke to fit (RFC 3676, `format=flowed`): a line that ends with a space goes on in the
 * next one of the same quote depth. What is quoted keeps its marks.
 *
 * @param deleteSpace `delsp=yes`: the space was not there before, as in Japanese.
 */
export function joinFlowedLines(text: string, deleteSpace: boolean): string {
  const joined: string[] = [];
  let open: FlowedLine | null = null;
  for (const line of text.split(/\r?\n/)) {
    const { depth, text: content } = parseLine(line);
    if (open && (open.depth !== depth || content === SIGNATURE_SEPARATOR)) {
      joined.push(formatLine(open));
      open = null;
    }
    const whole: string = (open?.text ?? '') + content;
    const isFlowed = content.endsWith(' ') && content !== SIGNATURE_SEPARATOR;
    if (isFlowed) open = { depth, text: deleteSpace ? whole.slice(0, -1) : whole };
    else {
      joined.push(formatLine({ depth, text: whole }));
      open = null;
    }
  }
  if (open) joined.push(formatLine(open));
  return joined.join('\n');
}

function parseLine(line: string): FlowedLine {
  let depth = 0;
  while (line[depth] === '>') depth += 1;
  // Section 4.4: a space before what would else be a mark, or `From `.
  const text = line[depth] === ' ' ? line.slice(depth + 1) : line.slice(depth);
  return { depth, text };
}

function formatLine({ depth, text }: FlowedLine): string {
  return depth === 0 ? text : `${'>'.repeat(depth)} ${text}`.trimEnd();
}
