import { applyMetricDeltas } from '../../domain/metrics/metric-deltas.ts';
import type { Room } from '../room.ts';

export const metricsRoom: Room = {
  maintenance: ({ database }) => ({ sweeps: { metricDeltas: () => applyMetricDeltas(database) } }),
};
