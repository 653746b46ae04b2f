import { describe, expect, test } from '@jest/globals';
import { startAuthorizingProxy } from '../support/authorizing-proxy.ts';
import { runRequirements, runScenario } from '../support/conformance-suite.ts';
import { toolsUrl } from '../support/mcp-client.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { startSuiteServer } from '../support/suite-server.ts';
import { useResource } from '../support/use-resource.ts';

const app = useTestApp();
const proxy = useResource(
  async () => startAuthorizingProxy(await toolsUrl(app), (await createOrganization(app.worker)).token),
  (started) => started.stop(),
);

/** Scenarios that need no tools of the suite's own, by the revision at whose wire they run. */
const SCENARIOS = {
  '2026-07-28': [
    'server-stateless',
    'tools-list',
    'caching',
    'http-header-validation',
    'dns-rebinding-protection',
  ],
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  '2025-06-18': ['server-initialize', 'ping', 'tools-list'],
};

/** Checks within them that need tools, prompts or resources which this service does not have. */
const NOT_OFFERED: Record<string, readonly string[]> = {
  'server-stateless': [
    'sep-2575-server-rejects-undeclared-capability',
    'sep-2575-missing-capability-http-400',
    'sep-2575-http-server-no-independent-requests-on-stream',
    'sep-2575-server-no-log-without-loglevel',
  ],
  caching: [
    'sep-2549-prompts-list-caching-hints',
    'sep-2549-resources-list-caching-hints',
    'sep-2549-resources-templates-list-caching-hints',
  ],
};

describe.each(Object.entries(SCENARIOS))('the official suite at revision %s', (revision, scenarios) => {
  test.each(scenarios)(
    '%s passes',
    async (scenario) => {
      const { passed, failed } = await runScenario(proxy.url, scenario, revision);
      expect({ scenario, failed }).toEqual({ scenario, failed: NOT_OFFERED[scenario] ?? [] });
      expect(passed.length).toBeGreaterThan(0);
    },
    90_000,
  );
});

/** What a server without sessions cannot do: ask its client in the middle of a call, and announce changes later. */
const NEEDS_A_SESSION: Record<string, readonly string[]> = {
  '2026-07-28': [],
  '2025-11-25': [
    'tools-call-sampling',
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
    'resources-subscribe',
    'resources-unsubscribe',
  ],
};

describe('the transport, with the tools that the official suite asks for', () => {
  const suite = useResource(startSuiteServer, (started) => started.stop());

  test.each(Object.entries(NEEDS_A_SESSION))(
    'does what revision %s requires',
    async (revision, exceptions) => {
      const { passed, failed } = await runRequirements(suite.url, revision);
      expect(failed).toEqual(exceptions);
      expect(passed.length).toBeGreaterThan(20);
    },
    300_000,
  );
});
