import type { FastifyInstance } from 'fastify';

const DISPLAY_NAME = Symbol.for('fastify.display-name');

/**
 * Names the plugins that are registered from here on, also within others. For one without a name, Fastify searches all
 * loaded CommonJS modules, twice: under Jest that was half of the time of building the app. Needed until Fastify takes the name
 * of the function itself.
 */
export function installPluginNames(app: FastifyInstance): void {
  const register = app.register as (plugin: unknown, options: unknown) => unknown;
  const registerNamed = function (this: FastifyInstance, plugin: unknown, options: unknown): unknown {
    if (typeof plugin === 'function' && !(DISPLAY_NAME in plugin))
      Object.defineProperty(plugin, DISPLAY_NAME, { value: plugin.name || 'anonymous' });
    return register.call(this, plugin, options);
  };
  app.register = registerNamed as unknown as typeof app.register;
}
