import { type Bounce, bounceOf, unknownReason } from './bounces.ts';

/** The behavior that a local part requests. The domain is ignored. */
interface Magic {
  /** The provider's response to a message for this address. */
  readonly handover: 'accept' | 'slow' | 'fail-once' | 'fail-always';
  /** The provider's later reports about this recipient. */
  readonly reports: readonly Report[];
  /** The bounce if its server refuses the message; otherwise null. */
  readonly bounce: Bounce | null;
  /** Why the address means nothing to the simulator; its message is refused. */
  readonly problem?: string;
}

/** A report. Reports with a greater step come later. */
interface Report {
  readonly kind: ReportKind;
  readonly step: Step;
}

/** Postmark's record types; Transient is a Bounce for a delayed message. */
export type ReportKind = 'Delivery' | 'Open' | 'Click' | 'Transient' | 'Bounce' | 'SpamComplaint';
/** The first report about a message comes after one interval, the next after two, and so on. */
export type Step = 1 | 2 | 3 | 4;

const DELIVERED_REPORT: Report = { kind: 'Delivery', step: 1 };
const OPENED_REPORT: Report = { kind: 'Open', step: 2 };

const PLAIN_MAGIC: Magic = { handover: 'accept', reports: [DELIVERED_REPORT], bounce: null };
const BOUNCED_MAGIC: Magic = { handover: 'accept', reports: [{ kind: 'Bounce', step: 1 }], bounce: null };

/** Local parts, each alone or with a detail after `+`, such as `bounced+mailbox_full@`. All others are plain. */
const MAGIC: Readonly<Record<string, Magic>> = {
  delivered: PLAIN_MAGIC,
  bounced: BOUNCED_MAGIC,
  complained: { ...PLAIN_MAGIC, reports: [DELIVERED_REPORT, { kind: 'SpamComplaint', step: 2 }] },
  opened: { ...PLAIN_MAGIC, reports: [DELIVERED_REPORT, OPENED_REPORT] },
  clicked: { ...PLAIN_MAGIC, reports: [DELIVERED_REPORT, OPENED_REPORT, { kind: 'Click', step: 3 }] },
  delayed: {
    ...PLAIN_MAGIC,
    reports: [
      { kind: 'Transient', step: 1 },
      { kind: 'Delivery', step: 4 },
    ],
  },
  slow: { ...PLAIN_MAGIC, handover: 'slow' },
  'fail-once': { ...PLAIN_MAGIC, handover: 'fail-once' },
  'fail-always': { handover: 'fail-always', reports: [], bounce: null },
};

/** Returns the behavior of an address without a name, ignoring case. */
export function magicOf(address: string): Magic {
  const [local = '', detail = ''] = address.slice(0, address.lastIndexOf('@')).toLowerCase().split('+', 2);
  const magic = (Object.hasOwn(MAGIC, local) && MAGIC[local]) || PLAIN_MAGIC;
  if (magic !== BOUNCED_MAGIC) return magic;
  const bounce = bounceOf(detail);
  return bounce ? { ...magic, bounce } : { ...PLAIN_MAGIC, problem: unknownReason(address) };
}

/** Returns why a message for these addresses is refused; undefined if it is not. */
export function problemOf(addresses: readonly string[]): string | undefined {
  return addresses.map((address) => magicOf(address).problem).find((problem) => problem !== undefined);
}

/** Returns the worst hand-over of these addresses. */
export function handoverOf(addresses: readonly string[]): Magic['handover'] {
  const found = new Set(addresses.map((address) => magicOf(address).handover));
  return (['fail-always', 'fail-once', 'slow'] as const).find((handover) => found.has(handover)) ?? 'accept';
}

/** The behavior that the last four digits of a number request. */
interface ChatMagic {
  readonly handover: Exclude<Magic['handover'], 'slow'>;
  readonly reports: readonly ChatReportKind[];
}
export type ChatReportKind = 'sent' | 'delivered' | 'read' | 'undelivered' | 'failed';

const PLAIN_CHAT_MAGIC: ChatMagic = { handover: 'accept', reports: ['sent', 'delivered'] };

const MAGIC_NUMBERS: Readonly<Record<string, ChatMagic>> = {
  '0001': { ...PLAIN_CHAT_MAGIC, reports: ['failed'] },
  '0002': { ...PLAIN_CHAT_MAGIC, reports: ['sent', 'delivered', 'read'] },
  '0003': { ...PLAIN_CHAT_MAGIC, handover: 'fail-once' },
  '0004': { ...PLAIN_CHAT_MAGIC, handover: 'fail-always' },
};

/** Returns the behavior of a number in E.164. */
export function chatMagicOf(number: string): ChatMagic {
  return MAGIC_NUMBERS[number.slice(-4)] ?? PLAIN_CHAT_MAGIC;
}

const SMS_NUMBERS: Readonly<Record<string, ChatMagic>> = {
  ...MAGIC_NUMBERS,
  '0002': PLAIN_CHAT_MAGIC,
  '0005': { ...PLAIN_CHAT_MAGIC, reports: ['sent', 'undelivered'] },
};

/** Returns the behavior of a number for SMS, which have no read reports and may be undelivered by a carrier. */
export function smsMagicOf(number: string): ChatMagic {
  return SMS_NUMBERS[number.slice(-4)] ?? PLAIN_CHAT_MAGIC;
}

/** True if the provider refuses SMS to this number because the recipient has opted out. */
export function hasOptedOut(number: string): boolean {
  return number.endsWith('0006');
}

/** Keys that have failed once. Forgets the oldest beyond 100,000. */
export class FailedOnce {
  readonly #seen = new Set<string>();

  /** Returns true for the first call with this key, then false. */
  fails(key: string): boolean {
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    if (this.#seen.size > 100_000) this.#seen.delete(this.#seen.values().next().value as string);
    return true;
  }
}
