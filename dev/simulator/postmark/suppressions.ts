import type { FastifyInstance } from 'fastify';
import type { Head } from '../inbox/message.ts';
import { magicOf } from '../magic.ts';
import { CODE, Refusal } from './errors.ts';
import type { DueReport } from './reports.ts';
import { postmarkTime } from './time.ts';

type Reason = 'HardBounce' | 'SpamComplaint' | 'ManualSuppression';

/** An address to which a message stream does not send. */
interface Entry {
  readonly stream: string;
  readonly address: string;
  readonly reason: Reason;
  readonly origin: 'Recipient' | 'Customer' | 'Admin';
  /** The start of the suppression in Unix milliseconds. */
  readonly since: number;
}

/** Maximum number of entries; the oldest are removed. */
const MAX_ENTRIES = 100_000;

/**
 * The suppression lists of Postmark's message streams. Addresses that bounced permanently or complained are suppressed until
 * they are removed. In memory only: a restart clears the lists.
 */
export class Suppressions {
  /** Null marks an address that is suppressed by default and was removed. */
  readonly #entries = new Map<string, Entry | null>();

  /** True if a stream refuses an address now. `bounced+provider_suppressed@` is suppressed until it is removed. */
  has(stream: string | null, address: string, now: number): boolean {
    const entry = this.#entries.get(keyOf(stream, address));
    return entry === undefined ? isSuppressedByDefault(address) : entry !== null && entry.since <= now;
  }

  /** Adds the recipients that future reports about a message will suppress. */
  expect(head: Head, reports: readonly DueReport[]): void {
    for (const { kind, recipient: address, at: since } of reports) {
      const bounced = kind === 'Bounce' && magicOf(address).bounce?.inactive;
      const reason = bounced ? 'HardBounce' : 'SpamComplaint';
      if (!bounced && kind !== 'SpamComplaint') continue;
      if (this.has(head.stream, address, since)) continue;
      this.add({ stream: head.stream ?? '', address, reason, origin: 'Recipient', since });
    }
  }

  add(entry: Entry): void {
    this.#entries.set(keyOf(entry.stream, entry.address), entry);
    if (this.#entries.size > MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value as string);
  }

  /** Removes an address, except after a complaint. @returns true if it is not suppressed now */
  remove(stream: string, address: string): boolean {
    const key = keyOf(stream, address);
    if (this.#entries.get(key)?.reason === 'SpamComplaint') return false;
    if (isSuppressedByDefault(address)) this.#entries.set(key, null);
    else this.#entries.delete(key);
    return true;
  }

  /** Lists the entries of a stream, oldest first. */
  list(stream: string, now: number): Entry[] {
    return [...this.#entries.values()].filter((entry) => entry?.stream === stream && entry.since <= now) as Entry[];
  }
}

function keyOf(stream: string | null, address: string): string {
  return `${stream ?? ''} ${address.toLowerCase()}`;
}

function isSuppressedByDefault(address: string): boolean {
  return magicOf(address).bounce?.reason === 'provider_suppressed';
}

/** Maximum number of addresses in one request. */
const MAX_ADDRESSES = 50;

interface Stream {
  readonly Params: { readonly stream: string };
}

/** `…/suppressions/dump`, `…/suppressions` and `…/suppressions/delete`, https://postmarkapp.com/developer/api/suppressions-api. */
export function suppressionRoutes(app: FastifyInstance, suppressions: Suppressions): void {
  app.get<Stream>('/message-streams/:stream/suppressions/dump', ({ params, query }) => {
    const { EmailAddress: address } = query as { EmailAddress?: string };
    const entries = suppressions.list(params.stream, Date.now());
    const found = entries.filter((entry) => !address || entry.address.toLowerCase() === address.toLowerCase());
    return {
      Suppressions: found.map((entry) => ({
        EmailAddress: entry.address,
        SuppressionReason: entry.reason,
        Origin: entry.origin,
        CreatedAt: postmarkTime(entry.since),
      })),
    };
  });

  app.post<Stream>('/message-streams/:stream/suppressions', ({ params: { stream }, body }) => ({
    Suppressions: addressesOf(body).map((address) => {
      suppressions.add({ stream, address, reason: 'ManualSuppression', origin: 'Customer', since: Date.now() });
      return { EmailAddress: address, Status: 'Suppressed', Message: null };
    }),
  }));

  app.post<Stream>('/message-streams/:stream/suppressions/delete', ({ params: { stream }, body }) => ({
    Suppressions: addressesOf(body).map((address) =>
      suppressions.remove(stream, address)
        ? { EmailAddress: address, Status: 'Deleted', Message: null }
        : { EmailAddress: address, Status: 'Failed', Message: 'You may not take a spam complaint off the list.' },
    ),
  }));
}

function addressesOf(body: unknown): string[] {
  const { Suppressions: entries } = (body ?? {}) as { Suppressions?: unknown };
  if (!Array.isArray(entries) || entries.length > MAX_ADDRESSES)
    throw new Refusal(422, CODE.incompatibleJson, `Suppressions must be an array of at most ${MAX_ADDRESSES}.`);
  const addresses = entries.map((entry: { EmailAddress?: unknown } | null) => entry?.EmailAddress);
  if (addresses.every((address) => typeof address === 'string')) return addresses;
  throw new Refusal(422, CODE.incompatibleJson, 'Each of Suppressions must have an EmailAddress.');
}
