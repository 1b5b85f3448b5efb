import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
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

/** IndexedValueType of Temporal's API: an exact word. */
const KEYWORD = 2;
/** Milliseconds that a cluster of several machines may take to know a new namespace everywhere. */
const KNOWN_WITHIN = 30_000;

/**
 * A namespace for one test file on the run's Temporal server, with our search attributes: task queues and workflow ids in
 * it are its own, so files may run side by side under the product's names.
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
  await addSearchAttributes(operatorService, namespace, Date.now() + KNOWN_WITHIN);
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

/**
 * A server of its own whose clock jumps to the next timer while a client waits for a result, with our search attributes.
 * End it with `teardown()`. It knows no lists of workflows, schedules or limits.
 */
export async function timeSkipping(): Promise<TestWorkflowEnvironment> {
  const path = provided('TEMPORAL_TEST_SERVER_PATH');
  const environment = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path } },
  });
  await addSearchAttributes(environment.nativeConnection.operatorService, environment.namespace ?? 'default', 0);
  return environment;
}

/** @param until Unix milliseconds up to which a namespace may not be known yet */
async function addSearchAttributes(
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
