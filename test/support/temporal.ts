import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { NativeConnection } from '@temporalio/worker';
import { SEARCH_ATTRIBUTES } from '../../src/relay/temporal.ts';
import { provided } from './provided.ts';

export interface TestNamespace {
  readonly address: string;
  readonly namespace: string;
  readonly connection: NativeConnection;
  readonly client: Client;
  /** Removes the namespace and closes the connection. Workers on it must have stopped. */
  readonly close: () => Promise<void>;
}

/** IndexedValueType of Temporal's API: a keyword. */
const KEYWORD = 2;
/** How long it may take until all machines of a cluster know a new namespace. */
const NAMESPACE_TIMEOUT_MS = 30_000;

/**
 * A namespace for one test file on the run's Temporal server, with our search attributes. Task queues and workflow ids are
 * separate, so files run concurrently with the product's names.
 */
export async function testNamespace(): Promise<TestNamespace> {
  const address = provided('TEST_TEMPORAL_ADDRESS');
  const namespace = `test-${provided('TEST_RUN')}-${randomBytes(4).toString('hex')}`;
  const connection = await NativeConnection.connect({ address });
  const { workflowService, operatorService } = connection;
  await workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs('1 day'),
  });
  await addSearchAttributes(operatorService, namespace, Date.now() + NAMESPACE_TIMEOUT_MS);
  return {
    address,
    namespace,
    connection,
    client: new Client({ connection, namespace }),
    async close() {
      await operatorService.deleteNamespace({ namespace });
      await connection.close();
    },
  };
}

/** @param until Unix milliseconds up to which a namespace may not be known yet */
export async function addSearchAttributes(
  operatorService: NativeConnection['operatorService'],
  namespace: string,
  until: number,
): Promise<void> {
  const searchAttributes = Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, KEYWORD]));
  for (;;) {
    try {
      await operatorService.addSearchAttributes({ namespace, searchAttributes });
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(100);
    }
  }
}
