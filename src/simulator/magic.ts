/** What an address makes the simulator do, whatever its domain. */
export interface Magic {
  /** How the provider answers when a message to it is handed over. */
  readonly handover: 'accept' | 'slow' | 'fail-once' | 'fail-always';
  /** What the provider reports about this recipient afterwards, in this order. */
  readonly reports: readonly Report[];
}

/** A record that Postmark posts. */
export type Report = 'Delivery';

const PLAIN: Magic = { handover: 'accept', reports: ['Delivery'] };
/** Accepted, and never heard of again. */
const SILENT: Magic = { handover: 'accept', reports: [] };

/** Local parts, each alone or with a detail behind `+`, such as `bounced+mailbox_full@`. All others are plain. */
const MAGIC: Readonly<Record<string, Magic>> = {
  delivered: PLAIN,
  bounced: SILENT,
  complained: SILENT,
  opened: SILENT,
  clicked: SILENT,
  delayed: SILENT,
  slow: { handover: 'slow', reports: [] },
  'fail-once': { handover: 'fail-once', reports: [] },
  'fail-always': { handover: 'fail-always', reports: [] },
};

/** What this bare address does; case does not matter. */
export function magicOf(address: string): Magic {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase().split('+', 1)[0] as string;
  return (Object.hasOwn(MAGIC, local) && MAGIC[local]) || PLAIN;
}

/** What a message to all of these does: the worst that any of them does. */
export function handoverOf(addresses: readonly string[]): Magic['handover'] {
  const found = new Set(addresses.map((address) => magicOf(address).handover));
  return (['fail-always', 'fail-once', 'slow'] as const).find((handover) => found.has(handover)) ?? 'accept';
}

/** Remembers what has failed once. Beyond 100,000 it forgets the oldest, which would then fail again. */
export class FailedOnce {
  readonly #seen = new Set<string>();

  /** True the first time it is asked about this key, false from then on. */
  fails(key: string): boolean {
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    if (this.#seen.size > 100_000) this.#seen.delete(this.#seen.values().next().value as string);
    return true;
  }
}
