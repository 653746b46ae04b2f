type Members = Record<string, unknown>;

interface Described {
  paths: Record<string, Record<string, Members>>;
  components: Record<string, Record<string, Members>>;
}

const AGENT_MESSAGE = 'AgentMessage';
/** The messages of the other views. */
const OTHER_MESSAGES = ['Message', 'MessageListItem', 'MessageSummary'];
const VIEW = {
  name: 'view',
  in: 'query',
  required: true,
  description: 'Messages in the short form of this document.',
  schema: { type: 'string', const: 'agent' },
};

/** The document with no other view of messages than that for agents, which every operation must then ask for. */
export function withAgentViewOnly<Document extends Described>(document: Document): Document {
  const { schemas = {} } = document.components;
  const replaced = new Map<string, string>();
  const unions: Record<string, Members> = {};
  for (const [name, schema] of Object.entries(schemas)) {
    const branches = ((schema.anyOf ?? []) as Members[]).map(({ $ref }) => nameOf(String($ref)));
    if (!branches.includes(AGENT_MESSAGE)) continue;
    const kept = branches.filter((branch) => !OTHER_MESSAGES.includes(branch));
    replaced.set(name, kept.join('Or'));
    if (kept.length > 1) unions[kept.join('Or')] = unionOf(kept, schemas);
  }
  const json = JSON.stringify({
    paths: document.paths,
    components: {
      ...document.components,
      schemas: { ...schemas, ...unions },
      parameters: { ...document.components.parameters, View: VIEW },
    },
  }).replace(/"#\/components\/schemas\/(\w+)"/g, (reference, name: string) =>
    JSON.stringify(replaced.has(name) ? refer(replaced.get(name) ?? '') : JSON.parse(reference)),
  );
  const selected = JSON.parse(json) as Described;
  for (const operation of Object.values(selected.paths).flatMap((item) => Object.values(item)))
    operation.parameters = (operation.parameters as Members[] | undefined)?.map((parameter) =>
      parameter.name === 'view' ? { $ref: '#/components/parameters/View' } : parameter,
    );
  return { ...document, ...selected };
}

function unionOf(names: string[], schemas: Record<string, Members>): Members {
  const kindOf = (name: string) =>
    (schemas[name]?.properties as Record<string, Members> | undefined)?.object?.const;
  return {
    oneOf: names.map((name) => ({ $ref: refer(name) })),
    discriminator: {
      propertyName: 'object',
      mapping: Object.fromEntries(names.map((name) => [kindOf(name), refer(name)])),
    },
  };
}

const refer = (name: string): string => `#/components/schemas/${name}`;
const nameOf = (reference: string): string => reference.split('/').at(-1) ?? '';
