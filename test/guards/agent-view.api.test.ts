import { expect, test } from '@jest/globals';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

/** The schemas of a message in the other views. */
const MESSAGES = ['Message', 'MessageSummary', 'MessageListItem'];

/** The names of all schemas that a schema refers to, also through others. */
function namesIn(schema: unknown, found = new Set<string>()): Set<string> {
  for (const [, name = ''] of JSON.stringify(schema ?? {}).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    namesIn(app.contract.description.components.schemas[name], found);
  }
  return found;
}

test('every operation that answers a message offers view=agent, and documents it', () => {
  const operations = app.contract.operations.map(({ operationId, parameters = [], responses }) => {
    const answers = Object.entries(responses)
      .filter(([status]) => status.startsWith('2'))
      .map(([, { content }]) => content?.['application/json']?.schema);
    const names = namesIn(answers);
    return {
      operationId,
      answersMessage: MESSAGES.some((name) => names.has(name)),
      documents: names.has('AgentMessage'),
      offers: parameters.some(({ name, schema }) => name === 'view' && namesAgent(schema)),
    };
  });
  const ofMessages = operations.filter(({ answersMessage }) => answersMessage);
  expect(ofMessages.length).toBeGreaterThan(14);
  expect(ofMessages.filter(({ offers, documents }) => !offers || !documents)).toEqual([]);
  expect(operations.filter(({ answersMessage, documents }) => documents && !answersMessage)).toEqual([]);
});

/** A parameter refers to a named enumeration. */
function namesAgent(schema: object): boolean {
  const named = [...namesIn(schema)].map((name) => app.contract.description.components.schemas[name]);
  return JSON.stringify([schema, named]).includes('"agent"');
}
