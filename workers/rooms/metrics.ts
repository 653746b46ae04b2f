import { applyMetricDeltas } from '../../domain/metrics/apply-metric-deltas.ts';
import type { Room } from '../room.ts';

export const metricsRoom: Room = {
  maintenance: ({ database }) => ({ sweeps: { metricDeltas: () => applyMetricDeltas(database) } }),
};
