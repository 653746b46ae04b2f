import { foldMetrics } from '../../domain/metrics/fold-metrics.ts';
import type { Room } from '../room.ts';

export const metricsRoom: Room = {
  maintenance: ({ database }) => ({ sweeps: { metricDeltas: () => foldMetrics(database) } }),
};
