import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const HOST = '127.0.0.1';
const POLL_INTERVAL_MS = 25;
const ANSWER_TIMEOUT_MS = 2_000;
/** The gRPC service of Temporal whose health is checked. */
const FRONTEND = 'temporal.api.workflowservice.v1.WorkflowService';

/** Repeats `attempt` until it succeeds. Rejects if `signal` aborts, or with an error that repetition cannot fix. */
export async function until<T>(
  attempt: () => Promise<T>,
  signal: AbortSignal,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (isFinal(error)) throw error;
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

export async function waitUntilListening(port: number, signal: AbortSignal): Promise<void> {
  await until(
    () =>
      new Promise<void>((resolve, reject) => {
        const socket = connect({ host: HOST, port });
        socket.once('connect', () => {
          socket.destroy();
          resolve();
        });
        socket.once('error', reject);
      }),
    signal,
  );
}

/** Resolves when Temporal's frontend is healthy: https://github.com/grpc/grpc/blob/master/doc/health-checking.md */
export async function waitUntilServing(port: number, signal: AbortSignal): Promise<void> {
  await until(async () => {
    if ((await healthOf(port)) !== SERVING) throw new Error('not serving yet');
  }, signal);
}

/** `HealthCheckResponse{status: SERVING}` as protobuf: field 1, a varint, 1. */
const SERVING = '0801';
/** A gRPC frame begins with a flag and four bytes of length. */
const FRAME_HEADER = 5;

/** Calls grpc.health.v1.Health/Check without a gRPC client, which takes longer to load than the server to start. */
async function healthOf(port: number): Promise<string> {
  const name = Buffer.from(FRONTEND);
  const message = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
  const session = connectHttp2(`http://${HOST}:${port}`);
  try {
    return await new Promise<string>((resolve, reject) => {
      session.once('error', reject);
      session.setTimeout(ANSWER_TIMEOUT_MS, () => reject(new Error('no answer')));
      const stream = session.request({
        ':method': 'POST',
        ':path': '/grpc.health.v1.Health/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      const chunks: Buffer[] = [];
      stream.once('error', reject);
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('end', () => resolve(Buffer.concat(chunks).subarray(FRAME_HEADER).toString('hex')));
      stream.end(frame);
    });
  } finally {
    session.destroy();
  }
}
