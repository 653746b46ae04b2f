import { benchAgentView } from './agent-view.ts';
import { benchApi } from './api.ts';
import { benchExport } from './export.ts';
import { benchFlood } from './flood.ts';
import { benchInbound } from './inbound.ts';
import { benchParsing } from './mail-parsing.ts';
import { benchMemory } from './memory.ts';
import { benchMetrics } from './metrics.ts';
import { benchNeighbors } from './neighbors.ts';
import { benchRetention } from './retention.ts';
import { benchScale } from './scale.ts';
import { benchSearch } from './search.ts';
import { benchSend } from './send.ts';
import { benchWeb } from './web.ts';
import { benchWebhooks } from './webhooks.ts';

/** `npm run bench` runs all benches, `npm run bench -- send` one. BENCH_MESSAGES sets the size (1,000; api: 5,000; flood: 6,000; web: 100,000). */
const BENCHES: Record<string, () => Promise<void>> = {
  send: benchSend,
  api: benchApi,
  agent: async () => benchAgentView(),
  inbound: benchInbound,
  flood: benchFlood,
  parsing: async () => benchParsing(),
  memory: benchMemory,
  search: benchSearch,
  retention: benchRetention,
  scale: benchScale,
  metrics: benchMetrics,
  webhooks: benchWebhooks,
  web: benchWeb,
  export: benchExport,
  neighbors: benchNeighbors,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`Unknown bench ${unknown.join(', ')}; available: ${Object.keys(BENCHES).join(', ')}.`);
  process.exitCode = 2;
} else {
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    console.log(`\n${name}`);
    await bench();
  }
}
