import { type ChildProcess, spawn } from 'node:child_process';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import getPort from 'get-port';
import { waitUntilListening } from '../../dev/environment/probe.ts';
import { makeDeadline } from '../../src/lib/deadline.ts';
import { endChild } from './end-child.ts';
import { provided } from './provided.ts';
import { addSearchAttributes } from './temporal.ts';

/** Java takes one second; on a busy machine with a cold cache more than five. */
const LISTEN_TIMEOUT_MS = 60_000;
/** A program that only waits, in place of a server that already runs. */
const IDLE = '/bin/sleep';

/**
 * A server whose clock jumps to the next timer while a client waits for a result, with our search attributes. End it with
 * `teardown()`. It does not support lists of workflows, schedules and limits.
 *
 * The SDK ends a server that does not listen within five seconds, and skips time only on a server that it started. So the
 * server is started here, and the SDK starts an idle program and connects to this server.
 */
export async function timeSkipping(): Promise<TestWorkflowEnvironment> {
  const port = await getPort();
  const server = spawn(provided('TEMPORAL_TEST_SERVER_PATH'), [String(port)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    await awaitListening(server, port);
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

async function awaitListening(server: ChildProcess, port: number): Promise<void> {
  const ended = new AbortController();
  const stop = (error?: Error) => ended.abort(error ?? new Error('the time-skipping server ended before it listened'));
  server.once('error', stop).once('exit', () => stop());
  await waitUntilListening(port, makeDeadline(LISTEN_TIMEOUT_MS, [ended.signal]));
}
