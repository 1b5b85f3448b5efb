import { type Bounce, bounceOf } from './bounces.ts';

/** The behavior that a local part requests; the domain does not matter. */
export interface Magic {
  /** How the provider answers when a message to it is handed over. */
  readonly handover: 'accept' | 'slow' | 'fail-once' | 'fail-always';
  /** What the provider reports about this recipient afterwards. */
  readonly reports: readonly Report[];
  /** Why its server refuses it, if it does. */
  readonly bounce: Bounce | null;
}

/** One thing that is reported: the later, the greater its step. */
export interface Report {
  readonly kind: ReportKind;
  readonly step: Step;
}

/** Postmark's record types; Transient is a Bounce for a delayed message. */
export type ReportKind = 'Delivery' | 'Open' | 'Click' | 'Transient' | 'Bounce' | 'SpamComplaint';
/** The first report about a message comes after a moment, the next after twice that, and so on. */
export type Step = 1 | 2 | 3 | 4;

const DELIVERED: Report = { kind: 'Delivery', step: 1 };
const OPENED: Report = { kind: 'Open', step: 2 };

const PLAIN: Magic = { handover: 'accept', reports: [DELIVERED], bounce: null };
const BOUNCED: Magic = { handover: 'accept', reports: [{ kind: 'Bounce', step: 1 }], bounce: null };

/** Local parts, each alone or with a detail behind `+`, such as `bounced+mailbox_full@`. All others are plain. */
const MAGIC: Readonly<Record<string, Magic>> = {
  delivered: PLAIN,
  bounced: BOUNCED,
  complained: { ...PLAIN, reports: [DELIVERED, { kind: 'SpamComplaint', step: 2 }] },
  opened: { ...PLAIN, reports: [DELIVERED, OPENED] },
  clicked: { ...PLAIN, reports: [DELIVERED, OPENED, { kind: 'Click', step: 3 }] },
  delayed: {
    ...PLAIN,
    reports: [
      { kind: 'Transient', step: 1 },
      { kind: 'Delivery', step: 4 },
    ],
  },
  slow: { ...PLAIN, handover: 'slow' },
  'fail-once': { ...PLAIN, handover: 'fail-once' },
  'fail-always': { handover: 'fail-always', reports: [], bounce: null },
};

/** What this bare address does; case does not matter. */
export function magicOf(address: string): Magic {
  const [local = '', detail = ''] = address.slice(0, address.lastIndexOf('@')).toLowerCase().split('+', 2);
  const magic = (Object.hasOwn(MAGIC, local) && MAGIC[local]) || PLAIN;
  return magic === BOUNCED ? { ...magic, bounce: bounceOf(detail) } : magic;
}

/** The worst handover of any of these addresses. */
export function handoverOf(addresses: readonly string[]): Magic['handover'] {
  const found = new Set(addresses.map((address) => magicOf(address).handover));
  return (['fail-always', 'fail-once', 'slow'] as const).find((handover) => found.has(handover)) ?? 'accept';
}

/** The behavior that the last four digits of a number request. */
export interface ChatMagic {
  readonly handover: Exclude<Magic['handover'], 'slow'>;
  readonly reports: readonly ChatReportKind[];
}
export type ChatReportKind = 'sent' | 'delivered' | 'read' | 'undelivered' | 'failed';

const CHATTED: ChatMagic = { handover: 'accept', reports: ['sent', 'delivered'] };

const MAGIC_NUMBERS: Readonly<Record<string, ChatMagic>> = {
  '0001': { ...CHATTED, reports: ['failed'] },
  '0002': { ...CHATTED, reports: ['sent', 'delivered', 'read'] },
  '0003': { ...CHATTED, handover: 'fail-once' },
  '0004': { ...CHATTED, handover: 'fail-always' },
};

/** What this number does; E.164. */
export function chatMagicOf(number: string): ChatMagic {
  return MAGIC_NUMBERS[number.slice(-4)] ?? CHATTED;
}

const SMS_NUMBERS: Readonly<Record<string, ChatMagic>> = {
  ...MAGIC_NUMBERS,
  '0002': CHATTED,
  '0005': { ...CHATTED, reports: ['sent', 'undelivered'] },
};

/** The same for SMS, which no provider reports as read and which a carrier may not deliver. */
export function smsMagicOf(number: string): ChatMagic {
  return SMS_NUMBERS[number.slice(-4)] ?? CHATTED;
}

/** Whether the provider refuses SMS to this number because the recipient opted out. */
export function hasOptedOut(number: string): boolean {
  return number.endsWith('0006');
}

/** Keys that have failed once. Beyond 100,000 it forgets the oldest. */
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
