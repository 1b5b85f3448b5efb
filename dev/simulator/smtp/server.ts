import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerError, type SMTPServerSession } from 'smtp-server';
import type { Switches } from '../behaviour.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { type FailedOnce, handoverOf, magicOf, problemOf } from '../magic.ts';
import { parseMessage } from './parse.ts';

const MAX_MESSAGE_BYTES = 64 * 1_048_576;
/** Idle timeout of a connection in milliseconds, long enough for `hang` to outlast every client. */
const IDLE_TIMEOUT_MS = 600_000;

interface SmtpParts {
  readonly inbox: Inbox;
  readonly switches: Switches;
  readonly failedOnce: FailedOnce;
  /** Milliseconds before the reply to a message for `slow@`. */
  readonly slow: number;
  /** Aborts all waiting when the simulator ends. */
  readonly ending: AbortSignal;
  readonly log: Logger;
}

/** A reply of the server: an SMTP code, and an enhanced code (RFC 3463) with text. */
class Reply extends Error implements SMTPServerError {
  readonly responseCode: number;

  constructor(code: number, text: string) {
    super(text);
    this.responseCode = code;
  }
}

/** Starts an SMTP server that accepts mail from and for any address, with or without a password, and never delivers it. */
export async function startSmtp(host: string, port: number, parts: SmtpParts) {
  const sockets = new Set<Socket>();
  const server = new SMTPServer({
    size: MAX_MESSAGE_BYTES,
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    socketTimeout: IDLE_TIMEOUT_MS,
    logger: false,
    onAuth: ({ username }, _session, done) => done(null, { user: username ?? '' }),
    onRcptTo: ({ address }, _session, done) => done(refusalOf(address, parts.failedOnce)),
    onData(stream, session, done) {
      const socket = () => [...sockets].find(({ remotePort }) => remotePort === session.remotePort);
      receive(stream, session, parts, () => socket()?.resetAndDestroy()).then(
        (answer) => answer !== undefined && done(null, answer),
        (error: unknown) => {
          if (!(error instanceof Reply)) parts.log.error({ err: error }, 'simulator: message by SMTP failed');
          done(error instanceof Reply ? error : new Reply(451, '4.3.0 The simulator failed; its log says why.'));
        },
      );
    },
  });
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
  server.removeAllListeners('error');
  // Clients may disconnect in the middle of a message.
  server.on('error', (error: Error) => parts.log.debug({ err: error }, 'simulator: SMTP connection broke'));

  return {
    port: (server.server.address() as AddressInfo).port,
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function refusalOf(address: string, failedOnce: FailedOnce): Reply | null {
  const { handover, bounce } = magicOf(address);
  if (bounce) return new Reply(Number(bounce.reply.slice(0, 3)), bounce.reply.slice(4));
  const fails = handover === 'fail-always' || (handover === 'fail-once' && failedOnce.fails(`smtp ${address}`));
  return fails ? new Reply(451, `4.3.0 The address asks for this: ${handover}@.`) : null;
}

/** Receives one message. @returns the text of the positive reply; undefined for no reply */
async function receive(
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
  parts: SmtpParts,
  reset: () => void,
): Promise<string | undefined> {
  const { switches, ending } = parts;
  const raw = await read(stream);
  const behaviour = switches.now;
  const fault = switches.take();
  if (fault === 'reset_before_accept') {
    reset();
    return undefined;
  }
  if (fault === 'fail_next') {
    await sleep(behaviour.latency_ms, undefined, { signal: ending });
    throw new Reply(451, '4.3.0 A switch of the simulator asks for this.');
  }

  const recipients = session.envelope.rcptTo.map(({ address }) => address);
  // Like Postmark's API, and after the data: a refusal of the recipient would be a bounce, which suppresses the address.
  const problem = problemOf(recipients);
  if (problem !== undefined) throw new Reply(550, `5.6.0 ${problem}`);
  const received = await parseMessage(raw, recipients, Date.now()).catch((error: unknown) => {
    throw new Reply(554, `5.6.0 ${(error as Error).message}`);
  });
  parts.inbox.add([received]);

  if (fault === 'reset_after_accept') {
    reset();
    return undefined;
  }
  if (fault === 'hang') return undefined;
  const slow = handoverOf(recipients) === 'slow' ? parts.slow : 0;
  await sleep(Math.max(behaviour.latency_ms, slow), undefined, { signal: ending });
  return `2.0.0 Ok: kept as ${received.head.id}`;
}

/** Reads the whole message. A message that is too large is read to its end, discarded and refused. */
async function read(stream: SMTPServerDataStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (stream.sizeExceeded) chunks.length = 0;
    else chunks.push(chunk);
  }
  if (stream.sizeExceeded) throw new Reply(552, '5.3.4 The message is too large.');
  return Buffer.concat(chunks);
}
