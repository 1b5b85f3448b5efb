import type { ChatMessage } from '../../client/index.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { eventually } from '../support/eventually.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';
import { clientOf } from '../support/start.ts';

/** Milliseconds until a dead worker's heartbeat times out, and a minute in which a report may still come. */
export const TIMEOUT_MS = 110_000;

/** How many messages to this number the simulated providers accepted. */
export async function taken(inbox: string, to: string): Promise<number> {
  const response = await fetch(`${inbox}/messages?to=${encodeURIComponent(to)}`);
  return ((await response.json()) as unknown[]).length;
}

/** A number of each provider. */
export async function numbers(dev: DevFile): Promise<{ twilio: string; meta: string }> {
  const { numbers: ours } = clientOf(dev);
  const { numbers: connected } = await ours.list().page();
  const { number: meta } = await ours.create({
    ...{ number: '+12025550199', provider: 'meta', phone_number_id: '12025550199' },
    access_token: 'a-token',
  });
  return { twilio: connected.find(({ provider }) => provider === 'twilio')?.number ?? '', meta };
}

/** Waits until a message has this status. */
export async function ended(dev: DevFile, id: string, status: ChatMessage['status']): Promise<ChatMessage> {
  return eventually(
    `${id} is ${status}`,
    async () => {
      const found = await clientOf(dev).chatapp.get(id);
      return found.status === status ? found : undefined;
    },
    TIMEOUT_MS,
  );
}

/**
 * Sends a message, and kills the worker after the provider has accepted it and before it answers.
 * @param inbox of the simulator that is the provider
 * @returns the message's id
 */
export async function killBeforeTheAnswer(dev: DevFile, inbox: string, from: string, to: string): Promise<string> {
  await setBehaviour(inbox, { latency_ms: 6_000 });
  const { id } = await clientOf(dev).chatapp.send({ from, to, text: 'Hello' });
  await eventually('the provider has it', async () => (await taken(inbox, to)) === 1);
  process.kill(dev.processes.worker ?? 0, 'SIGKILL');
  await setBehaviour(inbox, { latency_ms: 0 });
  return id;
}
