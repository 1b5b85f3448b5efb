import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { tcpServer } from './servers.ts';

/**
 * The reply of a server in each phase; `close` ends the connection, `reset` breaks it, `silent` sends nothing. `message` is the
 * end of a message, `chunk` any part of one before that.
 */
type Step =
  'greeting' | 'EHLO' | 'HELO' | 'STARTTLS' | 'AUTH' | 'MAIL' | 'RCPT' | 'DATA' | 'chunk' | 'message' | 'RSET' | 'QUIT';
type Act = string | ((line: string) => string);
export type Script = Partial<Readonly<Record<Step, Act>>>;

const USUAL: Script = {
  greeting: '220 ready',
  EHLO: '250-here\r\n250-AUTH PLAIN\r\n250 SIZE 50000000',
  HELO: '250 here',
  AUTH: '235 welcome',
  MAIL: '250 ok',
  RCPT: '250 ok',
  DATA: '354 go on',
  message: '250 2.0.0 taken',
  RSET: '250 ok',
  QUIT: '221 bye',
};

export interface ScriptedServer {
  readonly port: number;
  readonly url: string;
  /** Whole messages that reached it, without the final dot. */
  readonly messages: string[];
  /** Command lines in the order they came, over all connections. */
  readonly commands: string[];
  readonly connections: Set<Socket>;
  /** Called with the connection of each whole message. */
  onMessage: (socket: Socket) => void;
  /** How many connections there have ever been. */
  readonly count: () => number;
}

/** An SMTP server that follows a script, with usual replies in other phases. It ends with the test. */
export async function smtpScript(t: TestContext, script: Script): Promise<ScriptedServer> {
  const messages: string[] = [];
  const commands: string[] = [];
  const connections = new Set<Socket>();
  let count = 0;
  const server: ScriptedServer = {
    port: 0,
    url: '',
    messages,
    commands,
    connections,
    onMessage: () => undefined,
    count: () => count,
  };
  const port = await tcpServer(t, (socket) => {
    count++;
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    const act = (step: Step, line = ''): string => {
      const reply = script[step] ?? USUAL[step] ?? '500 what?';
      const answer = typeof reply === 'function' ? reply(line) : reply;
      if (answer === 'close') socket.destroySoon();
      else if (answer === 'reset') socket.resetAndDestroy();
      else if (answer !== 'silent') socket.write(`${answer}\r\n`);
      return answer;
    };

    let rest = '';
    let inMessage = false;
    let accepted = false;
    act('greeting');
    socket.setEncoding('latin1').on('data', (data: string) => {
      rest += data;
      while (!socket.destroyed) {
        const end = rest.indexOf(inMessage ? '\r\n.\r\n' : '\r\n');
        if (end < 0) break;
        const line = rest.slice(0, end);
        rest = rest.slice(end + (inMessage ? 5 : 2));
        if (inMessage) {
          inMessage = false;
          messages.push(line);
          server.onMessage(socket);
          act('message', line);
          continue;
        }
        commands.push(line);
        const step = (/^[A-Z]+/.exec(line)?.[0] ?? '') as Step;
        if (step === 'DATA' && !accepted) {
          socket.write('503 no valid recipients\r\n');
          continue;
        }
        const answer = act(step, line);
        if (step === 'MAIL') accepted = false;
        if (step === 'RCPT' && answer.startsWith('2')) accepted = true;
        inMessage = step === 'DATA' && answer.startsWith('354');
      }
      if (inMessage && script.chunk !== undefined && !socket.destroyed) act('chunk', rest);
    });
  });
  Object.assign(server, { port, url: `smtp://127.0.0.1:${port}` });
  return server;
}
