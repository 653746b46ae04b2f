/** The part of a Babel path that this file looks at. */
interface NodePath {
  node: { type: string };
  key: string | number | null;
  listKey?: string;
  parent: { type: string; key?: { name?: string }; callee?: Callee };
}
type Callee = { name?: string; property?: { name?: string } };

/** Properties that hold text for a reader. */
const TEXT_PROPERTIES = ['detail', 'fix'];
/** The first argument that is text for a reader. Codes, paths and names of checks stand before it. */
const FIRST_TEXT_ARGUMENT: Record<string, number> = {
  invalid: 1,
  createSuspendedRefusal: 1,
  pass: 1,
  fail: 1,
  require: 2,
  failKey: 0,
};

function isText({ node, key, listKey, parent }: NodePath): boolean {
  if (node.type !== 'StringLiteral' && node.type !== 'TemplateLiteral') return false;
  if (parent.type === 'ObjectProperty')
    return key === 'value' && TEXT_PROPERTIES.includes(parent.key?.name ?? '');
  if (listKey !== 'arguments' || typeof key !== 'number') return false;
  const name = parent.callee?.name ?? parent.callee?.property?.name ?? '';
  if (parent.type === 'NewExpression') return name !== 'AppError' && /(?:Error|Refusal)$/.test(name);
  return key >= (FIRST_TEXT_ARGUMENT[name] ?? Number.POSITIVE_INFINITY);
}

/** A plug-in of Stryker: a test that pins the wording of a message would find no defect. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'messages',
    value: { shouldIgnore: (path: NodePath) => (isText(path) ? 'the text of a message' : undefined) },
  },
];
