import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';

/** A transaction of an SMTP server that reached the end of its message. */
export interface Transaction {
  /** The recipients that the server accepted at RCPT TO. */
  readonly recipients: readonly string[];
  /** The message as it was transferred. */
  readonly message: string;
  /** The reply to the message; `drop` ends the connection without one. */
  readonly reply: string;
}

/** The replies of a server, such as `450 4.2.0 later`. */
export interface Answers {
  /** @param transaction the number of the transaction in which an email of this domain is, from 0 */
  readonly rcpt: (recipient: string, transaction: number, accepted: readonly string[]) => string;
  /** `drop` ends the connection without a reply, after the server has taken the message; `drop before` before that. */
  readonly data?: (recipients: readonly string[], transaction: number) => string;
}

/** Counts transactions by the domain of their recipients: an email of a test has a domain of its own. */
function makeTransactionCounter() {
  const counts = new Map<string, number>();
  const current = new Map<string, number>();
  return {
    begin: ({ id }: SMTPServerSession) => current.delete(id),
    numberOf: ({ id }: SMTPServerSession, recipient: string): number => {
      const domain = recipient.split('@')[1] as string;
      const number = current.get(id) ?? counts.get(domain) ?? 0;
      if (!current.has(id)) counts.set(domain, number + 1);
      current.set(id, number);
      return number;
    },
  };
}

/** Starts an SMTP server that answers each recipient and each message. It ends with the test. */
export async function answeringServer(
  t: TestContext,
  { rcpt, data = () => '250 2.0.0 ok' }: Answers,
  hidePIPELINING = false,
) {
  const transactions: Transaction[] = [];
  const sockets = new Map<number, Socket>();
  const { begin, numberOf } = makeTransactionCounter();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    hidePIPELINING,
    logger: false,
    maxClients: 1_000,
    onMailFrom(_, session, done) {
      begin(session);
      done();
    },
    onRcptTo({ address }, session, done) {
      const accepted = session.envelope.rcptTo.map((each) => each.address);
      const reply = rcpt(address, numberOf(session, address), accepted);
      done(reply.startsWith('2') ? null : toError(reply));
    },
    onData(stream, session, done) {
      const recipients = session.envelope.rcptTo.map(({ address }) => address);
      const reply = data(recipients, numberOf(session, recipients[0] as string));
      text(stream).then(
        (message) => {
          if (reply !== 'drop before') transactions.push({ recipients, message, reply });
          if (reply.startsWith('drop')) sockets.get(session.remotePort)?.resetAndDestroy();
          else done(reply.startsWith('2') ? null : toError(reply));
        },
        () => undefined,
      );
    },
  });
  server.on('error', () => undefined);
  server.server.on('connection', (socket: Socket) => {
    const port = socket.remotePort as number;
    sockets.set(port, socket);
    socket.once('close', () => sockets.delete(port));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  t.after(() => {
    for (const socket of sockets.values()) socket.destroy();
    server.close();
  });
  const { port } = server.server.address() as AddressInfo;
  return { url: `smtp://127.0.0.1:${port}`, transactions };
}

function toError(reply: string): Error {
  return Object.assign(new Error(reply.slice(4)), { responseCode: Number(reply.slice(0, 3)) });
}
