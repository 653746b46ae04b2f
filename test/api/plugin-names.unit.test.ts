import { expect, test } from '@jest/globals';
import { type FastifyInstance, fastify } from 'fastify';
import { installPluginNames } from '../../api/plugins/plugin-names.ts';

/** Names of the plugins as Fastify sees them. Without the symbol it takes the path of a module, or the text of the function. */
async function namesOf(register: (app: FastifyInstance, seen: string[]) => void): Promise<string[]> {
  const seen: string[] = [];
  const app = fastify();
  installPluginNames(app);
  register(app, seen);
  await app.ready();
  await app.close();
  return seen;
}

test('Fastify takes the name of the function, also for plugins within plugins', async () => {
  const names = await namesOf((app, seen) => {
    app.register(async function outer(instance) {
      seen.push(instance.pluginName);
      instance.register(async function inner(nested) {
        seen.push(nested.pluginName);
      });
    });
    app.register(async (instance) => void seen.push(instance.pluginName));
  });
  expect(names).toEqual(['outer', 'inner', 'anonymous']);
});

test('a plugin that has a name of its own keeps it', async () => {
  const [name] = await namesOf((app, seen) => {
    const plugin = async (instance: FastifyInstance) => void seen.push(instance.pluginName);
    app.register(Object.assign(plugin, { [Symbol.for('fastify.display-name')]: 'own' }));
  });
  expect(name).toBe('own');
});
