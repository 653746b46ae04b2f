import { Connection } from '@temporalio/client';
import { CLIENT_INTERCEPTORS } from '../../platform/temporal.ts';

/**
 * Connects to the Temporal of a test. A retry that outlives an ordinary connection throws in a timer, and so fails the test
 * file that its process runs by then.
 */
export const connectToTemporal = (address: string): Promise<Connection> =>
  Connection.connect({ address, interceptors: CLIENT_INTERCEPTORS });
