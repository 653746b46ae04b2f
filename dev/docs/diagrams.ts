/** A step of a diagram: from one to another, with what happens; or a note. */
type Step = { from: string; to: string; text: string } | { note: string };

/**
 * A diagram in Mermaid, as a list of its steps: the site draws without scripts, and a list also fits a phone and a screen reader.
 */
export function readDiagram(source: string): Step[] {
  const lines = source.split('\n').map((line) => line.trim());
  const [kind = '', ...rest] = lines.filter((line) => line !== '' && !line.startsWith('%%'));
  if (kind.startsWith('sequenceDiagram')) return readSequence(rest);
  return readGraph(rest, kind.startsWith('stateDiagram'));
}

function readSequence(lines: readonly string[]): Step[] {
  const names = new Map(
    lines.flatMap((line) => {
      const [, id = '', name = ''] = /^participant (\S+)(?: as (.+))?$/.exec(line) ?? [];
      return id === '' ? [] : [[id, name || id] as const];
    }),
  );
  const nameOf = (id: string) => names.get(id) ?? id;
  return lines.flatMap((line): Step[] => {
    const [, from = '', to = '', text = ''] =
      /^(\w[\w ]*?)\s*-+[>)x]+\s*(\w[\w ]*?)\s*:\s*(.*)$/.exec(line) ?? [];
    if (from !== '') return [{ from: nameOf(from), to: nameOf(to), text }];
    const [, note = ''] = /^Note over [^:]+:\s*(.*)$/.exec(line) ?? [];
    if (note !== '') return [{ note }];
    const [, word = '', condition = ''] = /^(loop|alt|else|opt)\s*(.*)$/.exec(line) ?? [];
    return word === '' ? [] : [{ note: describeBranch(word, condition) }];
  });
}

const describeBranch = (word: string, condition: string): string =>
  word === 'loop' ? `For ${condition}:` : word === 'else' ? `Otherwise, ${condition}:` : `If ${condition}:`;

const EDGE = /\s*(?:<?-+>|-\.\s*(.*?)\s*\.->)\s*(?:\|"?(.*?)"?\|\s*)?/;

/** Of flow charts and state diagrams: `a[Name] -->|text| b --> c`, `a --> b: text`. */
function readGraph(lines: readonly string[], hasTextAtEnd: boolean): Step[] {
  const names = new Map<string, string>();
  const nameOf = (node: string): string => {
    const [, id = node, name = ''] = /^(\S+?)\s*[[({]+"?(.*?)"?[\])}]+$/.exec(node.trim()) ?? [];
    if (name !== '') names.set(id, withoutBreaks(name));
    return id === '[*]' ? '' : id;
  };
  const edges = lines.flatMap((line) => {
    const [path = '', text = ''] = hasTextAtEnd ? line.split(/:\s(?=[^"]*$)/) : [line];
    const parts = path.split(EDGE);
    const found: { from: string; to: string; text: string }[] = [];
    for (let index = 0; index + 3 < parts.length; index += 3) {
      const label = parts[index + 2] ?? parts[index + 1] ?? text;
      found.push({
        from: nameOf(parts[index] ?? ''),
        to: nameOf(parts[index + 3] ?? ''),
        text: withoutBreaks(label),
      });
    }
    return found;
  });
  const shown = (id: string) => names.get(id) ?? id;
  return edges.map(({ from, to, text }) => ({ from: shown(from), to: shown(to), text }));
}

const withoutBreaks = (text: string): string => text.replace(/<br>/g, ' ').trim();
