import { once } from 'node:events';
import { isIPv6, type AddressInfo } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import { SendwrightError } from '../../../client/index.ts';
import type { EventType } from '../../domain/event-types.ts';
import { type Api, Refusal, refusalOf } from './api.ts';
import { eventOption, onApi, option, required } from './command.ts';
import { type ForwardedDelivery, startReceiver } from './receiver.ts';

interface ListenOptions {
  readonly forwardTo: URL;
  readonly event: EventType[];
  readonly port?: string;
  readonly publicUrl?: URL;
}

/** Adds the command that forwards the deliveries of a temporary endpoint to a developer's URL. */
export function addListenCommand(program: Command): void {
  program
    .command('webhooks')
    .description('deliveries of webhooks')
    .command('listen')
    .description('Forward webhook deliveries to a URL of this machine until Ctrl-C, through a temporary endpoint.')
    .addOption(required('--forward-to <url>', 'URL that deliveries are posted to').argParser(toUrl))
    .addOption(eventOption())
    .addOption(option('--port <port>', 'port that deliveries arrive on, any free one by default').argParser(toPort))
    .addOption(option('--public-url <url>', 'URL of a tunnel that leads to --port').argParser(toUrl))
    .action(onApi(listen));
}

type Endpoint = Awaited<ReturnType<Api['client']['webhooks']['create']>>;
type EndpointRequest = Parameters<Api['client']['webhooks']['create']>[0];

/**
 * Forwards deliveries and prints a JSON line for each, until Ctrl-C, another signal, or the end of the process that reads
 * standard output. In each of these cases it deletes the endpoint.
 */
async function listen(api: Api, options: ListenOptions): Promise<undefined> {
  const { forwardTo: target, event: events, publicUrl } = options;
  const port = Number(options.port ?? 0);
  if (publicUrl && port === 0) {
    throw new InvalidArgumentError('--port is missing: the one that the tunnel of --public-url leads to');
  }

  const end = waitForEnd();
  const receiver = await startReceiver(target, port, (delivery) => print(delivery)).catch((error: unknown) => {
    throw new Refusal(`cannot listen on port ${port}: ${(error as Error).message}`);
  });
  let endpoint: Endpoint | undefined;
  try {
    const url = receiver.under(publicUrl ? withoutSlash(publicUrl) : originOf(receiver.address));
    endpoint = await create(api, { url, events, description: 'sendwright webhooks listen' }, publicUrl === undefined);
    receiver.trust(endpoint.secret);
    const names = events.length === 0 ? 'all events' : events.join(', ');
    console.error(`Forwarding ${names} to ${target.href}; Ctrl-C ends it.`);
    console.error(`Endpoint ${endpoint.id} is there until then; its secret is ${endpoint.secret}`);
    await end;
  } finally {
    if (endpoint) await remove(api, endpoint.id);
    await receiver.close();
  }
  return undefined;
}

async function create(api: Api, request: EndpointRequest, isHere: boolean): Promise<Endpoint> {
  try {
    return await api.client.webhooks.create(request);
  } catch (error) {
    if (!isHere || !(error instanceof SendwrightError) || error.param !== 'url') throw error;
    throw new Refusal(
      `${error.message}: the service at ${api.url} does not post to this machine; give --public-url, the address of a ` +
        'tunnel that leads here, and --port',
    );
  }
}

async function remove(api: Api, id: string): Promise<void> {
  try {
    await api.client.webhooks.delete(id);
    console.error(`Endpoint ${id} is deleted.`);
  } catch (error) {
    if (!(error instanceof SendwrightError)) throw error;
    // The endpoint no longer exists.
    if (error.status === 404) return;
    throw new Refusal(
      `endpoint ${id} is still there and could not be deleted: ${refusalOf(error, api)?.message ?? error.message}`,
    );
  }
}

/** Resolves when the command must stop. Adds its listeners immediately, so that an early signal is not missed. */
async function waitForEnd(): Promise<void> {
  const ends = (['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const).map((name) => once(process, name));
  // Writing to a closed terminal must not prevent the deletion of the endpoint.
  process.stderr.on('error', () => undefined);
  // Standard output was closed, as by `| head -1`.
  ends.push(new Promise((resolve) => process.stdout.on('error', () => resolve([]))));
  await Promise.race(ends);
  // A second Ctrl-C must not prevent the deletion of the endpoint. The remaining work has a deadline.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
}

function print(delivery: ForwardedDelivery): void {
  console.log(JSON.stringify(delivery));
  if (delivery.status === 410) console.error('410 ends the subscription: the service disables the endpoint');
}

function toUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new InvalidArgumentError('It must be an http or https URL.');
}

function toPort(text: string): string {
  if (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535) return text;
  throw new InvalidArgumentError('Allowed: 1 to 65535.');
}

function withoutSlash({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, '');
}

function originOf({ address, port }: AddressInfo): string {
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}
