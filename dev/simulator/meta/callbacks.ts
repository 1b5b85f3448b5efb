import { createHmac } from 'node:crypto';
import { isUserId } from '../../../src/domain/chat/recipient.ts';
import type { Behaviour } from '../behaviour.ts';
import { type DueChatReport, type ChatParts, chatReportsOf, isWindowClosed, scheduleReports } from '../chat-call.ts';
import type { InboxChat } from '../inbox/message.ts';
import type { AcceptedMessage } from './accept.ts';
import { CODE } from './errors.ts';

/** The URL for Meta's reports, and the secret for their signatures. */
export interface MetaTarget {
  readonly url: string;
  readonly appSecret: string;
}

/** For every third message, the first two reports are in one post, the later report first. */
const COMBINED_POST_INTERVAL = 3;

/** Posts reports about messages as Meta does: in batches, in any order. */
export class MetaReports {
  readonly #target: MetaTarget;
  readonly #parts: ChatParts;
  #count = 0;

  constructor(target: MetaTarget, parts: ChatParts) {
    this.#target = target;
    this.#parts = parts;
  }

  expect({ message, opaque }: AcceptedMessage, behaviour: Behaviour): void {
    const { posts, reportAfter, retries } = this.#parts;
    const turns = scheduleReports(chatReportsOf(message, reportAfter), behaviour);
    const isTogether = ++this.#count % COMBINED_POST_INTERVAL === 0 && turns.length >= 2;
    const [first, second, ...rest] = turns;
    const batches = isTogether ? [[second, first], ...rest.map((turn) => [turn])] : turns.map((turn) => [turn]);
    posts.add(
      batches.map((batch) => {
        const dues = batch as DueChatReport[];
        const statuses = dues.map((due) => statusOf(message, due, opaque));
        const content = signedPost(this.#target.appSecret, valueOf(message, statuses));
        const at = Math.max(...dues.map((due) => due.at));
        return { id: message.id, url: this.#target.url, at, retries, content: () => content };
      }),
    );
  }
}

/** https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/components */
function valueOf({ from }: InboxChat, statuses: readonly object[]): object {
  const metadata = { display_phone_number: from, phone_number_id: from };
  return { messaging_product: 'whatsapp', metadata, statuses };
}

/** Returns a signed post about messages. */
export function signedPost(appSecret: string, value: object) {
  const entry = [{ id: '100000000000001', changes: [{ field: 'messages', value }] }];
  const body = encode({ object: 'whatsapp_business_account', entry });
  const signature = createHmac('sha256', appSecret).update(body).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'facebookexternalua',
    'x-hub-signature-256': `sha256=${signature}`,
  };
  return { headers, body };
}

function statusOf(chat: InboxChat, { kind, at }: DueChatReport, opaque: string | undefined): object {
  const { id, to } = chat;
  return {
    id,
    status: kind,
    timestamp: String(Math.floor(at / 1_000)),
    ...(isUserId(to) ? { recipient_user_id: to } : { recipient_id: to.slice(1) }),
    ...(opaque !== undefined && { biz_opaque_callback_data: opaque }),
    ...(kind === 'failed' && { errors: [isWindowClosed(chat) ? REENGAGEMENT_ERROR : UNDELIVERABLE_ERROR] }),
  };
}

const UNDELIVERABLE_ERROR = {
  code: CODE.undeliverable,
  title: 'Message undeliverable',
  message: 'Message undeliverable',
  error_data: { details: 'Message Undeliverable – the recipient’s number is not reachable by WhatsApp.' },
  href: 'https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/',
};

const REENGAGEMENT_ERROR = {
  code: CODE.reengagement,
  title: 'Re-engagement message',
  message: 'Re-engagement message',
  error_data: { details: 'More than 24 hours have passed since the customer last replied to this number.' },
  href: UNDELIVERABLE_ERROR.href,
};

/** Serializes JSON as Meta does, in ASCII with escaped slashes: the signature covers these exact bytes. */
function encode(value: object): string {
  return JSON.stringify(value)
    .replaceAll('/', '\\/')
    .replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
