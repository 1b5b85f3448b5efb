import { type ChildProcess, spawn } from 'node:child_process';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import getPort from 'get-port';
import { waitUntilListening } from '../../dev/environment/probe.ts';
import { endChild } from './end-child.ts';
import { provided } from './provided.ts';
import { addSearchAttributes } from './temporal.ts';

/** Milliseconds. Java takes one second; on a busy machine, where nothing has read its files before, more than five. */
const LISTENS_WITHIN = 60_000;
/** Takes a number, does nothing, and waits to be ended: it stands in for a server that runs already. */
const IDLE = '/bin/sleep';

/**
 * A server of its own whose clock jumps to the next timer while a client waits for a result, with our search attributes.
 * End it with `teardown()`. It knows no lists of workflows, schedules or limits.
 *
 * The SDK would end a server that does not listen within five seconds. So the server is started here, and the SDK, which
 * skips time only on a server that it has started, gets a program that idles while it connects to ours.
 */
export async function timeSkipping(): Promise<TestWorkflowEnvironment> {
  const port = await getPort();
  const server = spawn(provided('TEMPORAL_TEST_SERVER_PATH'), [String(port)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    await listens(server, port);
    const environment = await TestWorkflowEnvironment.createTimeSkipping({
      server: { port, executable: { type: 'existing-path', path: IDLE } },
    });
    const disconnect = environment.teardown.bind(environment);
    environment.teardown = async () => {
      await disconnect();
      await endChild(server);
    };
    await addSearchAttributes(environment.nativeConnection.operatorService, environment.namespace ?? 'default', 0);
    return environment;
  } catch (error) {
    await endChild(server);
    throw error;
  }
}

async function listens(server: ChildProcess, port: number): Promise<void> {
  const ended = new AbortController();
  const stop = (error?: Error) => ended.abort(error ?? new Error('the time-skipping server ended before it listened'));
  server.once('error', stop).once('exit', () => stop());
  await waitUntilListening(port, AbortSignal.any([ended.signal, AbortSignal.timeout(LISTENS_WITHIN)]));
}
