import type { Member, MemberResult } from '../delivery/contract.ts';
import { FORWARDED_TOPICS, type IsolatedMessage, type IsolatedRequest } from './isolation.ts';

/**
 * Serves the worker's IPC requests and forwards topic events for its metrics. The process ends once the channel is closed and
 * no delivery is running. @param waitForLateCalls waits for calls that outlast their deliveries. It ignores signals, which the worker handles.
 */
export function serveIsolatedDelivery(
  deliver: (member: Member) => Promise<MemberResult[]>,
  waitForLateCalls: () => Promise<void> = () => Promise.resolve(),
): void {
  let active = 0;
  const send = (message: IsolatedMessage): void => {
    // Messages are dropped if the worker has ended; results are stored in the database.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  };
  const endWhenDone = (): void => {
    if (process.connected || active > 0) return;
    void waitForLateCalls().finally(() => process.exit(0));
  };
  const answer = async ({ request, member }: Extract<IsolatedRequest, { member: Member }>): Promise<void> => {
    active++;
    try {
      const [result] = await deliver(member);
      if (!result) throw new Error('a delivery returned no result');
      send({ request, result });
    } catch (error) {
      send({ request, error: String(error) });
    }
    active--;
    endWhenDone();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => undefined);
  process.on('disconnect', endWhenDone);
  process.on('message', (request: IsolatedRequest) => {
    if ('ping' in request) send({ pong: request.ping });
    else void answer(request);
  });
  for (const [topic, { listen }] of Object.entries(FORWARDED_TOPICS)) {
    listen((event) => {
      send({ topic, event });
    });
  }
  send({ ready: true });
  // The worker may have ended before the listener was added.
  endWhenDone();
}
